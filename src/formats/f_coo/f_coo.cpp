// SPDX-License-Identifier: MIT
#include "formats/f_coo/f_coo.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "backends/cpu/threads.hpp"
#include "formats/coo/coo.hpp"
#include "polyad/operations.hpp"

namespace polyad {

namespace {

constexpr std::uint64_t words_per_chunk = FCoo::chunk_nonzeros / 64;

/// Sets the flags of the nonzeros of one chunk; returns how many.
template <class Index>
std::uint64_t flag_chunk(const Index* sorted, std::uint64_t begin, std::uint64_t end, std::uint64_t* flags) {
  std::uint64_t set = 0;
  for (std::uint64_t k = begin; k < end; ++k) {
    const std::uint64_t differs = k == 0 || sorted[k] != sorted[k - 1] ? 1 : 0;
    flags[k / 64] |= differs << (k % 64);
    set += differs;
  }
  return set;
}

}  // namespace

FCoo FCoo::build(const CooTensor& x, const FormatOptions& options, const Context& context) {
  FCoo f;
  f.tensor_shape = shape_of(x);
  f.mode = options.mode.value_or(0);
  CooTensor sorted = narrowest_copy(x, context);
  std::vector<int> order = {f.mode};
  for (int m = 0; m < x.order(); ++m)
    if (m != f.mode) order.push_back(m);
  sort_nonzeros(sorted, order, context);

  const std::uint64_t nnz = x.nnz();
  const std::uint64_t chunks = (nnz + chunk_nonzeros - 1) / chunk_nonzeros;
  const int threads = context.thread_count();
  f.bit_flags = Buffer<std::uint64_t>(context, chunks * words_per_chunk, "the bit flags of F-COO", Paging::plain);
  f.start_flags = Buffer<std::uint64_t>(context, (chunks + 63) / 64, "the start flags of F-COO", Paging::plain);
  f.chunk_row = Buffer<std::uint64_t>(context, chunks, "the first rows of F-COO's chunks", Paging::plain);
  visit(sorted, [&]<class Index, class Value>(const CooView<Index, Value>& v) {
    const Index* output = v.indices[static_cast<std::size_t>(f.mode)];
    const auto over_chunks = [&](const auto& body) {
      cpu::parallel_ranges(
          threads, chunks,
          [&](std::uint64_t b, std::uint64_t e) {
            for (std::uint64_t c = b; c < e; ++c) body(c, c * chunk_nonzeros, std::min(nnz, (c + 1) * chunk_nonzeros));
          },
          64);
    };
    over_chunks([&](std::uint64_t c, std::uint64_t begin, std::uint64_t end) {
      f.chunk_row[c] = flag_chunk(output, begin, end, f.bit_flags.data());
    });
    std::uint64_t found = 0;  // rows before the chunk
    for (std::uint64_t c = 0; c < chunks; ++c) {
      const std::uint64_t starts = f.bit_flags[c * words_per_chunk] & 1U;
      f.start_flags[c / 64] |= starts << (c % 64);
      found += std::exchange(f.chunk_row[c], found + starts - 1);
    }
    Buffer<Index> occurring(context, found, "the rows of F-COO", Paging::plain);
    over_chunks([&](std::uint64_t c, std::uint64_t begin, std::uint64_t end) {
      Index* to = occurring.data() + f.chunk_row[c];
      *to = output[begin];
      for (std::uint64_t k = begin + 1; k < end; ++k)
        if (output[k] != output[k - 1]) *++to = output[k];
    });
    f.rows = std::move(occurring);
    sorted.indices[static_cast<std::size_t>(f.mode)] = Buffer<Index>();
  });
  f.indices = std::move(sorted.indices);
  f.values = std::move(sorted.values);
  return f;
}

std::uint64_t FCoo::bytes() const {
  std::uint64_t sum = bytes_in(values) + bytes_in(rows) + bit_flags.bytes() + start_flags.bytes() + chunk_row.bytes();
  for (const IndexBuffer& b : indices) sum += bytes_in(b);
  return sum;
}

extern const FormatClass f_coo_format;
const FormatClass f_coo_format = {
    {{"f-coo", "sorted by the output mode, whose index is one bit per nonzero"},
     "Liu, Wen, Sarwate and Dehnavi, A unified optimization approach for sparse tensor operations on GPUs (2017)",
     true,
     "equal chunks of nonzeros whatever the slices are like, no atomic additions"},
    [](const CooTensor& x, const FormatOptions& options, const Context& context) {
      return erased(f_coo_format, options, FCoo::build(x, options, context));
    },
    [](const CooTensor& x, const TensorStatistics& statistics, const FormatOptions& options,
       const Context&) -> StoragePrediction {
      const auto nnz = static_cast<double>(x.nnz());
      const auto others = static_cast<double>(x.order() - 1);
      const auto word = static_cast<double>(bytes_of(width_for(x.dims)));
      const double chunks = std::ceil(nnz / static_cast<double>(FCoo::chunk_nonzeros));
      const auto rows =
          static_cast<double>(statistics.modes[static_cast<std::size_t>(options.mode.value_or(0))].slices.count);
      const double flags = 1 + 1 / static_cast<double>(FCoo::chunk_nonzeros);
      return {nnz * (others * 32 + flags) / 32,
              nnz * (others * word + static_cast<double>(bytes_of(x.precision()))) + rows * word +
                  8 * (chunks * static_cast<double>(words_per_chunk) + std::ceil(chunks / 64) + chunks),
              "nnz*((N-1)*32 + 1 + 1/chunk)/32",
              {}};
    },
    [](const EstimateRequest& q) {
      SweepEstimate e;
      e.ns = nonzero_loops_ns(q, {.overhead = 1.2, .adds = false});
      e.build_ns = 30 * q.sample.nnz() * q.sample.order();
      e.bytes = q.sample.nnz() * q.sample.order() * (q.index_bytes() * (q.sample.order() - 1) + q.value_bytes() + 0.2);
      e.deterministic = true;
      e.why = "one copy per mode, sorted by it: sums stay in registers";
      return e;
    }};

}  // namespace polyad
