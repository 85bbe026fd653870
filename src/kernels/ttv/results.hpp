// SPDX-License-Identifier: MIT
/// \file Where the coordinates of a result of TTV are written, and in which order.
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "kernels/ttv/request.hpp"
#include "polyad/operations.hpp"

namespace polyad {

/// The index arrays of a result from position `at` on.
template <class Index>
[[nodiscard]] std::array<Index*, max_order> index_arrays(CooTensor& y, std::uint64_t at) {
  std::array<Index*, max_order> out = {};
  for (std::size_t m = 0; m < y.indices.size(); ++m) out[m] = typed<Index>(y.indices[m]) + at;
  return out;
}

/// Where the slices of slices write the indices of its fibres in a result: by mode of the tensor.
template <class Index>
[[nodiscard]] std::array<Index*, max_order> by_tensor_mode(CooTensor& y, int mode, std::uint64_t at) {
  std::array<Index*, max_order> out = {};
  for (int m = 0; m <= y.order(); ++m)
    if (m != mode)
      out[static_cast<std::size_t>(m)] = typed<Index>(y.indices[static_cast<std::size_t>(m - (m > mode))]) + at;
  return out;
}

/// The sums come in the order of slices, over modes n+1, n+2, ..., n-1: the order of the result only for the first and
/// the last mode.
inline void sort_result(CooTensor& y, const std::vector<int>& modes, const Context& context) {
  const std::vector<int> wanted = std::move(y.sorted_by);
  const int mode = modes.back();
  y.sorted_by.clear();
  for (std::size_t m = 0; m + 1 < modes.size(); ++m) y.sorted_by.push_back(modes[m] - (modes[m] > mode ? 1 : 0));
  sort_nonzeros(y, wanted, context);
}

}  // namespace polyad
