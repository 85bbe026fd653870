// SPDX-License-Identifier: MIT
#include "formats/coo_perm/coo_perm.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "backends/cpu/threads.hpp"
#include "core/radix_sort.hpp"
#include "formats/coo/coo.hpp"

namespace polyad {

namespace {

/// Indices of one mode with their positions, as records of a radix sort.
template <class Rec, class Index>
struct IndexSource {
  const Index* index = nullptr;

  void load(std::uint64_t begin, std::size_t count, Rec* out) const {
    using Key = radix::KeyOf<Rec>;
    for (std::size_t i = 0; i < count; ++i)
      out[i] = {std::bit_cast<decltype(Rec::words)>(static_cast<Key>(index[begin + i])),
                static_cast<decltype(Rec::payload)>(begin + i)};
  }
  void load_keys(std::uint64_t begin, std::size_t count, radix::KeyOf<Rec>* out, int) const {
    std::copy_n(index + begin, count, out);
  }
};

/// Writes sorted positions.
template <class Rec, class Position>
struct KeepPositions {
  Position* to = nullptr;

  void sorted(int, std::uint64_t begin, std::size_t count, const Rec* records) const {
    for (std::size_t i = 0; i < count; ++i) to[begin + i] = records[i].payload;
  }
  void equal(int, std::uint64_t begin, std::uint64_t count, const Rec* records, int team) const {
    cpu::parallel_ranges(team, count, [&](std::uint64_t b, std::uint64_t e) {
      for (std::uint64_t i = b; i < e; ++i) to[begin + i] = records[i].payload;
    });
  }
};

/// The positions of nonzeros sorted by their index, stable. Peak: 8 bytes a nonzero next to the result (16 or more with
/// wide indices or positions), twice that when a bucket of equal leading digits does not fit the cache.
template <class Position, class Index>
Buffer<Position> sorted_positions(const Index* index, std::uint64_t nnz, std::uint64_t largest,
                                  const Context& context) {
  Buffer<Position> positions(context, nnz, "a permutation");
  using Rec = radix::Record<std::remove_const_t<Index>, Position>;
  const IndexSource<Rec, std::remove_const_t<Index>> source{index};
  radix::SpareStore<Rec> spare;
  KeepPositions<Rec, Position> keep{positions.data()};
  radix::sort<Rec>({nnz, {radix::width_of(largest)}, "sorting a mode of the permuted tensor"}, source, spare, keep,
                   context);
  return positions;
}

}  // namespace

CooPerm CooPerm::build(const CooTensor& x, const FormatOptions&, const Context& context) {
  CooPerm c{shape_of(x), {}, {}, {}};
  const std::size_t order = x.dims.size();
  const std::vector<std::uint64_t> largest = radix::largest_indices(x, context);
  with_types(c.tensor_shape, [&]<class Index, class Value>() {
    c.indices = Buffer<Index>(context, x.nnz() * order, "the indices of the permuted tensor");
    c.values = Buffer<Value>(context, x.nnz(), "the values of the permuted tensor");
    visit(x, [&]<class I, class V>(const CooView<I, V>& v) {
      cpu::parallel_ranges(context.thread_count(), v.nnz, [&](std::uint64_t begin, std::uint64_t end) {
        Index* to = typed<Index>(c.indices) + begin * order;
        for (std::uint64_t k = begin; k < end; ++k)
          for (std::size_t m = 0; m < order; ++m) *to++ = static_cast<Index>(v.indices[m][k]);
        std::copy(v.values + begin, v.values + end, typed<Value>(c.values) + begin);
      });
      for (std::size_t m = 0; m < order; ++m) {
        if (v.nnz <= std::numeric_limits<std::uint32_t>::max()) {
          c.permutations.emplace_back(sorted_positions<std::uint32_t>(v.indices[m], v.nnz, largest[m], context));
        } else {
          c.permutations.emplace_back(sorted_positions<std::uint64_t>(v.indices[m], v.nnz, largest[m], context));
        }
      }
    });
  });
  return c;
}

std::uint64_t CooPerm::bytes() const {
  std::uint64_t sum = bytes_in(indices) + bytes_in(values);
  for (const IndexBuffer& p : permutations) sum += bytes_in(p);
  return sum;
}

namespace {

SweepEstimate estimate_coo_perm(const EstimateRequest& q) {
  SweepEstimate e;
  // A nonzero lies anywhere: its indices and its value are as many cache lines, though neighbours share some.
  e.ns = nonzero_loops_ns(q, {.overhead = 7, .adds = false});
  e.build_ns = 25 * q.sample.nnz() * q.sample.order();
  e.bytes = q.sample.nnz() * (q.index_bytes() * q.sample.order() + q.value_bytes() + 4 * q.sample.order());
  e.deterministic = true;
  e.why = "one pass per mode in its order, through a permutation";
  return e;
}

}  // namespace

extern const FormatClass coo_perm_format;
const FormatClass coo_perm_format = {
    {{"coo-perm", "coordinates and, per mode, the permutation that sorts them by it"},
     "Phipps and Kolda, Software for sparse tensor decomposition on emerging computing architectures (2019)",
     false,
     "no atomic additions in any mode, one copy of the values"},
    [](const CooTensor& x, const FormatOptions& options, const Context& context) {
      return erased(coo_perm_format, options, CooPerm::build(x, options, context));
    },
    [](const CooTensor& x, const TensorStatistics& statistics, const FormatOptions& options, const Context& context) {
      StoragePrediction p = predict_coo(x, statistics, options, context);
      const double positions = static_cast<double>(x.order()) * static_cast<double>(x.nnz());
      p.words += positions;
      p.bytes += positions * (x.nnz() <= std::numeric_limits<std::uint32_t>::max() ? 4 : 8);
      p.formula = "2*N*nnz";
      return p;
    },
    estimate_coo_perm};

}  // namespace polyad
