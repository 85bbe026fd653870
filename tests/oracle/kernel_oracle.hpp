// SPDX-License-Identifier: MIT
/// \file The definitions of the kernels: plain loops in double over coordinates. Shares nothing with any kernel; its
/// own numbers are checked by hand in tests/matrix/oracle_test.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <polyad/coo_tensor.hpp>
#include <polyad/matrix.hpp>
#include <vector>

namespace polyad::oracle {

/// Row-major matrix.
struct Dense {
  std::uint64_t rows = 0;
  std::uint64_t cols = 0;
  std::vector<double> values;

  Dense(std::uint64_t r, std::uint64_t c) : rows(r), cols(c), values(r * c) {}
  double& operator()(std::uint64_t i, std::uint64_t j) { return values[i * cols + j]; }
  double operator()(std::uint64_t i, std::uint64_t j) const { return values[i * cols + j]; }
};

/// V(k,:) = sum over nonzeros with i_mode = k of x * product over m != mode of factors[m](i_m,:).
Dense mttkrp(const CooTensor& x, const std::vector<Dense>& factors, int mode);

/// The same with factors as kernels take them.
Dense mttkrp(const CooTensor& x, const std::vector<FactorMatrix<double>>& factors, int mode);

/// Y(i without i_mode) = sum of x * vector[i_mode], by coordinate.
std::map<std::vector<std::uint64_t>, double> ttv(const CooTensor& x, const std::vector<double>& vector, int mode);

/// Y(i without i_mode)(j) = sum of x * matrix(j, i_mode): a row per non-empty fibre.
std::map<std::vector<std::uint64_t>, std::vector<double>> ttm(const CooTensor& x, const Dense& matrix, int mode);

/// <X, M> with weights.
double innerprod(const CooTensor& x, const std::vector<double>& weights, const std::vector<Dense>& factors);

}  // namespace polyad::oracle
