// SPDX-License-Identifier: MIT
/// \file The 4 x 5 x 4 tensor with 21 nonzeros of the HOCFS paper (Yang, Li and Li 2019, section 5).
#pragma once

#include <array>
#include <polyad/coo_tensor.hpp>

namespace polyad {

/// 1-based i, j, k, value.
inline constexpr std::array<std::array<int, 4>, 21> example_a_nonzeros = {
    {{1, 1, 1, 3}, {1, 1, 2, 1}, {1, 2, 2, 9}, {1, 3, 2, 7}, {1, 3, 3, 3}, {1, 4, 3, 5}, {1, 4, 4, 8},
     {1, 5, 1, 2}, {3, 1, 3, 4}, {3, 2, 4, 7}, {3, 3, 1, 5}, {3, 3, 4, 2}, {3, 4, 2, 1}, {3, 4, 3, 6},
     {4, 1, 2, 7}, {4, 1, 4, 8}, {4, 2, 1, 3}, {4, 3, 3, 2}, {4, 3, 4, 1}, {4, 5, 3, 6}, {4, 5, 4, 5}}};

/// The tensor, its nonzeros in an order that is none of a format's, with indices of either width.
inline CooTensor example_a(Precision precision = Precision::f64, IndexWidth width = IndexWidth::u32) {
  CooTensor x = make_coo({4, 5, 4}, example_a_nonzeros.size(), precision, width, {});
  visit(x, [&]<class Index, class Value>(const CooView<Index, Value>& v) {
    for (std::size_t k = 0; k < example_a_nonzeros.size(); ++k) {
      const auto& from = example_a_nonzeros[k * 8 % example_a_nonzeros.size()];
      for (std::size_t m = 0; m < 3; ++m) v.indices[m][k] = static_cast<Index>(from[m] - 1);
      v.values[k] = static_cast<Value>(from[3]);
    }
  });
  return x;
}

}  // namespace polyad
