// SPDX-License-Identifier: MIT
/// \file Segmented reduction: sums of runs of equal coordinates (Algorithm 3 of Yang, Li and Li 2019), in parallel.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/mttkrp/output.hpp"
#include "kernels/ttv/request.hpp"

namespace polyad {

/// Nonzeros of a piece. Pieces do not depend on the number of threads, so neither do the sums.
inline constexpr std::uint64_t segment_nonzeros = 4096;

/// The result of a TTV from nonzeros whose fibres are runs, in order. `indices` are those of the other modes,
/// ascending; product(k) is value times vector entry of nonzero k.
template <class Index, class T, class Product>
[[nodiscard]] CooTensor sum_runs(const TtvRequest& r, const std::array<const Index*, max_order>& indices,
                                 const Product& product) {
  const std::uint64_t nnz = r.shape().nnz;
  const auto modes = static_cast<std::size_t>(r.shape().order() - 1);
  const std::uint64_t pieces = (nnz + segment_nonzeros - 1) / segment_nonzeros;
  const auto begins_run = [&](std::uint64_t k) {
    if (k == 0) return true;
    bool differs = false;
    for (std::size_t m = 0; m < modes; ++m) differs |= indices[m][k] != indices[m][k - 1];
    return differs;
  };
  std::vector<std::uint64_t> before(pieces + 1);  // runs that begin before a piece
  cpu::for_each_chunk(r.threads(), pieces, [&](std::uint64_t p, int) {
    const std::uint64_t end = std::min(nnz, (p + 1) * segment_nonzeros);
    std::uint64_t count = 0;
    for (std::uint64_t k = p * segment_nonzeros; k < end; ++k) count += begins_run(k) ? 1 : 0;
    before[p + 1] = count;
  });
  for (std::size_t p = 1; p < before.size(); ++p) before[p] += before[p - 1];
  CooTensor y = ttv_result(r, before.back());
  std::array<Index*, max_order> out = {};
  for (std::size_t m = 0; m < modes; ++m) out[m] = typed<Index>(y.indices[m]);
  T* sums = typed<T>(y.values);
  std::vector<T> carries(pieces);  // what a piece has of the run that began before it
  cpu::for_each_chunk(r.threads(), pieces, [&](std::uint64_t p, int) {
    const std::uint64_t end = std::min(nnz, (p + 1) * segment_nonzeros);
    std::uint64_t k = p * segment_nonzeros;
    T carry = 0;
    for (; k < end && !begins_run(k); ++k) carry += product(k);
    carries[p] = carry;
    for (std::uint64_t run = before[p]; k < end; ++run) {
      for (std::size_t m = 0; m < modes; ++m) out[m][run] = indices[m][k];
      T sum = product(k);
      for (++k; k < end && !begins_run(k); ++k) sum += product(k);
      sums[run] = sum;
    }
  });
  for (std::uint64_t p = 1; p < pieces; ++p)
    if (!begins_run(p * segment_nonzeros)) sums[before[p] - 1] += carries[p];
  return y;
}

}  // namespace polyad
