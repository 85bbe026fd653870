// SPDX-License-Identifier: MIT
#include "oracle/kernel_oracle.hpp"

namespace polyad::oracle {

Dense mttkrp(const CooTensor& x, const std::vector<Dense>& factors, int mode) {
  const std::uint64_t rank = factors[0].cols;
  Dense v(x.dims[static_cast<std::size_t>(mode)], rank);
  std::vector<std::uint64_t> at(x.dims.size());
  for (std::uint64_t k = 0; k < x.nnz(); ++k) {
    for (int m = 0; m < x.order(); ++m) at[static_cast<std::size_t>(m)] = x.index(m, k);
    double* row = &v.values[at[static_cast<std::size_t>(mode)] * rank];
    for (std::uint64_t r = 0; r < rank; ++r) {
      double p = x.value(k);
      for (std::size_t m = 0; m < at.size(); ++m)
        if (m != static_cast<std::size_t>(mode)) p *= factors[m](at[m], r);
      row[r] += p;
    }
  }
  return v;
}

Dense mttkrp(const CooTensor& x, const std::vector<FactorMatrix<double>>& factors, int mode) {
  std::vector<Dense> dense;
  for (const FactorMatrix<double>& f : factors) {
    Dense& d = dense.emplace_back(f.rows(), f.cols());
    for (std::uint64_t i = 0; i < f.rows(); ++i)
      for (std::uint64_t r = 0; r < f.cols(); ++r) d(i, r) = f(i, r);
  }
  return mttkrp(x, dense, mode);
}

std::map<std::vector<std::uint64_t>, double> ttv(const CooTensor& x, const std::vector<double>& vector, int mode) {
  std::map<std::vector<std::uint64_t>, double> y;
  for (std::uint64_t k = 0; k < x.nnz(); ++k) {
    std::vector<std::uint64_t> at;
    for (int m = 0; m < x.order(); ++m)
      if (m != mode) at.push_back(x.index(m, k));
    y[at] += x.value(k) * vector[x.index(mode, k)];
  }
  return y;
}

std::map<std::vector<std::uint64_t>, std::vector<double>> ttm(const CooTensor& x, const Dense& matrix, int mode) {
  std::map<std::vector<std::uint64_t>, std::vector<double>> y;
  for (std::uint64_t k = 0; k < x.nnz(); ++k) {
    std::vector<std::uint64_t> at;
    for (int m = 0; m < x.order(); ++m)
      if (m != mode) at.push_back(x.index(m, k));
    std::vector<double>& row = y[at];
    row.resize(matrix.rows);
    for (std::uint64_t j = 0; j < matrix.rows; ++j) row[j] += x.value(k) * matrix(j, x.index(mode, k));
  }
  return y;
}

double innerprod(const CooTensor& x, const std::vector<double>& weights, const std::vector<Dense>& factors) {
  double sum = 0;
  for (std::uint64_t k = 0; k < x.nnz(); ++k)
    for (std::size_t r = 0; r < weights.size(); ++r) {
      double p = x.value(k) * weights[r];
      for (int m = 0; m < x.order(); ++m) p *= factors[static_cast<std::size_t>(m)](x.index(m, k), r);
      sum += p;
    }
  return sum;
}

}  // namespace polyad::oracle
