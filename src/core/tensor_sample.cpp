// SPDX-License-Identifier: MIT
#include "core/tensor_sample.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "backends/cpu/threads.hpp"
#include "core/tuple_hash.hpp"

namespace polyad {

namespace {

/// Hashes that estimates of many tuples come from at least: their standard deviation is 1 / sqrt(kept - 2).
constexpr std::size_t kept = 4096;

/// The smallest distinct hashes seen: those up to a limit that is given, else all of them or at least the `kept`
/// smallest, in an open hash table that is cut down when it is half full.
class SmallestHashes {
 public:
  static constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();
  static constexpr std::size_t table_size = 8 * kept;

  explicit SmallestHashes(std::uint64_t limit) : limit_(limit), largest_(limit) {}

  void add(std::uint64_t hash) {
    hash = std::max<std::uint64_t>(hash, 1);
    if (hash > largest_ || hash == last_) return;
    last_ = hash;
    insert(hash);
  }
  /// Hashes of other nonzeros. What the other one has let go of is not among the `kept` smallest of both.
  void add(const SmallestHashes& other) {
    was_cut_ |= other.was_cut_;
    for (const std::uint64_t h : other.slots_)
      if (h != empty) add(h);
  }

  /// No larger hash is of interest.
  [[nodiscard]] std::uint64_t largest() const { return largest_; }
  /// Whether there was a limit, and too few hashes below it for an estimate.
  [[nodiscard]] bool too_few() const { return limit_ != no_limit && used_ < fewest; }

  /// How many distinct values were seen: the same however they were shared among tables.
  [[nodiscard]] double count() {
    if (!was_cut_) return std::round(static_cast<double>(used_) / share_of(limit_));
    cut();
    return std::round(static_cast<double>(kept - 1) / share_of(largest_));
  }

  /// A limit below which there are as many hashes as fit a table with ease (a cut is 17 standard deviations away), of
  /// so many values at most.
  [[nodiscard]] static std::uint64_t limit_for(std::uint64_t values) {
    constexpr std::uint64_t wanted = table_size / 2 / 8 * 7;
    return values <= wanted ? no_limit : no_limit / values * wanted;
  }

 private:
  /// Standard deviation 2.2 %.
  static constexpr std::size_t fewest = kept / 2;
  static constexpr std::uint64_t empty = 0;  // a hash of 0 is taken for one of 1

  /// The share of all hashes up to one.
  [[nodiscard]] static double share_of(std::uint64_t hash) { return std::ldexp(static_cast<double>(hash), -64); }

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

  /// Leaves the `kept` smallest, of which there are as many.
  void cut() {
    was_cut_ = true;
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
  std::uint64_t limit_;
  std::uint64_t largest_;
  bool was_cut_ = false;
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

/// Tuples of some modes that are to be counted.
template <class Index>
struct Counting {
  TupleSource<Index> source;
  std::array<std::uint64_t, max_order> lengths = {};  // [source.modes]
  double* count = nullptr;                            // the result

  template <class Value>
  Counting(const CooView<const Index, Value>& x, const TensorSample::Tuples& tuples, double& result) : count(&result) {
    source.shift = tuples.shift;
    for (std::size_t m = 0; m < static_cast<std::size_t>(x.order); ++m) {
      if ((tuples.modes >> m & 1U) == 0) continue;
      lengths[source.modes] = (x.dims[m] >> static_cast<unsigned>(tuples.shift)) + 1;
      source.indices[source.modes] = x.indices[m];
      source.factors[source.modes++] = mixed(m + 1) | 1U;
    }
  }
};

/// Estimates all that are given, in one pass over the nonzeros: most of a pass is waiting for them. Those of which few
/// hashes are below the limit stay.
template <class Index>
void estimate_together(std::vector<Counting<Index>>& all, std::uint64_t limit, std::uint64_t nnz, int threads) {
  std::vector<std::vector<SmallestHashes>> found(static_cast<std::size_t>(threads));
  cpu::run_team(threads, [&](int rank, int size) {
    const cpu::Share share = cpu::share_of(nnz, rank, size);
    std::vector<SmallestHashes>& mine = found[static_cast<std::size_t>(rank)];
    mine.assign(all.size(), SmallestHashes(limit));
    constexpr std::size_t at_once = 512;
    std::array<std::uint64_t, at_once + hash_padding> hashes;
    for (std::uint64_t begin = share.begin; begin < share.end; begin += at_once) {
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(share.end - begin, at_once));
      for (std::size_t k = 0; k < all.size(); ++k) {
        const std::size_t small = small_hashes(all[k].source, begin, count, mine[k].largest(), hashes.data());
        for (std::size_t i = 0; i < small; ++i) mine[k].add(hashes[i]);
      }
    }
  });
  std::size_t rest = 0;
  for (std::size_t k = 0; k < all.size(); ++k) {
    SmallestHashes& whole = found[0][k];
    for (std::size_t t = 1; t < found.size(); ++t) whole.add(found[t][k]);
    *all[k].count = whole.count();
    if (whole.too_few()) all[rest++] = all[k];
  }
  all.erase(all.begin() + static_cast<std::ptrdiff_t>(rest), all.end());
}

/// Tuples that are looked at in one pass: each takes a table of hashes per thread.
constexpr std::size_t most_together = 8;

/// Those that fit a table are counted, the others estimated: of hashes up to a limit, and where these are few once more
/// without it.
template <class Index>
void count_all(const std::vector<Counting<Index>>& wanted, std::uint64_t nnz, int threads) {
  std::vector<Counting<Index>> many;
  for (const Counting<Index>& c : wanted) {
    const std::uint64_t possible = possible_tuples(c.source, c.lengths);
    if (possible <= most_marked && possible <= std::max<std::uint64_t>(kept, nnz)) {
      *c.count = count_marked(c.source, c.lengths, possible, nnz, threads);
    } else {
      many.push_back(c);
    }
  }
  for (std::size_t begin = 0; begin < many.size(); begin += most_together) {
    std::vector<Counting<Index>> some(
        many.begin() + static_cast<std::ptrdiff_t>(begin),
        many.begin() + static_cast<std::ptrdiff_t>(std::min(begin + most_together, many.size())));
    for (const std::uint64_t limit : {SmallestHashes::limit_for(nnz), SmallestHashes::no_limit})
      if (!some.empty()) estimate_together(some, limit, nnz, threads);
  }
}

std::uint32_t bits_of(std::span<const int> modes) {
  std::uint32_t bits = 0;
  for (const int m : modes) bits |= std::uint32_t{1} << static_cast<unsigned>(m);
  return bits;
}

}  // namespace

void TensorSample::look_at(std::span<const Tuples> tuples) const {
  visit(x_, [&]<class Index, class Value>(const CooView<Index, Value>& v) {
    std::vector<Counting<std::remove_const_t<Index>>> unknown;
    for (const Tuples& t : tuples)
      if (const auto [known, is_new] = known_.try_emplace({t.modes, t.shift}, 0.0); is_new)
        unknown.emplace_back(v, t, known->second);
    count_all(unknown, v.nnz, context_.thread_count());
  });
}

void TensorSample::look_at_fibres() const {
  const std::uint32_t all = all_modes();
  std::vector<Tuples> tuples = {{all, block_bits}};
  for (int m = 0; m < order(); ++m) tuples.push_back({all & ~(std::uint32_t{1} << static_cast<unsigned>(m)), 0});
  look_at(tuples);
}

double TensorSample::distinct(std::span<const int> modes) const {
  const Tuples tuples{bits_of(modes), 0};
  look_at({&tuples, 1});
  return known_.at({tuples.modes, tuples.shift});
}

double TensorSample::at_least(std::span<const int> modes) const {
  const std::uint32_t bits = bits_of(modes);
  double most = 1;
  for (const auto& [of, count] : known_)
    if (of.second == 0 && (of.first & ~bits) == 0) most = std::max(most, count);
  return most;
}

double TensorSample::fibres(int mode) const {
  std::vector<int> others;
  for (int m = 0; m < order(); ++m)
    if (m != mode) others.push_back(m);
  look_at_fibres();
  return distinct(others);
}

double TensorSample::occurring(int mode) const {
  if (8 * dim(mode) <= nnz()) return dim(mode);
  return std::min(distinct({&mode, 1}), dim(mode));
}

double TensorSample::nonzeros_per_block() const {
  look_at_fibres();
  const std::uint32_t all = all_modes();
  return std::max(1.0, nnz() / std::max(1.0, known_.at({all, block_bits})));
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
  if (!value_code_) value_code_ = std::make_shared<const ValueCode>(ValueCode::of(x_, context_));
  return *value_code_;
}

}  // namespace polyad
