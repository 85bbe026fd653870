// SPDX-License-Identifier: MIT
#include "formats/alto/alto.hpp"

#include <fmt/format.h>

#include <cmath>

#include "backends/cpu/threads.hpp"
#include "polyad/error.hpp"

namespace polyad {

namespace {

/// Empty when a key of two words holds the coordinates.
std::string refusal_for(const BitLayout& layout) {
  if (layout.bits() <= 128) return {};
  return fmt::format("alto keeps the indices of a nonzero in one key of at most 128 bits, and these dims need {} bits",
                     layout.bits());
}

/// One pass over the line: the spans of the segments.
template <class Index>
void survey(Alto& a, const Context& context) {
  const std::uint64_t segments = a.segments();
  const auto order = static_cast<std::size_t>(a.tensor_shape.order());
  cpu::parallel_ranges(
      context.thread_count(), segments,
      [&](std::uint64_t begin, std::uint64_t end) {
        std::array<Index, Alto::segment_nonzeros> rows;
        for (std::uint64_t s = begin; s < end; ++s) {
          const std::uint64_t first = s * Alto::segment_nonzeros;
          const auto count =
              static_cast<std::size_t>(std::min<std::uint64_t>(a.tensor_shape.nnz - first, Alto::segment_nonzeros));
          for (std::size_t m = 0; m < order; ++m) {
            a.layout.decode(a.keys.data() + first * a.key_words, a.key_words, count, static_cast<int>(m), rows.data());
            Index low = rows[0];
            Index high = rows[0];
            for (std::size_t i = 1; i < count; ++i) {
              low = std::min(low, rows[i]);
              high = std::max(high, rows[i]);
            }
            a.spans[m * segments + s] = {low, high};
          }
        }
      },
      16);
}

}  // namespace

BitLayout alto_layout(std::span<const std::uint64_t> dims) { return BitLayout(largest_allowed(dims), {}); }

Alto::Span Alto::span_of(int mode, std::uint64_t begin, std::uint64_t end) const {
  const Span* of_mode = spans.data() + static_cast<std::uint64_t>(mode) * segments();
  Span all = of_mode[begin];
  for (std::uint64_t s = begin + 1; s < end; ++s)
    all = {std::min(all.first, of_mode[s].first), std::max(all.last, of_mode[s].last)};
  return all;
}

Alto Alto::build(const CooTensor& x, const FormatOptions&, const Context& context) {
  Alto a;
  a.tensor_shape = shape_of(x);
  a.layout = alto_layout(x.dims);
  if (const std::string refusal = refusal_for(a.layout); !refusal.empty()) throw Error(ErrorKind::limit, refusal);
  with_types(a.tensor_shape, [&]<class Index, class Value>() {
    KeyedNonzeros<Value> sorted = sorted_by_keys<Value>(x, a.layout, context);
    a.key_words = sorted.key_words;
    a.keys = std::move(sorted.keys);
    a.values = std::move(sorted.values);
    a.spans = Buffer<Span>(context, x.dims.size() * a.segments(), "the spans of alto", Paging::plain);
    survey<Index>(a, context);
  });
  return a;
}

namespace {

StoragePrediction predict_alto(const CooTensor& x, const TensorStatistics&, const FormatOptions&, const Context&) {
  const BitLayout layout = alto_layout(x.dims);
  StoragePrediction p;
  p.refusal = refusal_for(layout);
  const std::uint64_t key_words = layout.bits() <= 64 ? 1 : 2;
  const std::uint64_t segments = (x.nnz() + Alto::segment_nonzeros - 1) / Alto::segment_nonzeros;
  p.words = static_cast<double>(2 * key_words * x.nnz());
  p.formula = key_words == 1 ? "64/32*nnz" : "128/32*nnz";
  p.bytes = static_cast<double>(x.nnz() * (8 * key_words + bytes_of(x.precision())) +
                                x.dims.size() * segments * sizeof(Alto::Span));
  return p;
}

SweepEstimate estimate_alto(const EstimateRequest& q) {
  SweepEstimate e;
  const double key = alto_layout(q.sample.tensor().dims).bits() <= 64 ? 8 : 16;
  // Keys of two words are decoded block by block.
  e.ns = nonzero_loops_ns(q, {.overhead = key == 8 ? 1.2 : 5, .along_line = true, .reuse = reuse_along_line(q.sample)});
  // Rows of several lines cost more than their lines: of the sum, rand takes 1.3 with one line and 2.1 with four, nell2
  // 1.2 and 2.1 (two cores of Zen 3, f32).
  e.ns *= std::pow(q.lines(), 0.25);
  e.build_ns = 30 * q.sample.nnz();
  e.bytes = q.sample.nnz() * (key + q.value_bytes());
  e.why = fmt::format("one pass per mode along a line; {:.1f} nonzeros per block of side 32 share rows",
                      q.sample.nonzeros_per_block());
  return e;
}

}  // namespace

extern const FormatClass alto_format;
const FormatClass alto_format = {{{"alto", "one linearised index per nonzero, along a line through the tensor"},
                                  "Helal et al., ALTO: adaptive linearized storage of sparse tensors, ICS 2021",
                                  false,
                                  "small, one copy for all modes, work divides evenly whatever the distribution"},
                                 [](const CooTensor& x, const FormatOptions& options, const Context& context) {
                                   return erased(alto_format, options, Alto::build(x, options, context));
                                 },
                                 predict_alto,
                                 estimate_alto};

}  // namespace polyad
