// SPDX-License-Identifier: MIT
#include "core/distinct.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "backends/cpu/threads.hpp"

namespace polyad {

namespace {

/// One step of a hash of several numbers (the first half of SplitMix64's finaliser).
constexpr std::uint64_t mixed(std::uint64_t x) {
  x = (x + 0x9E3779B97F4A7C15U) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 31U)) * 0x94D049BB133111EBU;
  return x ^ (x >> 29U);
}

/// Hashes that are kept. The estimate's standard deviation is 1 / sqrt(kept - 2).
constexpr std::size_t kept = 4096;

/// The smallest distinct hashes seen.
class SmallestHashes {
 public:
  void add(std::uint64_t hash) {
    if (hash > largest_) return;
    // Most nonzeros repeat a tuple that came a moment ago.
    std::uint64_t& slot = recent_[hash % recent_.size()];
    if (slot == hash && hash != 0) return;
    slot = hash;
    found_.push_back(hash);
    if (found_.size() >= 4 * kept) shrink();
  }

  void add(const SmallestHashes& other) {
    for (const std::uint64_t h : other.found_)
      if (h <= largest_) found_.push_back(h);
    shrink();
  }

  /// How many distinct values were seen.
  [[nodiscard]] double count() {
    shrink();
    if (found_.size() < kept) return static_cast<double>(found_.size());
    return static_cast<double>(kept - 1) / (static_cast<double>(found_.back()) / std::ldexp(1.0, 64));
  }

 private:
  void shrink() {
    std::ranges::sort(found_);
    const auto repeated = std::ranges::unique(found_);
    found_.erase(repeated.begin(), repeated.end());
    if (found_.size() < kept) return;
    found_.resize(kept);
    largest_ = found_.back();
  }

  std::vector<std::uint64_t> found_;
  std::uint64_t largest_ = std::numeric_limits<std::uint64_t>::max();
  std::array<std::uint64_t, 1024> recent_ = {};
};

}  // namespace

double estimate_distinct(const CooTensor& x, std::span<const int> modes, const Context& context) {
  const int threads = context.thread_count();
  std::vector<SmallestHashes> found(static_cast<std::size_t>(threads));
  cpu::run_team(threads, [&](int rank, int size) {
    const cpu::Share share = cpu::share_of(x.nnz(), rank, size);
    SmallestHashes& mine = found[static_cast<std::size_t>(rank)];
    std::array<std::uint64_t, 512> hashes;
    for (std::uint64_t begin = share.begin; begin < share.end; begin += hashes.size()) {
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(share.end - begin, hashes.size()));
      hashes.fill(0);
      for (const int m : modes)
        std::visit(
            [&](const auto& buffer) {
              const auto* index = buffer.data() + begin;
              for (std::size_t i = 0; i < count; ++i) hashes[i] = mixed(hashes[i] + index[i]);
            },
            x.indices[static_cast<std::size_t>(m)]);
      for (std::size_t i = 0; i < count; ++i) mine.add(hashes[i]);
    }
  });
  for (std::size_t t = 1; t < found.size(); ++t) found[0].add(found[t]);
  return found.empty() ? 0 : found[0].count();
}

}  // namespace polyad
