// SPDX-License-Identifier: MIT
#include "formats/copies/copies.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "backends/cpu/threads.hpp"

namespace polyad {

namespace {

constexpr std::string_view purpose = "a copy of the tensor sorted by a mode";

/// The output rows that begin in a chunk.
struct ChunkRows {
  std::vector<std::uint64_t> rows;
  std::vector<std::uint64_t> begin;  // their first nonzeros
};

/// The rows that begin among nonzeros begin .. end. Level 0 is the output mode.
template <class Nonzeros>
ChunkRows rows_of(const Nonzeros& nonzeros, std::uint64_t begin, std::uint64_t end) {
  ChunkRows found;
  const auto add = [&](std::uint64_t z) {
    found.rows.push_back(nonzeros.template index<std::uint64_t>(0, z));
    found.begin.push_back(z);
  };
  if (begin == 0) add(begin++);
  std::array<std::uint8_t, 1024> levels;
  for (std::uint64_t z = begin; z < end; z += levels.size()) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(levels.size(), end - z));
    nonzeros.new_levels(z, count, 1, levels.data());
    for (std::size_t i = 0; i < count; ++i)
      if (levels[i] == 0) add(z + i);
  }
  return found;
}

SortedCopy::NarrowBuffer buffer_of(std::uint64_t bytes, std::size_t count, const Context& context) {
  if (bytes == 2) return Buffer<std::uint16_t>(context, count, purpose, Paging::plain);
  if (bytes == 4) return Buffer<std::uint32_t>(context, count, purpose, Paging::plain);
  return Buffer<std::uint64_t>(context, count, purpose, Paging::plain);
}

/// The rows of all chunks, one after the other.
void join_rows(const std::vector<ChunkRows>& chunks, SortedCopy& to, const Context& context) {
  std::vector<std::uint64_t> first(chunks.size() + 1, 0);
  for (std::size_t c = 0; c < chunks.size(); ++c) first[c + 1] = first[c] + chunks[c].rows.size();
  to.begin = Offsets(context, first.back() + 1, to.tensor_shape.nnz, purpose);
  to.begin.set(first.back(), to.tensor_shape.nnz);
  const auto join = [&]<class Index>(Buffer<Index> rows) {
    cpu::for_each_chunk(context.thread_count(), chunks.size(), [&](std::uint64_t c, int) {
      for (std::size_t i = 0; i < chunks[c].rows.size(); ++i) {
        rows[first[c] + i] = static_cast<Index>(chunks[c].rows[i]);
        to.begin.set(first[c] + i, chunks[c].begin[i]);
      }
    });
    to.rows = std::move(rows);
  };
  if (to.tensor_shape.index_width() == IndexWidth::u64) {
    join(Buffer<std::uint64_t>(context, first.back(), purpose, Paging::plain));
  } else {
    join(Buffer<std::uint32_t>(context, first.back(), purpose, Paging::plain));
  }
}

}  // namespace

std::uint64_t SortedCopy::index_bytes(const std::vector<std::uint64_t>& dims, int mode) {
  std::uint64_t longest = 0;
  for (std::size_t m = 0; m < dims.size(); ++m)
    if (static_cast<int>(m) != mode) longest = std::max(longest, dims[m]);
  return longest <= std::uint64_t{1} << 16U ? 2 : longest <= std::uint64_t{1} << 32U ? 4 : 8;
}

double SortedCopy::predicted_bytes(const CooTensor& x, int mode, double rows, bool float_values) {
  const auto nnz = static_cast<double>(x.nnz());
  const auto index = static_cast<double>(index_bytes(x.dims, mode));
  const double others = static_cast<double>(x.order()) - 1;
  return nnz * (float_values ? sizeof(float) : sizeof(double)) + others * (nnz + static_cast<double>(padding)) * index +
         rows * static_cast<double>(bytes_of(width_for(x.dims))) +
         (rows + 1) * static_cast<double>(Offsets::width_of(x.nnz()));
}

std::uint64_t SortedCopy::bytes() const {
  std::uint64_t sum = bytes_in(values) + bytes_in(rows) + begin.bytes();
  for (const NarrowBuffer& b : indices) sum += bytes_in(b);
  return sum;
}

SortedCopy SortedCopy::from(const SortedNonzeros& sorted, const CooTensor& x, const Context& context) {
  SortedCopy s;
  s.tensor_shape = shape_of(x);
  const TensorShape& shape = s.tensor_shape;
  s.mode = sorted.mode_order()[0];
  s.indices.resize(shape.dims.size());
  const std::uint64_t width = index_bytes(shape.dims, s.mode);
  const std::span<const int> inputs = sorted.mode_order().subspan(1);
  for (const int m : inputs) s.indices[static_cast<std::size_t>(m)] = buffer_of(width, shape.nnz + padding, context);
  const std::uint64_t chunks = s.chunks();
  std::vector<ChunkRows> found(chunks);
  const auto write = [&]<class Index, class Value>(const auto& nonzeros, Buffer<Value> room, Index) {
    std::array<Index*, max_order> to = {};
    for (std::size_t i = 0; i < inputs.size(); ++i)
      to[i] = typed<Index>(s.indices[static_cast<std::size_t>(inputs[i])]);
    cpu::for_each_chunk(context.thread_count(), chunks, [&](std::uint64_t c, int) {
      const std::uint64_t from_nonzero = c * chunk_nonzeros;
      const std::uint64_t end = std::min(shape.nnz, from_nonzero + chunk_nonzeros);
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        Index* out = to[i];
        for (std::uint64_t z = from_nonzero; z < end; ++z) out[z] = nonzeros.template index<Index>(i + 1, z);
      }
      Value* out = room.data();
      for (std::uint64_t z = from_nonzero; z < end; ++z) out[z] = static_cast<Value>(nonzeros.value(z));
      found[c] = rows_of(nonzeros, from_nonzero, end);
    });
    s.values = std::move(room);
  };
  const auto with_values = [&]<class Value>(const auto& nonzeros, Buffer<Value> room) {
    if (width == 2) return write(nonzeros, std::move(room), std::uint16_t{});
    if (width == 4) return write(nonzeros, std::move(room), std::uint32_t{});
    write(nonzeros, std::move(room), std::uint64_t{});
  };
  const bool floats = values_fit_float(x, context);
  sorted.visit([&]<class Nonzeros>(const Nonzeros& nonzeros) {
    if constexpr (std::is_same_v<typename Nonzeros::value_type, double>) {
      if (!floats) return with_values(nonzeros, Buffer<double>(context, shape.nnz, purpose, Paging::plain));
    }
    with_values(nonzeros, Buffer<float>(context, shape.nnz, purpose, Paging::plain));
  });
  join_rows(found, s, context);
  return s;
}

SortedCopy SortedCopy::build(const CooTensor& x, const FormatOptions& options, const Context& context) {
  std::vector<int> order = {options.mode.value_or(0)};
  for (int m = 0; m < x.order(); ++m)
    if (m != order[0]) order.push_back(m);
  // By the output mode alone: nonzeros of a row may come in any order.
  radix::Scratch scratch;
  return from(SortedNonzeros(x, order, 1, context, scratch), x, context);
}

extern const FormatClass copies_format;
const FormatClass copies_format = {
    {{"copies", "a copy per mode, sorted by it, with 16-bit indices where they fit"},
     "polyad's own; sorted copies per mode are as old as SPLATT (Smith et al., IPDPS 2015)",
     true,
     "nonzeros anywhere, modes of up to 65,536 indices: sums stay in registers, little is read beside the rows"},
    [](const CooTensor& x, const FormatOptions& options, const Context& context) {
      return erased(copies_format, options, SortedCopy::build(x, options, context));
    },
    [](const CooTensor& x, const TensorStatistics& statistics, const FormatOptions& options,
       const Context& context) -> StoragePrediction {
      const int mode = options.mode.value_or(0);
      const auto rows = static_cast<double>(statistics.modes[static_cast<std::size_t>(mode)].slices.count);
      const auto nnz = static_cast<double>(x.nnz());
      const auto index = static_cast<double>(SortedCopy::index_bytes(x.dims, mode));
      return {nnz * static_cast<double>(x.order() - 1) * index / 4 + 2 * rows,
              SortedCopy::predicted_bytes(x, mode, rows, values_fit_float(x, context)),
              "index/4*nnz*(N-1) + 2*S",
              {}};
    },
    [](const EstimateRequest& q) {
      SweepEstimate e;
      for (int n = 0; n < q.sample.order(); ++n) {
        const double rows = std::min(q.sample.nnz(), q.sample.dim(n));
        e.bytes += SortedCopy::predicted_bytes(q.sample.tensor(), n, rows, q.sample.values_fit_float());
        e.ns += sorted_copy_ns(q, n, rows);
      }
      e.build_ns = 16 * q.sample.nnz() * q.sample.order();
      e.build_bytes = bytes_from_sorted(q, e.bytes);
      e.deterministic = true;
      e.why = "one narrow copy per mode, sorted by it: sums stay in registers";
      return e;
    }};

}  // namespace polyad
