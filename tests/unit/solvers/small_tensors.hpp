// SPDX-License-Identifier: MIT
/// \file Small tensors for the tests of solvers.
#pragma once

#include <cstdint>
#include <polyad/polyad.hpp>
#include <vector>

namespace polyad::test {

/// A tensor of f64 from rows of 0-based coordinates and a value.
inline CooTensor tensor_of(std::vector<std::uint64_t> dims, const std::vector<std::vector<double>>& rows,
                           Precision precision = Precision::f64) {
  CooTensor x = make_coo(std::move(dims), rows.size(), precision, {});
  visit(x, [&](const auto& v) {
    for (std::size_t k = 0; k < rows.size(); ++k) {
      for (int m = 0; m < v.order; ++m)
        v.indices[static_cast<std::size_t>(m)][k] =
            static_cast<std::remove_reference_t<decltype(v.indices[0][0])>>(rows[k][static_cast<std::size_t>(m)]);
      v.values[k] = static_cast<std::remove_reference_t<decltype(v.values[0])>>(rows[k].back());
    }
  });
  return x;
}

/// Uniformly drawn coordinates and values.
inline CooTensor random_tensor(std::vector<std::uint64_t> dims, std::uint64_t nnz, std::uint64_t seed,
                               Precision precision = Precision::f64) {
  GenerateOptions o;
  o.dims = std::move(dims);
  o.nnz = nnz;
  o.precision = precision;
  Context context;
  context.seed = seed;
  return generate(o, context);
}

/// Multiplication of n x n matrices: C(i,k) += A(i,j) B(j,k).
inline CooTensor matmul(std::uint64_t n) {
  std::vector<std::vector<double>> rows;
  for (std::uint64_t i = 0; i < n; ++i)
    for (std::uint64_t j = 0; j < n; ++j)
      for (std::uint64_t k = 0; k < n; ++k)
        rows.push_back(
            {static_cast<double>(i * n + j), static_cast<double>(j * n + k), static_cast<double>(k * n + i), 1});
  return tensor_of({n * n, n * n, n * n}, rows);
}

inline Context with_threads(int threads) {
  Context context;
  context.threads = threads;
  return context;
}

}  // namespace polyad::test
