// SPDX-License-Identifier: MIT
/// \file MTTKRP of nonzeros that are sorted by the output mode: fixed chunks, sums in registers while the row stays the
/// same, rows that chunks share added at the end.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/mttkrp/nonzero_loop.hpp"

namespace polyad {

/// Nonzeros of a chunk: enough that the two side rows of a chunk cost nothing, few enough that threads finish together.
inline constexpr std::uint64_t sorted_chunk_nonzeros = std::uint64_t{1} << 14U;

/// \param format anything with decode whose nonzeros are sorted by r.mode
template <class Index, class T, class F>
void add_sorted(const MttkrpRequest<T>& r, const F& format) {
  LoopPlan<Index, T> plan(r);
  plan.loop.runs = true;
  plan.loop.prefetch_output = false;  // rows are written in ascending order
  const std::uint64_t nnz = r.nnz();
  const std::uint64_t chunks = (nnz + sorted_chunk_nonzeros - 1) / sorted_chunk_nonzeros;
  BoundaryRows<T> rows(r, chunks);
  cpu::for_each_chunk(r.threads(), chunks, [&](std::uint64_t c, int) {
    NonzeroBlock<Index, T> block(r.order());
    const std::uint64_t begin = c * sorted_chunk_nonzeros;
    const std::uint64_t end = std::min(nnz, begin + sorted_chunk_nonzeros);
    const auto row_of = [&](std::uint64_t k) {
      format.decode(k, 1, block);
      return static_cast<std::uint64_t>(*block.indices[static_cast<std::size_t>(r.mode)]);
    };
    const std::uint64_t first = row_of(begin);
    add_range(format, r.mode, plan, begin, end, nnz, rows.sink(c, first, row_of(end - 1)), block);
  });
  rows.finish();
}

}  // namespace polyad
