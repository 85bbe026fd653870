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
#include "core/tuple_hash.hpp"

namespace polyad {

namespace {

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

  /// No larger hash is of interest.
  [[nodiscard]] std::uint64_t largest() const { return largest_; }

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

/// Tuples are marked in a table when there can be no more: the table fits the second-level cache.
constexpr std::uint64_t most_marked = std::uint64_t{1} << 19U;

/// How many tuples there can be; most_marked + 1 stands for more.
template <class Index>
std::uint64_t possible_tuples(const TupleSource<Index>& source, std::span<const std::uint64_t> lengths) {
  std::uint64_t product = 1;
  for (std::size_t k = 0; k < source.modes; ++k) {
    if (lengths[k] > most_marked / product) return most_marked + 1;
    product *= lengths[k];
  }
  return product;
}

/// The number of distinct tuples, exactly.
template <class Index>
double count_marked(const TupleSource<Index>& source, std::span<const std::uint64_t> lengths, std::uint64_t possible,
                    std::uint64_t nnz, int threads) {
  std::vector<std::vector<std::uint8_t>> marked(static_cast<std::size_t>(threads));
  cpu::run_team(threads, [&](int rank, int size) {
    const cpu::Share share = cpu::share_of(nnz, rank, size);
    std::vector<std::uint8_t>& mine = marked[static_cast<std::size_t>(rank)];
    mine.resize(possible);
    std::array<std::uint32_t, 512> places;
    for (std::uint64_t begin = share.begin; begin < share.end; begin += places.size()) {
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(share.end - begin, places.size()));
      places.fill(0);
      for (std::size_t k = 0; k < source.modes; ++k) {
        const Index* index = source.indices[k] + begin;
        const auto length = static_cast<std::uint32_t>(lengths[k]);
        for (std::size_t i = 0; i < count; ++i)
          places[i] = places[i] * length + static_cast<std::uint32_t>(index[i] >> source.shift);
      }
      for (std::size_t i = 0; i < count; ++i) mine[places[i]] = 1;
    }
  });
  std::uint64_t found = 0;
  for (std::size_t p = 0; p < possible; ++p)
    found += std::ranges::any_of(marked, [&](const auto& m) { return m[p] != 0; }) ? 1 : 0;
  return static_cast<double>(found);
}

template <class Index, class Value>
double estimate_distinct(const CooView<const Index, Value>& x, std::uint32_t modes, int shift, const Context& context) {
  const int threads = context.thread_count();
  TupleSource<Index> source;
  source.shift = shift;
  std::array<std::uint64_t, max_order> lengths = {};  // [source.modes]
  for (std::size_t m = 0; m < static_cast<std::size_t>(x.order); ++m) {
    if ((modes >> m & 1U) == 0) continue;
    lengths[source.modes] = (x.dims[m] >> static_cast<unsigned>(shift)) + 1;
    source.indices[source.modes] = x.indices[m];
    source.factors[source.modes++] = mixed(m + 1) | 1U;
  }
  const std::uint64_t possible = possible_tuples(source, lengths);
  if (possible <= most_marked && possible <= std::max<std::uint64_t>(kept, x.nnz))
    return count_marked(source, lengths, possible, x.nnz, threads);
  std::vector<SmallestHashes> found(static_cast<std::size_t>(threads));
  cpu::run_team(threads, [&](int rank, int size) {
    const cpu::Share share = cpu::share_of(x.nnz, rank, size);
    SmallestHashes& mine = found[static_cast<std::size_t>(rank)];
    constexpr std::size_t at_once = 512;
    std::array<std::uint64_t, at_once + hash_padding> hashes;
    for (std::uint64_t begin = share.begin; begin < share.end; begin += at_once) {
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(share.end - begin, at_once));
      const std::size_t small = small_hashes(source, begin, count, mine.largest(), hashes.data());
      for (std::size_t i = 0; i < small; ++i) mine.add(hashes[i]);
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
  if (is_new)
    known->second = visit(x_, [&]<class Index, class Value>(const CooView<Index, Value>& v) {
      return estimate_distinct(v, bits, shift, context_);
    });
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

double TensorSample::occurring(int mode) const {
  if (8 * dim(mode) <= nnz()) return dim(mode);
  return std::min(distinct({&mode, 1}), dim(mode));
}

double TensorSample::nonzeros_per_block() const {
  std::vector<int> all(static_cast<std::size_t>(order()));
  std::iota(all.begin(), all.end(), 0);
  return std::max(1.0, nnz() / std::max(1.0, distinct(all, 5)));
}

double TensorSample::largest_share(int mode, int shift) const {
  if (x_.nnz() == 0) return 0;
  const std::uint64_t step = x_.nnz() / 4096 + 1;
  return std::visit(
      [&](const auto& all) {
        std::vector<std::uint64_t> seen;
        for (std::uint64_t first = 0; first < x_.nnz(); first += step) {
          const std::uint64_t z = first + (first * 0x9E3779B97F4A7C15U >> 32U) % step;  // not at equal distances
          if (z < x_.nnz()) seen.push_back(std::uint64_t{all[z]} >> static_cast<unsigned>(shift));
        }
        std::ranges::sort(seen);
        std::size_t most = 0;
        for (std::size_t i = 0, first = 0; i < seen.size(); ++i) {
          if (seen[i] != seen[first]) first = i;
          most = std::max(most, i - first + 1);
        }
        return seen.empty() ? 0.0 : static_cast<double>(most) / static_cast<double>(seen.size());
      },
      x_.indices[static_cast<std::size_t>(mode)]);
}

const ValueCode& TensorSample::value_code() const {
  if (!value_code_) value_code_ = ValueCode::of(x_, context_);
  return *value_code_;
}

}  // namespace polyad
