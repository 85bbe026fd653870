// SPDX-License-Identifier: MIT
#include "core/tensor_sample.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "backends/cpu/threads.hpp"

namespace polyad {

namespace {

/// A number without visible structure for every number (the finaliser of SplitMix64).
constexpr std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31U);
}

/// Hashes that are kept. The estimate's standard deviation is 1 / sqrt(kept - 2).
constexpr std::size_t kept = 4096;

/// The smallest distinct hashes seen, at least `kept` of them: an open hash table that is cut down when it is half
/// full.
class SmallestHashes {
 public:
  void add(std::uint64_t hash) {
    hash = std::max<std::uint64_t>(hash, 1);
    if (hash > largest_ || hash == last_) return;
    last_ = hash;
    insert(hash);
  }
  void add(const SmallestHashes& other) {
    for (const std::uint64_t h : other.slots_)
      if (h != empty) add(h);
  }

  /// How many distinct values were seen.
  [[nodiscard]] double count() {
    if (used_ < kept) return static_cast<double>(used_);
    cut();
    return static_cast<double>(kept - 1) / (static_cast<double>(largest_) / std::ldexp(1.0, 64));
  }

 private:
  static constexpr std::size_t table_size = 4 * kept;
  static constexpr std::uint64_t empty = 0;  // a hash of 0 is taken for one of 1

  void insert(std::uint64_t hash) {
    // The high bits say how small a hash is, so its place comes from the low ones.
    std::size_t at = hash % table_size;
    while (slots_[at] != empty) {
      if (slots_[at] == hash) return;
      at = (at + 1) % table_size;
    }
    slots_[at] = hash;
    if (++used_ == table_size / 2) cut();
  }

  /// Keeps the `kept` smallest.
  void cut() {
    std::vector<std::uint64_t> found;
    for (const std::uint64_t h : slots_)
      if (h != empty) found.push_back(h);
    std::ranges::nth_element(found, found.begin() + (kept - 1));
    largest_ = found[kept - 1];
    std::ranges::fill(slots_, empty);
    used_ = 0;
    for (const std::uint64_t h : std::span(found).first(kept)) insert(h);
  }

  std::vector<std::uint64_t> slots_ = std::vector<std::uint64_t>(table_size, empty);
  std::size_t used_ = 0;
  std::uint64_t last_ = empty;  // neighbours often have the same tuple
  std::uint64_t largest_ = std::numeric_limits<std::uint64_t>::max();
};

double estimate_distinct(const CooTensor& x, std::uint32_t modes, int shift, const Context& context) {
  const int threads = context.thread_count();
  std::vector<SmallestHashes> found(static_cast<std::size_t>(threads));
  cpu::run_team(threads, [&](int rank, int size) {
    const cpu::Share share = cpu::share_of(x.nnz(), rank, size);
    SmallestHashes& mine = found[static_cast<std::size_t>(rank)];
    std::array<std::uint64_t, 512> hashes;
    for (std::uint64_t begin = share.begin; begin < share.end; begin += hashes.size()) {
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(share.end - begin, hashes.size()));
      hashes.fill(0);
      for (std::size_t m = 0; m < x.indices.size(); ++m)
        if ((modes >> m & 1U) != 0)
          std::visit(
              [&](const auto& buffer) {
                const auto* index = buffer.data() + begin;
                const std::uint64_t factor = mixed(m + 1) | 1U;  // its own for every mode
                for (std::size_t i = 0; i < count; ++i) hashes[i] += (std::uint64_t{index[i]} >> shift) * factor;
              },
              x.indices[m]);
      for (std::size_t i = 0; i < count; ++i) mine.add(mixed(hashes[i]));
    }
  });
  for (std::size_t t = 1; t < found.size(); ++t) found[0].add(found[t]);
  return found.empty() ? 0 : found[0].count();
}

}  // namespace

double TensorSample::distinct(std::span<const int> modes, int shift) const {
  std::uint32_t bits = 0;
  for (const int m : modes) bits |= std::uint32_t{1} << static_cast<unsigned>(m);
  const auto [known, is_new] = known_.try_emplace({bits, shift}, 0.0);
  if (is_new) known->second = estimate_distinct(x_, bits, shift, context_);
  return known->second;
}

double TensorSample::at_least(std::span<const int> modes) const {
  std::uint32_t bits = 0;
  for (const int m : modes) bits |= std::uint32_t{1} << static_cast<unsigned>(m);
  double most = 1;
  for (const auto& [of, count] : known_)
    if (of.second == 0 && (of.first & ~bits) == 0) most = std::max(most, count);
  return most;
}

double TensorSample::fibres(int mode) const {
  std::vector<int> others;
  for (int m = 0; m < order(); ++m)
    if (m != mode) others.push_back(m);
  return distinct(others);
}

double TensorSample::nonzeros_per_block() const {
  std::vector<int> all(static_cast<std::size_t>(order()));
  std::iota(all.begin(), all.end(), 0);
  return std::max(1.0, nnz() / std::max(1.0, distinct(all, 5)));
}

}  // namespace polyad
