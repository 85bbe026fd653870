// SPDX-License-Identifier: MIT
/// \file Tensors written out in tests of the formats.
#pragma once

#include <polyad/coo_tensor.hpp>
#include <vector>

namespace polyad::small {

/// A tensor of the given cells, 0-based; the values are 1, 2, 3, ...
inline CooTensor of(const std::vector<std::uint64_t>& dims, const std::vector<std::vector<std::uint64_t>>& cells,
                    Precision precision = Precision::f64) {
  CooTensor x = make_coo(dims, cells.size(), precision, {});
  visit(x, [&]<class Index, class Value>(const CooView<Index, Value>& v) {
    for (std::size_t k = 0; k < cells.size(); ++k) {
      for (std::size_t m = 0; m < dims.size(); ++m) v.indices[m][k] = static_cast<Index>(cells[k][m]);
      v.values[k] = static_cast<Value>(k + 1);
    }
  });
  return x;
}

/// Worked example C (Nisa et al., figure 4): slice 0 has one nonzero, slice 1 three fibres of one, slice 2 one fibre of
/// four.
inline CooTensor example_c() {
  return of({3, 4, 5}, {{2, 1, 0}, {0, 3, 2}, {1, 2, 0}, {2, 1, 4}, {1, 0, 3}, {2, 1, 1}, {1, 3, 1}, {2, 1, 2}});
}

/// One fibre of `length` in slice 0, a single nonzero in slice 1.
inline CooTensor long_fibre(std::uint64_t length) {
  std::vector<std::vector<std::uint64_t>> cells;
  for (std::uint64_t k = 0; k < length; ++k) cells.push_back({0, 1, k});
  cells.push_back({1, 0, 7});
  return of({2, 3, length + 8}, cells);
}

/// Every cell of a box.
inline CooTensor full(const std::vector<std::uint64_t>& dims) {
  std::vector<std::vector<std::uint64_t>> cells(1);
  for (const std::uint64_t d : dims) {
    std::vector<std::vector<std::uint64_t>> longer;
    for (const auto& c : cells)
      for (std::uint64_t i = 0; i < d; ++i) {
        longer.push_back(c);
        longer.back().push_back(i);
      }
    cells = longer;
  }
  return of(dims, cells);
}

/// The elements of a buffer of either width.
template <class Buffers>
std::vector<std::uint64_t> list(const Buffers& buffer) {
  return std::visit(
      [](const auto& b) {
        std::vector<std::uint64_t> numbers;
        // Values may be negative.
        for (const auto x : b) numbers.push_back(static_cast<std::uint64_t>(static_cast<std::int64_t>(x)));
        return numbers;
      },
      buffer);
}

}  // namespace polyad::small
