// SPDX-License-Identifier: MIT
#include "formats/hicoo/hicoo.hpp"

#include <fmt/format.h>

#include <numeric>

#include "backends/cpu/threads.hpp"
#include "core/bit_layout.hpp"

namespace polyad {

namespace {

/// The sorted nonzeros by their keys.
template <class Index, class Value>
struct ByKeys {
  const BitLayout& layout;
  const KeyedNonzeros<Value>& sorted;

  void load(std::uint64_t first, std::size_t count, int order, NonzeroBlock<Index, Value>& to) const {
    for (int m = 0; m < order; ++m)
      layout.decode(sorted.keys.data() + first * sorted.key_words, sorted.key_words, count, m, to.index_room(m));
  }
};

/// The sorted nonzeros by their positions in the tensor.
template <class Index, class Value>
struct ByOrder {
  const CooTensor& x;
  const Buffer<std::uint64_t>& positions;

  void load(std::uint64_t first, std::size_t count, int order, NonzeroBlock<Index, Value>& to) const {
    for (int m = 0; m < order; ++m) {
      Index* room = to.index_room(m);
      std::visit(
          [&](const auto& from) {
            for (std::size_t i = 0; i < count; ++i) room[i] = static_cast<Index>(from[positions[first + i]]);
          },
          x.indices[static_cast<std::size_t>(m)]);
    }
  }
};

/// Cuts n items into runs on all threads: scan(begin, end, found) calls found(k) for the k in [begin, end) where a run
/// begins, in order. First they are counted, then prepare(count) is called, then emit(run, k) for each.
template <class Scan, class Prepare, class Emit>
void cut(int threads, std::uint64_t n, const Scan& scan, const Prepare& prepare, const Emit& emit) {
  const auto team = static_cast<int>(std::clamp<std::uint64_t>(n >> 13U, 1, static_cast<unsigned>(threads)));
  std::vector<std::uint64_t> runs(static_cast<std::size_t>(team) + 1);
  cpu::run_team(team, [&](int rank, int size) {
    const cpu::Share s = cpu::share_of(n, rank, size);
    std::uint64_t count = 0;
    scan(s.begin, s.end, [&](std::uint64_t) { ++count; });
    runs[static_cast<std::size_t>(rank) + 1] = count;
  });
  std::partial_sum(runs.begin(), runs.end(), runs.begin());
  prepare(runs.back());
  cpu::run_team(team, [&](int rank, int size) {
    const cpu::Share s = cpu::share_of(n, rank, size);
    std::uint64_t run = runs[static_cast<std::size_t>(rank)];
    scan(s.begin, s.end, [&](std::uint64_t k) { emit(run++, k); });
  });
}

/// Blocks: bptr, binds and einds.
template <class Index, class Value, class Source>
void make_blocks(Hicoo& h, const Source& source, const Context& context) {
  const int order = h.tensor_shape.order();
  const auto modes = static_cast<std::size_t>(order);
  const auto bits = static_cast<unsigned>(h.sides.block_bits);
  const std::uint64_t nnz = h.tensor_shape.nnz;
  h.einds = Buffer<std::uint8_t>(context, modes * nnz + Hicoo::lanes, "the offsets of hicoo", Paging::plain);
  cut(
      context.thread_count(), nnz,
      [&](std::uint64_t begin, std::uint64_t end, const auto& found) {
        NonzeroBlock<Index, Value> block(order);
        std::array<Index, radix::block_records> differ;
        for (std::uint64_t first = begin; first < end; first += differ.size()) {
          const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(end - first, differ.size()));
          const std::size_t before = first > 0 ? 1 : 0;  // one more, to compare the first with
          source.load(first - before, count + before, order, block);
          differ.fill(0);
          for (std::size_t m = 0; m < modes; ++m) {
            const Index* index = block.indices[m] + before;
            std::uint8_t* offsets = h.einds.data() + m * nnz + first;
            const auto mask = static_cast<Index>((1U << bits) - 1);
            for (std::size_t i = 0; i < count; ++i) offsets[i] = static_cast<std::uint8_t>(index[i] & mask);
            for (std::size_t i = 1 - before; i < count; ++i) differ[i] |= (index[i] ^ *(index + i - 1)) >> bits;
          }
          if (before == 0) differ[0] = 1;
          for (std::size_t i = 0; i < count; ++i)
            if (differ[i] != 0) found(first + i);
        }
      },
      [&](std::uint64_t blocks) {
        h.bptr = Buffer<std::uint64_t>(context, blocks + 1, "the block pointers of hicoo", Paging::plain);
        h.binds = Buffer<Index>(context, blocks * modes, "the block indices of hicoo", Paging::plain);
        h.bptr[blocks] = nnz;
      },
      [&](std::uint64_t run, std::uint64_t k) { h.bptr[run] = k; });
  Index* corners = typed<Index>(h.binds);
  cpu::parallel_ranges(
      context.thread_count(), h.blocks(),
      [&](std::uint64_t begin, std::uint64_t end) {
        NonzeroBlock<Index, Value> block(order);
        for (std::uint64_t b = begin; b < end; ++b) {
          source.load(h.bptr[b], 1, order, block);
          for (std::size_t m = 0; m < modes; ++m) corners[b * modes + m] = block.indices[m][0] >> bits;
        }
      },
      1024);
}

/// Superblocks: blocks that agree in the high bits lie together, as Morton order puts the levels of bits on top of each
/// other.
template <class Index>
void make_superblocks(Hicoo& h, const Context& context) {
  const std::size_t modes = h.tensor_shape.dims.size();
  const auto bits = static_cast<unsigned>(h.sides.superblock_bits - h.sides.block_bits);
  const Index* corners = typed<Index>(h.binds);
  cut(
      context.thread_count(), h.blocks(),
      [&](std::uint64_t begin, std::uint64_t end, const auto& found) {
        for (std::uint64_t b = begin; b < end; ++b) {
          const Index* corner = corners + b * modes;
          bool differs = b == 0;
          for (std::size_t m = 0; m < modes && b > 0; ++m)
            differs |= static_cast<std::uint64_t>(corner[m] ^ *(corner + m - modes)) >> bits != 0;
          if (differs) found(b);
        }
      },
      [&](std::uint64_t superblocks) {
        h.lptr = Buffer<std::uint64_t>(context, superblocks + 1, "the superblocks of hicoo");
        h.lptr[superblocks] = h.blocks();
      },
      [&](std::uint64_t run, std::uint64_t b) { h.lptr[run] = b; });
}

template <class Index>
void make_schedule(Hicoo& h, std::size_t mode, const Context& context) {
  const std::size_t modes = h.tensor_shape.dims.size();
  const std::uint64_t ranges = h.sides.ranges(h.tensor_shape.dims[mode]);
  const auto bits = static_cast<unsigned>(h.sides.superblock_bits - h.sides.block_bits);
  const auto range_of = [&](std::uint64_t s) {
    return static_cast<std::uint64_t>(typed<Index>(h.binds)[h.lptr[s] * modes + mode]) >> bits;
  };
  HicooSchedule& schedule = h.schedules[mode];
  schedule.begins = Buffer<std::uint64_t>(context, ranges + 1, "the schedule of hicoo");
  schedule.superblocks = Buffer<std::uint64_t>(context, h.superblocks(), "the schedule of hicoo", Paging::plain);
  schedule.nonzeros = Buffer<std::uint64_t>(context, ranges, "the schedule of hicoo");
  for (std::uint64_t s = 0; s < h.superblocks(); ++s) {
    const std::uint64_t range = range_of(s);
    ++schedule.begins[range + 1];
    schedule.nonzeros[range] += h.bptr[h.lptr[s + 1]] - h.bptr[h.lptr[s]];
  }
  for (std::uint64_t r = 0; r < ranges; ++r) {
    const std::uint64_t count = schedule.begins[r + 1];
    schedule.independent += count > 0 ? 1 : 0;
    schedule.iterations = std::max(schedule.iterations, count);
    schedule.heaviest = std::max(schedule.heaviest, schedule.nonzeros[r]);
    schedule.begins[r + 1] += schedule.begins[r];
  }
  std::vector<std::uint64_t> next(schedule.begins.begin(), schedule.begins.end());
  for (std::uint64_t s = 0; s < h.superblocks(); ++s) schedule.superblocks[next[range_of(s)]++] = s;
}

}  // namespace

std::uint64_t Hicoo::bytes() const {
  std::uint64_t sum = bptr.bytes() + einds.bytes() + lptr.bytes() + bytes_in(binds) + bytes_in(values);
  for (const HicooSchedule& s : schedules) sum += s.bytes();
  return sum;
}

Hicoo Hicoo::build(const CooTensor& x, const FormatOptions& options, const Context& context) {
  Hicoo h;
  h.tensor_shape = shape_of(x);
  h.reproducible = context.deterministic;
  h.sides = hicoo::sides_for(x, options, context);
  h.schedules.resize(x.dims.size());
  const BitLayout layout(hicoo::largest_for_keys(x, context), {.plain = h.sides.block_bits});
  with_types(h.tensor_shape, [&]<class Index, class Value>() {
    if (layout.bits() <= 128) {
      KeyedNonzeros<Value> sorted = sorted_by_keys<Value>(x, layout, context);
      make_blocks<Index, Value>(h, ByKeys<Index, Value>{layout, sorted}, context);
      h.values = std::move(sorted.values);
    } else {
      const Buffer<std::uint64_t> positions = order_by_keys(x, layout, context);
      make_blocks<Index, Value>(h, ByOrder<Index, Value>{x, positions}, context);
      Buffer<Value> in_order(context, x.nnz(), "the values", Paging::plain);
      const Value* from = typed<Value>(x.values);
      cpu::parallel_ranges(context.thread_count(), x.nnz(), [&](std::uint64_t begin, std::uint64_t end) {
        for (std::uint64_t k = begin; k < end; ++k) in_order[k] = from[positions[k]];
      });
      h.values = std::move(in_order);
    }
    make_superblocks<Index>(h, context);
    cpu::run_team(std::min(context.thread_count(), h.tensor_shape.order()), [&](int rank, int size) {
      for (auto m = static_cast<std::size_t>(rank); m < x.dims.size(); m += static_cast<std::size_t>(size))
        make_schedule<Index>(h, m, context);
    });
  });
  return h;
}

namespace {

StoragePrediction predict_hicoo(const CooTensor& x, const TensorStatistics&, const FormatOptions& options,
                                const Context& context) {
  const hicoo::Sides sides = hicoo::sides_for(x, options, context);
  const hicoo::BlockCounts counts = hicoo::count_blocks(x, sides, context);
  const std::uint64_t order = x.dims.size();
  std::uint64_t schedules = 8 * order * counts.superblocks;
  for (const std::uint64_t d : x.dims) schedules += 8 * (2 * sides.ranges(d) + 1);
  const std::uint64_t bytes = 8 * (counts.blocks + 1) + counts.blocks * order * bytes_of(width_for(x.dims)) +
                              order * x.nnz() + Hicoo::lanes + x.nnz() * bytes_of(x.precision()) +
                              8 * (counts.superblocks + 1) + schedules;
  StoragePrediction p;
  p.words = static_cast<double>(counts.blocks * (64 + 32 * order) + 8 * order * x.nnz()) / 32;
  p.bytes = static_cast<double>(bytes);
  p.formula = "(nb*(64 + 32*N) + 8*N*nnz) / 32";
  return p;
}

SweepEstimate estimate_hicoo(const EstimateRequest& q) {
  SweepEstimate e;
  const double per_block = q.sample.nonzeros_per_block();
  const double order = q.sample.order();
  // Every block has its own loop and its own rows to start from.
  e.ns = nonzero_loops_ns(q, {.overhead = 0.7, .along_line = true, .reuse = reuse_along_line(q.sample)}) +
         5 * order * q.sample.nnz() / per_block;
  e.build_ns = 45 * q.sample.nnz();
  e.bytes = q.sample.nnz() * (order + q.value_bytes() + (8 + order * q.index_bytes()) / per_block);
  e.deterministic = true;
  e.why = fmt::format("one pass per mode in blocks of {:.1f} nonzeros", per_block);
  return e;
}

}  // namespace

extern const FormatClass hicoo_format;
const FormatClass hicoo_format = {
    {{"hicoo", "blocks in Morton order, 8-bit offsets inside"},
     "Li, Sun and Vuduc, HiCOO: hierarchical storage of sparse tensors, SC 2018",
     false,
     "small when blocks hold several nonzeros, one copy for all modes, factor rows stay in the cache"},
    [](const CooTensor& x, const FormatOptions& options, const Context& context) {
      return erased(hicoo_format, options, Hicoo::build(x, options, context));
    },
    predict_hicoo,
    estimate_hicoo};

}  // namespace polyad
