// SPDX-License-Identifier: MIT
#include "formats/coo/coo.hpp"

#include <algorithm>

#include "backends/cpu/threads.hpp"
#include "polyad/operations.hpp"

namespace polyad {

CooTensor narrowest_copy(const CooTensor& x, const Context& context) {
  if (x.index_width() == width_for(x.dims)) {
    CooTensor copy = clone(x, context);
    copy.labels.clear();
    return copy;
  }
  CooTensor copy = make_coo(x.dims, x.nnz(), x.precision(), context);
  copy.sorted_by = x.sorted_by;
  copy.duplicates_merged = x.duplicates_merged;
  visit(x, [&]<class Index, class Value>(const CooView<Index, Value>& from) {
    cpu::parallel_ranges(context.thread_count(), from.nnz, [&](std::uint64_t begin, std::uint64_t end) {
      for (std::size_t m = 0; m < x.dims.size(); ++m)
        std::transform(from.indices[m] + begin, from.indices[m] + end, typed<std::uint32_t>(copy.indices[m]) + begin,
                       [](auto i) { return static_cast<std::uint32_t>(i); });
      std::copy(from.values + begin, from.values + end, typed<std::remove_const_t<Value>>(copy.values) + begin);
    });
  });
  return copy;
}

Coo Coo::build(const CooTensor& x, const FormatOptions&, const Context& context) {
  return {narrowest_copy(x, context), shape_of(x)};
}

StoragePrediction predict_coo(const CooTensor& x, const TensorStatistics&, const FormatOptions&, const Context&) {
  const auto nnz = static_cast<double>(x.nnz());
  const auto order = static_cast<double>(x.order());
  return {
      order * nnz,
      nnz * (order * static_cast<double>(bytes_of(width_for(x.dims))) + static_cast<double>(bytes_of(x.precision()))),
      "N*nnz",
      {}};
}

namespace {

SweepEstimate estimate_coo(const EstimateRequest& q) {
  SweepEstimate e;
  e.ns = coordinates_ns(q);
  e.build_ns = 6 * q.sample.nnz();
  e.bytes = q.sample.nnz() * (q.index_bytes() * q.sample.order() + q.value_bytes());
  e.why = "one pass per mode over coordinates in the order they have";
  return e;
}

}  // namespace

extern const FormatClass coo_format;
const FormatClass coo_format = {
    {{"coo", "coordinates: N index arrays and the values"}, "", false, "no build; any order of nonzeros"},
    [](const CooTensor& x, const FormatOptions& options, const Context& context) {
      return erased(coo_format, options, Coo::build(x, options, context));
    },
    predict_coo,
    estimate_coo};

}  // namespace polyad
