// SPDX-License-Identifier: MIT
/// \file What a loop over narrow nonzeros sorted by the output mode reads (formats/copies, formats/tiles).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <variant>

#include "core/format.hpp"
#include "formats/copies/copies.hpp"
#include "kernels/mttkrp/request.hpp"

namespace polyad {

/// Factors, indices and values of nonzeros that lie side by side.
template <class T>
struct RowInputs {
  int inputs = 0;                                   // factors to multiply
  std::array<const T*, max_order> factors = {};     // [inputs][rows][stride], the largest first
  std::array<const void*, max_order> indices = {};  // [inputs][nnz + padding] of all nonzeros of the tensor
  std::size_t index_bytes = 0;                      // 2, 3 or 4
  int prefetched = 0;                               // so many of the first factors are worth prefetching,
  bool far_away = false;                            // the first of them lies in memory
  std::uint64_t begin_nonzero = 0;                  // the first one
  const NarrowValues* values = nullptr;             // [nnz]
  std::uint64_t stride = 0;                         // of factors and output
};

/// The input modes of an output mode, the longest factor first.
struct InputModes {
  std::array<int, max_order> modes = {};
  int count = 0;

  InputModes(const std::vector<std::uint64_t>& dims, int output) {
    for (int m = 0; m < static_cast<int>(dims.size()); ++m)
      if (m != output) modes[static_cast<std::size_t>(count++)] = m;
    std::stable_sort(modes.begin(), modes.begin() + count, [&](int a, int b) {
      return dims[static_cast<std::size_t>(a)] > dims[static_cast<std::size_t>(b)];
    });
  }
};

/// Fills in all but what is prefetched, and which nonzeros they are. Nonzeros has indices and values, as a SortedCopy.
template <class T, class Nonzeros>
void set_inputs(RowInputs<T>& l, const MttkrpRequest<T>& r, const Nonzeros& nonzeros, const InputModes& input) {
  l.inputs = input.count;
  for (std::size_t i = 0; i < static_cast<std::size_t>(input.count); ++i) {
    const auto m = static_cast<std::size_t>(input.modes[i]);
    l.factors[i] = r.factors[m].data();
    std::visit(
        [&]<class Index>(const Buffer<Index>& indices) {
          l.indices[i] = indices.data();
          l.index_bytes = sizeof(Index);
        },
        nonzeros.indices[m]);
  }
  l.values = &nonzeros.values;
  l.stride = r.stride();
}

}  // namespace polyad
