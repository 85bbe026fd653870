// SPDX-License-Identifier: MIT
/// \file The plan of a loop for formats whose order keeps neighbours together in all modes (Morton order, ALTO's line).
#pragma once

#include <cstdint>

#include "kernels/mttkrp/nonzero_loop.hpp"

namespace polyad {

/// Rows of matrices below this are found in the caches without prefetching. Measured on ALTO, f32, rank 16: matrices of
/// 0.6 to 3 MB were 13 to 18 % faster without, those of 10 MB 30 % slower.
inline constexpr std::uint64_t worth_prefetching_along_line = std::uint64_t{4} << 20U;

/// A LoopPlan that prefetches large matrices only, and knows whether rows of the output come in runs.
template <class Index, class T, class F>
[[nodiscard]] LoopPlan<Index, T> local_plan(const MttkrpRequest<T>& r, const F& format) {
  LoopPlan<Index, T> plan(r);
  const auto large = [](const FactorMatrix<T>& m) { return m.bytes() >= worth_prefetching_along_line; };
  plan.loop.prefetched = 0;  // the largest come first
  for (int i = 0; i < plan.loop.inputs; ++i)
    if (large(r.factors[static_cast<std::size_t>(plan.modes[static_cast<std::size_t>(i)])])) ++plan.loop.prefetched;
  plan.loop.prefetch_output = large(r.out);
  NonzeroBlock<Index, T> sample(r.order());
  plan.loop.runs = rows_come_in_runs(format, r.mode, r.nnz(), sample);
  return plan;
}

}  // namespace polyad
