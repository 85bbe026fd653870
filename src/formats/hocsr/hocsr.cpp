// SPDX-License-Identifier: MIT
#include "formats/hocsr/hocsr.hpp"

#include <fmt/format.h>

#include <cmath>

#include "backends/cpu/threads.hpp"
#include "formats/coo/coo.hpp"
#include "polyad/operations.hpp"
#include "polyad/sizes.hpp"

namespace polyad {

namespace {

/// Why there would be too many rows; empty when there are not.
std::string refusal(const std::vector<std::uint64_t>& dims, int mode) {
  const std::optional<std::uint64_t> rows = rows_without(dims, mode);
  if (rows && *rows <= Hocsr::most_rows) return {};
  return fmt::format(
      "format hocsr, mode {}: the product of the other dims is {} rows, and it keeps a pointer for each; at most {} "
      "are held",
      mode + 1, rows ? readable_count(*rows) : "more than 2^64", readable_count(Hocsr::most_rows));
}

/// The pointer of row r is the number of nonzeros in rows before it: nonzero k sets those after the row of k - 1 up to
/// its own.
template <class Index>
void set_pointers(Hocsr& h, const std::array<Index*, max_order>& indices, std::uint64_t nnz, std::uint64_t rows,
                  const Context& context) {
  const std::vector<std::uint64_t>& dims = h.tensor_shape.dims;
  const std::vector<int> others = modes_without(h.tensor_shape.order(), h.mode);
  const auto row_of = [&](std::uint64_t k) {
    std::uint64_t id = 0;
    for (const int m : others) id = id * dims[static_cast<std::size_t>(m)] + indices[static_cast<std::size_t>(m)][k];
    return id;
  };
  cpu::parallel_ranges(context.thread_count(), nnz, [&](std::uint64_t begin, std::uint64_t end) {
    std::uint64_t next = begin == 0 ? 0 : row_of(begin - 1) + 1;  // first row whose pointer is not set
    for (std::uint64_t k = begin; k < end; ++k) {
      const std::uint64_t row = row_of(k);
      if (row >= next) h.rows.fill(next, row + 1, k);
      next = row + 1;
    }
  });
  const std::uint64_t after = nnz == 0 ? 0 : row_of(nnz - 1) + 1;
  cpu::parallel_ranges(context.thread_count(), rows + 1 - after,
                       [&](std::uint64_t begin, std::uint64_t end) { h.rows.fill(after + begin, after + end, nnz); });
}

}  // namespace

std::uint64_t Hocsr::bytes() const { return rows.bytes() + bytes_in(indices) + bytes_in(values); }

Hocsr Hocsr::build(const CooTensor& x, const FormatOptions& options, const Context& context) {
  const int mode = options.mode.value_or(0);
  if (const std::string why = refusal(x.dims, mode); !why.empty()) throw Error(ErrorKind::limit, why);
  const std::uint64_t rows = *rows_without(x.dims, mode);
  Hocsr h;
  h.tensor_shape = shape_of(x);
  h.mode = mode;
  h.rows = Offsets(context, rows + 1, x.nnz(), "the row pointers of format hocsr");
  CooTensor sorted = narrowest_copy(x, context);
  sort_nonzeros(sorted, mode_last(x.order(), mode), context);
  visit(sorted, [&]<class Index, class Value>(const CooView<Index, Value>& v) {
    set_pointers(h, v.indices, v.nnz, rows, context);
  });
  h.indices = std::move(sorted.indices[static_cast<std::size_t>(mode)]);
  h.values = std::move(sorted.values);
  return h;
}

extern const FormatClass hocsr_format;
const FormatClass hocsr_format = {
    {{"hocsr", "high-order CSR: row pointers over the dense product of the other modes"},
     "Yang, Li, Li 2019 (HOCFS)",
     true,
     "products with a vector when the other modes are short and nearly every fibre is used"},
    [](const CooTensor& x, const FormatOptions& options, const Context& context) {
      return erased(hocsr_format, options, Hocsr::build(x, options, context));
    },
    [](const CooTensor& x, const TensorStatistics&, const FormatOptions& options, const Context&) {
      const int mode = options.mode.value_or(0);
      double rows = 1;
      for (const int m : modes_without(x.order(), mode))
        rows *= static_cast<double>(x.dims[static_cast<std::size_t>(m)]);
      const auto nnz = static_cast<double>(x.nnz());
      const auto per_nonzero = static_cast<double>(bytes_of(width_for(x.dims)) + bytes_of(x.precision()));
      return StoragePrediction{rows + 2 * nnz,
                               (rows + 1) * static_cast<double>(Offsets::width_of(x.nnz())) + nnz * per_nonzero,
                               "prod(dims without n) + 2*nnz", refusal(x.dims, mode)};
    },
    nullptr,
    false,
    /*decode_ns=*/10};

}  // namespace polyad
