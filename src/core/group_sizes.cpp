// SPDX-License-Identifier: MIT
#include "core/group_sizes.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "backends/cpu/threads.hpp"

namespace polyad {

namespace {

using radix::KeyLayout;
using radix::uint128;

constexpr std::string_view purpose = "the keys of the statistics";
using Tallies = std::vector<GroupTally>;  // one per thread

template <class Index>
using Indices = std::array<Index*, max_order>;

template <class Index>
bool same_group(const Indices<Index>& indices, std::span<const int> modes, std::uint64_t a, std::uint64_t b) {
  return std::all_of(modes.begin(), modes.end(), [&](int m) {
    const Index* index = indices[static_cast<std::size_t>(m)];
    return index[a] == index[b];
  });
}

// Groups that are runs already. A thread takes the groups that begin in its share.
template <class Index>
void count_runs(const Indices<Index>& indices, std::span<const int> modes, std::uint64_t n, Tallies& tallies) {
  cpu::run_team(static_cast<int>(tallies.size()), [&](int rank, int size) {
    const cpu::Share s = cpu::share_of(n, rank, size);
    GroupTally& tally = tallies[static_cast<std::size_t>(rank)];
    std::uint64_t begin = s.begin;
    while (begin > 0 && begin < s.end && same_group(indices, modes, begin - 1, begin)) ++begin;
    while (begin < s.end) {
      std::uint64_t end = begin + 1;
      while (end < n && same_group(indices, modes, begin, end)) ++end;
      tally.add(end - begin);
      begin = end;
    }
  });
}

// One counter per key and thread.
template <class Index>
void count_cells(const Indices<Index>& indices, const KeyLayout& layout, std::uint64_t n, const Context& context,
                 Tallies& tallies) {
  const std::size_t cells = std::size_t{1} << static_cast<unsigned>(layout.bits);
  const auto team = static_cast<int>(tallies.size());
  Buffer<std::uint64_t> counts(context, cells * tallies.size(), purpose);  // [team][cells]
  cpu::run_team(team, [&](int rank, int size) {
    const cpu::Share s = cpu::share_of(n, rank, size);
    std::uint64_t* mine = counts.data() + static_cast<std::size_t>(rank) * cells;
    std::array<std::uint32_t, radix::block_records> keys;
    for (std::uint64_t begin = s.begin; begin < s.end;) {
      const auto some = static_cast<std::size_t>(std::min<std::uint64_t>(s.end - begin, keys.size()));
      layout.pack(indices, begin, some, keys.data());
      for (std::size_t i = 0; i < some; ++i) ++mine[keys[i]];
      begin += some;
    }
  });
  cpu::run_team(team, [&](int rank, int size) {
    const cpu::Share s = cpu::share_of(cells, rank, size);
    for (std::uint64_t c = s.begin; c < s.end; ++c) {
      std::uint64_t sum = 0;
      for (std::size_t t = 0; t < tallies.size(); ++t) sum += counts[t * cells + c];
      if (sum > 0) tallies[static_cast<std::size_t>(rank)].add(sum);
    }
  });
}

// Runs of equal keys in sorted buckets: nothing is written back.
template <class Key>
struct KeyRuns {
  Tallies& tallies;

  void sorted(int rank, std::uint64_t, std::size_t count, const Key* keys) const {
    GroupTally& tally = tallies[static_cast<std::size_t>(rank)];
    for (std::size_t begin = 0; begin < count;) {
      std::size_t end = begin + 1;
      while (end < count && keys[end] == keys[begin]) ++end;
      tally.add(end - begin);
      begin = end;
    }
  }
  void equal(int rank, std::uint64_t, std::uint64_t count, const Key*, int) const {
    tallies[static_cast<std::size_t>(rank)].add(count);
  }
};

template <class Key, class Index>
void count_keys(const Indices<Index>& indices, const KeyLayout& layout, std::uint64_t n, const Context& context,
                Tallies& tallies) {
  const radix::KeySource<Key, Index> source{&layout, indices};
  radix::SpareStore<Key> other;
  KeyRuns<Key> runs{tallies};
  radix::sort<Key>({n, {layout.bits}, purpose}, source, other, runs, context);
}

// Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators" (the finaliser of splitmix64).
std::uint64_t mixed(std::uint64_t z) {
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

// Above 128 bits: (hash of the indices, position), hash = sum over the modes of mixed(index, mode).
template <class Rec, class Index>
struct HashSource {
  const Indices<Index>& indices;
  std::span<const int> modes;
  std::uint64_t mask;

  void load_keys(std::uint64_t begin, std::size_t count, std::uint64_t* out, int) const {
    std::fill_n(out, count, std::uint64_t{0});
    for (const int m : modes) {
      const Index* index = indices[static_cast<std::size_t>(m)] + begin;
      const std::uint64_t salt = (static_cast<std::uint64_t>(m) + 1) * 0x9e3779b97f4a7c15U;
      for (std::size_t i = 0; i < count; ++i) out[i] += mixed(index[i] + salt);
    }
    for (std::size_t i = 0; i < count; ++i) out[i] &= mask;
  }
  void load(std::uint64_t begin, std::size_t count, Rec* out) const {
    std::array<std::uint64_t, radix::block_records> keys;
    for (std::size_t done = 0; done < count; done += keys.size()) {
      const std::size_t some = std::min(count - done, keys.size());
      load_keys(begin + done, some, keys.data(), 0);
      for (std::size_t i = 0; i < some; ++i)
        out[done + i] = {std::bit_cast<decltype(Rec::words)>(keys[i]),
                         static_cast<decltype(Rec::payload)>(begin + done + i)};
    }
  }
};

// Equal hashes are compared index by index, so the count is exact; where different groups collide they are sorted
// apart.
template <class Rec, class Index>
struct HashRuns {
  const Indices<Index>& indices;
  std::span<const int> modes;
  Tallies& tallies;

  void run(GroupTally& tally, const Rec* records, std::size_t count) const {
    const std::uint64_t first = records[0].payload;
    const bool one_group = std::all_of(records, records + count,
                                       [&](const Rec& r) { return same_group(indices, modes, first, r.payload); });
    if (one_group) return tally.add(count);
    std::vector<std::uint64_t> positions(count);
    std::transform(records, records + count, positions.begin(), [](const Rec& r) { return r.payload; });
    std::sort(positions.begin(), positions.end(), [&](std::uint64_t a, std::uint64_t b) {
      for (const int m : modes) {
        const Index* index = indices[static_cast<std::size_t>(m)];
        if (index[a] != index[b]) return index[a] < index[b];
      }
      return false;
    });
    for (std::size_t begin = 0; begin < count;) {
      std::size_t end = begin + 1;
      while (end < count && same_group(indices, modes, positions[begin], positions[end])) ++end;
      tally.add(end - begin);
      begin = end;
    }
  }
  void sorted(int rank, std::uint64_t, std::size_t count, const Rec* records) const {
    for (std::size_t begin = 0; begin < count;) {
      std::size_t end = begin + 1;
      while (end < count && key_of(records[end]) == key_of(records[begin])) ++end;
      run(tallies[static_cast<std::size_t>(rank)], records + begin, end - begin);
      begin = end;
    }
  }
  void equal(int rank, std::uint64_t, std::uint64_t count, const Rec* records, int) const {
    run(tallies[static_cast<std::size_t>(rank)], records, static_cast<std::size_t>(count));
  }
};

template <class Position, class Index>
void count_hashes(const Indices<Index>& indices, std::span<const int> modes, std::uint64_t n, std::uint64_t mask,
                  const Context& context, Tallies& tallies) {
  using Rec = radix::Record<std::uint64_t, Position>;
  const HashSource<Rec, Index> source{indices, modes, mask};
  radix::SpareStore<Rec> other;
  HashRuns<Rec, Index> runs{indices, modes, tallies};
  radix::sort<Rec>({n, {64}, purpose}, source, other, runs, context);
}

}  // namespace

void GroupTally::add(const GroupTally& other) {
  count += other.count;
  nnz += other.nnz;
  max = std::max(max, other.max);
  squares += other.squares;
  for (std::size_t b = 0; b < histogram.size(); ++b) histogram[b] += other.histogram[b];
}

GroupStatistics GroupTally::statistics() const {
  GroupStatistics s;
  if (count == 0) return s;
  s.count = count;
  s.max = max;
  s.histogram = histogram;
  s.mean = static_cast<double>(nnz) / static_cast<double>(count);
  // With nnz = q count + r and D = sum (size - q)^2, both exact:
  //   variance = D / count - (r / count)^2 = (D - r + r (count - r) / count) / count
  // where no term is negative (D >= sum (size - q) = r), so nothing cancels.
  const std::uint64_t q = nnz / count;
  const std::uint64_t r = nnz % count;
  const uint128 deviations = squares - static_cast<uint128>(2 * q) * nnz + static_cast<uint128>(q) * q * count;
  const auto groups = static_cast<double>(count);
  const double rest = static_cast<double>(r) * (static_cast<double>(count - r) / groups);
  s.stdev = std::sqrt((static_cast<double>(deviations - r) + rest) / groups);
  return s;
}

GroupCounter::GroupCounter(const CooTensor& x, const Context& context, Path path, std::uint64_t hash_mask)
    : x_(x), context_(context), path_(path), hash_mask_(hash_mask), sorted_by_(x.sorted_by) {
  if (sorted_by_.empty()) {
    std::vector<int> natural(x.dims.size());
    std::iota(natural.begin(), natural.end(), 0);
    if (radix::is_sorted_by(x, natural, context)) sorted_by_ = natural;
  }
  largest_ = radix::largest_indices(x, context);
}

GroupTally GroupCounter::count(std::span<const int> modes) const {
  const std::uint64_t n = x_.nnz();
  GroupTally total;
  if (n == 0) return total;
  const KeyLayout layout(largest_, modes);
  if (layout.bits == 0) {
    total.add(n);
    return total;
  }
  const int threads = context_.thread_count();
  const auto team = static_cast<std::uint64_t>(threads);
  Tallies tallies(team);
  // Grouped already if the modes are the first ones of the sort, in any order.
  const auto prefix = sorted_by_.begin() + std::min(std::ssize(modes), std::ssize(sorted_by_));
  const bool grouped = std::ssize(modes) <= std::ssize(sorted_by_) && path_ == Path::automatic &&
                       std::all_of(sorted_by_.begin(), prefix,
                                   [&](int m) { return std::find(modes.begin(), modes.end(), m) != modes.end(); });
  // Counters: at most 2 bytes per nonzero, or 32 KiB per thread.
  const bool few_cells =
      layout.bits < 32 && path_ == Path::automatic &&
      (std::uint64_t{1} << static_cast<unsigned>(layout.bits)) <= std::max<std::uint64_t>(4096, n / (4 * team));
  visit(x_, [&]<class Index, class Value>(const CooView<Index, Value>& v) {
    if (few_cells) {
      // No more threads than there are nonzeros to pay for their counters.
      tallies.resize(std::clamp<std::uint64_t>(n >> 14U, 1, team));
      count_cells(v.indices, layout, n, context_, tallies);
    } else if (grouped) {
      count_runs(v.indices, std::span<const int>(sorted_by_).first(modes.size()), n, tallies);
    } else if (path_ == Path::hash || layout.bits > 128) {
      if (n - 1 <= std::numeric_limits<std::uint32_t>::max()) {
        count_hashes<std::uint32_t>(v.indices, modes, n, hash_mask_, context_, tallies);
      } else {
        count_hashes<std::uint64_t>(v.indices, modes, n, hash_mask_, context_, tallies);
      }
    } else if (layout.bits > 64) {
      count_keys<uint128>(v.indices, layout, n, context_, tallies);
    } else if (layout.bits > 32) {
      count_keys<std::uint64_t>(v.indices, layout, n, context_, tallies);
    } else {
      count_keys<std::uint32_t>(v.indices, layout, n, context_, tallies);
    }
  });
  for (const GroupTally& t : tallies) total.add(t);
  return total;
}

}  // namespace polyad
