// SPDX-License-Identifier: MIT
/// \file The factors that every MTTKRP kernel is run with.
#pragma once

#include <cstdint>
#include <polyad/polyad.hpp>
#include <vector>

#include "matrix/cases.hpp"
#include "oracle/kernel_oracle.hpp"

namespace polyad::cases {

/// Factors of small whole numbers: sums of products are exact in any order.
inline std::vector<oracle::Dense> whole_number_factors(const std::vector<std::uint64_t>& dims, std::uint64_t rank) {
  cases::Dice dice(rank + dims.size());
  std::vector<oracle::Dense> all;
  for (const std::uint64_t d : dims) {
    oracle::Dense& f = all.emplace_back(d, rank);
    for (double& v : f.values) v = static_cast<double>(dice.below(5)) - 2;
  }
  return all;
}

/// The same as kernels take them.
template <class T>
std::vector<FactorMatrix<T>> as_factors(const std::vector<oracle::Dense>& all) {
  std::vector<FactorMatrix<T>> out;
  for (const oracle::Dense& d : all) {
    FactorMatrix<T>& f = out.emplace_back(Context{}, d.rows, d.cols);
    for (std::uint64_t i = 0; i < d.rows; ++i)
      for (std::uint64_t r = 0; r < d.cols; ++r) f(i, r) = static_cast<T>(d(i, r));
  }
  return out;
}

}  // namespace polyad::cases
