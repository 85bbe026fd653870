// SPDX-License-Identifier: MIT
#include "formats/hicoo/blocks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/bit_layout.hpp"
#include "polyad/error.hpp"
#include "polyad/hicoo.hpp"

namespace polyad::hicoo {

namespace {

constexpr std::string_view purpose = "the keys of the blocks";
/// What the factor rows of one block may take: the L2 cache of current processors has 1 to 2 MiB.
constexpr std::uint64_t cache_bytes = std::uint64_t{1} << 20U;
constexpr int largest_block_bits = 8;  // offsets are bytes
constexpr int usual_block_bits = 7;
constexpr std::uint64_t fewest_tasks = 4;  // per thread
constexpr std::uint64_t most_tasks = 100;
/// Superblocks are enlarged until they have so many nonzeros: those of one range of rows lie apart in memory.
constexpr double enough_nonzeros = 1024;
/// So many ranges of rows are never useful, and their table might not fit.
constexpr std::uint64_t most_ranges = std::uint64_t{1} << 24U;

/// Coordinates of blocks as keys.
template <class Key, class Index>
struct BlockKeys {
  const BitLayout* layout = nullptr;
  std::array<Index*, max_order> indices = {};

  void load(std::uint64_t begin, std::size_t count, Key* out) const { layout->encode_keys(indices, begin, count, out); }
  void load_keys(std::uint64_t begin, std::size_t count, Key* out, int) const { load(begin, count, out); }
};

radix::uint128 log_of(std::uint64_t size) {
  return static_cast<radix::uint128>(std::llround(std::log2(static_cast<double>(size)) * 0x1p40));
}

/// Runs of equal keys in sorted buckets. A block never lies in two buckets, a superblock may: it is counted in both,
/// and the buckets say where they begin and end.
template <class Key>
struct BlockRuns {
  struct Edge {
    std::uint64_t begin;
    Key first;
    Key last;
  };
  struct alignas(64) Tally {
    BlockCounts counts;
    std::vector<Edge> edges;
  };
  int superblock_shift;
  std::vector<Tally> tallies;  // [thread]

  /// A shift by all bits of the type is not defined; then there is one superblock.
  [[nodiscard]] Key superblock_of(Key key) const {
    return superblock_shift < static_cast<int>(8 * sizeof(Key)) ? static_cast<Key>(key >> superblock_shift) : Key{0};
  }
  void sorted(int rank, std::uint64_t begin, std::size_t count, const Key* keys) {
    Tally& t = tallies[static_cast<std::size_t>(rank)];
    t.edges.push_back({begin, superblock_of(keys[0]), superblock_of(keys[count - 1])});
    ++t.counts.superblocks;
    std::size_t first = 0;
    for (std::size_t i = 1; i <= count; ++i) {
      if (i < count && keys[i] == keys[first]) continue;
      ++t.counts.blocks;
      t.counts.log_sum += log_of(i - first);
      if (i < count && superblock_of(keys[i]) != superblock_of(keys[first])) ++t.counts.superblocks;
      first = i;
    }
  }
  void equal(int rank, std::uint64_t begin, std::uint64_t count, const Key* keys, int) {
    Tally& t = tallies[static_cast<std::size_t>(rank)];
    const Key superblock = superblock_of(keys[0]);
    t.edges.push_back({begin, superblock, superblock});
    ++t.counts.superblocks;
    ++t.counts.blocks;
    t.counts.log_sum += log_of(count);
  }
  [[nodiscard]] BlockCounts total() const {
    BlockCounts all;
    std::vector<Edge> edges;
    for (const Tally& t : tallies) {
      all.blocks += t.counts.blocks;
      all.superblocks += t.counts.superblocks;
      all.log_sum += t.counts.log_sum;
      edges.insert(edges.end(), t.edges.begin(), t.edges.end());
    }
    std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.begin < b.begin; });
    for (std::size_t i = 1; i < edges.size(); ++i)
      if (edges[i - 1].last == edges[i].first) --all.superblocks;
    return all;
  }
};

template <class Key>
BlockCounts count_by_keys(const CooTensor& x, const BitLayout& layout, const Sides& sides, const Context& context) {
  return visit(x, [&]<class Index, class Value>(const CooView<Index, Value>& v) {
    const BlockKeys<Key, Index> source{&layout, v.indices};
    radix::SpareStore<Key> spare;
    BlockRuns<Key> runs{layout.bits_below(sides.superblock_bits), {}};
    runs.tallies.resize(static_cast<std::size_t>(context.thread_count()));
    radix::sort<Key>({v.nnz, {layout.bits()}, purpose}, source, spare, runs, context);
    return runs.total();
  });
}

/// Any number of bits, on one thread: tensors of such shapes are rare.
BlockCounts count_by_order(const CooTensor& x, const BitLayout& layout, const Sides& sides, const Context& context) {
  const Buffer<std::uint64_t> order = order_by_keys(x, layout, context);
  return visit(x, [&]<class Index, class Value>(const CooView<Index, Value>& v) {
    BlockCounts counts;
    const auto differ = [&](std::uint64_t a, std::uint64_t b, int bits) {
      for (std::size_t m = 0; m < v.dims.size(); ++m)
        if ((std::uint64_t{v.indices[m][a]} ^ v.indices[m][b]) >> static_cast<unsigned>(bits) != 0) return true;
      return false;
    };
    std::uint64_t first = 0;
    for (std::uint64_t k = 1; k <= v.nnz; ++k) {
      if (k < v.nnz && !differ(order[k - 1], order[k], sides.block_bits)) continue;
      ++counts.blocks;
      counts.log_sum += log_of(k - first);
      counts.superblocks += k == v.nnz || differ(order[k - 1], order[k], sides.superblock_bits) ? 1 : 0;
      first = k;
    }
    return counts;
  });
}

int guided_superblock_bits(const CooTensor& x, int block_bits, const Context& context) {
  const auto threads = static_cast<std::uint64_t>(context.deterministic ? 16 : context.thread_count());
  const auto cells = [&](const Sides& s) {  // superblocks, if all had nonzeros
    double product = 1;
    for (const std::uint64_t d : x.dims) product *= static_cast<double>(s.ranges(d));
    return product;
  };
  const auto all_have = [&](const Sides& s, std::uint64_t tasks) {
    return std::all_of(x.dims.begin(), x.dims.end(), [&](std::uint64_t d) { return s.ranges(d) >= tasks; });
  };
  const auto too_many = [&](const Sides& s) {
    return std::any_of(x.dims.begin(), x.dims.end(),
                       [&](std::uint64_t d) { return s.ranges(d) > most_tasks * threads; });
  };
  Sides s{block_bits, block_bits};
  while (too_many(s)) ++s.superblock_bits;
  while (cells(s) * enough_nonzeros > static_cast<double>(x.nnz()) && s.superblock_bits < 63 &&
         all_have({block_bits, s.superblock_bits + 1}, fewest_tasks * threads))
    ++s.superblock_bits;
  return s.superblock_bits;
}

}  // namespace

Sides sides_for(const CooTensor& x, const FormatOptions& options, const Context& context) {
  Sides s{options.block_bits, options.superblock_bits};
  if (s.block_bits < 0 || s.block_bits > largest_block_bits)
    throw usage_error(
        fmt::format("hicoo: blocks of side 2^{}; offsets within a block have 8 bits, so it must be 2^1 to "
                    "2^{}",
                    s.block_bits, largest_block_bits));
  if (s.block_bits == 0) {
    s.block_bits = usual_block_bits;
    const double row = static_cast<double>(x.order()) * static_cast<double>(options.rank) *
                       static_cast<double>(bytes_of(x.precision()));
    while (s.block_bits > 1 && std::ldexp(row, s.block_bits) > static_cast<double>(cache_bytes)) --s.block_bits;
  }
  const std::uint64_t longest = x.dims.empty() ? 0 : *std::max_element(x.dims.begin(), x.dims.end());
  if (s.superblock_bits == 0) s.superblock_bits = guided_superblock_bits(x, s.block_bits, context);
  if (s.superblock_bits < s.block_bits || s.superblock_bits > 63)
    throw usage_error(fmt::format("hicoo: superblocks of side 2^{} with blocks of side 2^{}; they must be 2^{} to 2^63",
                                  s.superblock_bits, s.block_bits, s.block_bits));
  if (s.ranges(longest) > most_ranges)
    throw Error(
        ErrorKind::limit,
        fmt::format("hicoo: superblocks of side 2^{} cut a mode of length {} into {} ranges, more than {}; take "
                    "larger ones",
                    s.superblock_bits, longest, s.ranges(longest), most_ranges));
  return s;
}

std::vector<std::uint64_t> largest_for_keys(const CooTensor& x, const Context& context) {
  std::vector<std::uint64_t> largest = x.dims;
  int bits = 0;
  for (std::uint64_t& d : largest) bits += radix::width_of(d -= d > 0 ? 1 : 0);
  return bits > 64 ? radix::largest_indices(x, context) : largest;
}

BlockCounts count_blocks(const CooTensor& x, const Sides& sides, const Context& context) {
  if (x.nnz() == 0) return {};
  const BitLayout layout(largest_for_keys(x, context), {.skipped = sides.block_bits});
  if (layout.bits() <= 64) return count_by_keys<std::uint64_t>(x, layout, sides, context);
  if (layout.bits() <= 128) return count_by_keys<radix::uint128>(x, layout, sides, context);
  return count_by_order(x, layout, sides, context);
}

}  // namespace polyad::hicoo

namespace polyad {

HicooFacts hicoo_facts(const CooTensor& x, const Context& context, const FormatOptions& options) {
  const hicoo::Sides sides = hicoo::sides_for(x, options, context);
  const hicoo::BlockCounts counts = hicoo::count_blocks(x, sides, context);
  HicooFacts f;
  f.block_bits = sides.block_bits;
  f.blocks = counts.blocks;
  f.alpha_limit = (32.0 - 8.0) / (32.0 + 64.0 / static_cast<double>(std::max(x.order(), 1)));
  if (counts.blocks == 0) return f;
  const auto blocks = static_cast<double>(counts.blocks);
  f.alpha_b = blocks / static_cast<double>(x.nnz());
  f.mean_nonzeros = std::exp2(static_cast<double>(counts.log_sum) * 0x1p-40 / blocks);
  f.c_b = std::ldexp(f.mean_nonzeros, -sides.block_bits);
  return f;
}

}  // namespace polyad
