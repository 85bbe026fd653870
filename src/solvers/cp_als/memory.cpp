// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/row_parts.hpp"
#include "polyad/cp_als.hpp"
#include "polyad/matrix.hpp"

namespace polyad {

std::uint64_t MemoryPlan::peak() const {
  // The program, its threads and what is not counted in budgets: 30 MB and a twentieth.
  const std::uint64_t most = std::max({load, build, iterate});
  return most + most / 20 + (std::uint64_t{30} << 20U);
}

MemoryPlan plan_memory(const CooTensor& x, const TensorStatistics& statistics, std::string_view format,
                       const CpAlsOptions& options, const Context& context) {
  MemoryPlan plan;
  const FormatEntry& entry = format_named(format);
  plan.format = entry.name;
  const FormatEstimate estimate = estimate_format(x, format, options.rank, context);
  // What kernels were written for was estimated in passing; the estimate is a few percent off.
  const std::optional<double> bytes = estimate.has_kernel
                                          ? std::optional(1.05 * estimate.bytes)
                                          : predicted_bytes(x, statistics, entry, options.rank, context);
  if (!bytes) {
    plan.refusal = fmt::format("{} cannot hold this tensor here", entry.name);
    return plan;
  }
  const auto whole = [](double b) { return static_cast<std::uint64_t>(std::min(b, 1e18)); };
  const auto nnz = static_cast<double>(x.nnz());
  const auto coordinates = static_cast<double>(x.bytes());
  const double sort = nnz * static_cast<double>(sort_bytes_per_nonzero);
  const auto rank = static_cast<double>(options.rank);
  const auto row_of = [&](std::uint64_t columns) {
    return static_cast<double>(padded_columns(columns) * bytes_of(x.precision()));
  };
  double rows = 0;
  double longest = 0;
  double nonnegative = 0;  // rows of V that is kept beside its factor
  double copies = 0;       // of an output: one for each thread but the first, where that is worth it
  for (std::size_t m = 0; m < x.dims.size(); ++m) {
    const auto d = static_cast<double>(x.dims[m]);
    rows += d;
    longest = std::max(longest, d);
    if (std::ranges::count(options.nonnegative, static_cast<int>(m)) > 0) nonnegative += d;
    const double private_bytes = (context.thread_count() - 1) * d * row_of(options.rank);
    if (private_bytes / 100 <= nnz) copies = std::max(copies, private_bytes);
  }
  const double states = options.restarts > 1 ? 2 : 1;
  // Gram matrices, and their sums over parts of the rows.
  const double small = rank * rank * sizeof(double) * static_cast<double>(x.dims.size() + 8) +
                       row_sums_bytes(nnz, longest, options.rank, x.precision());
  // A sketch has eight columns more, in random matrices, in itself and in private outputs.
  const double sketch = options.start == CpStart::rsvd ? (rows + longest) * row_of(options.rank + 8) + copies : 0;
  const double model = rows * rank * sizeof(double);
  plan.tensor = whole(*bytes);
  plan.load = whole(x.duplicates_merged ? coordinates : 2 * coordinates + sort);
  plan.build = whole(coordinates + (estimate.has_kernel ? 1.05 * estimate.build_bytes : *bytes + sort));
  // Products that kernels keep from mode to mode, unless the limit forbids it.
  const double kept = estimate.kept_bytes;
  plan.iterate = whole(*bytes + (states * rows + nonnegative) * row_of(options.rank) + copies + sketch + small + model);
  const std::uint64_t limit = context.memory ? context.memory->limit() : 0;
  if (limit == 0 || plan.iterate + whole(kept) <= limit) plan.iterate += whole(kept);
  return plan;
}

}  // namespace polyad
