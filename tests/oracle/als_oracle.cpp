// SPDX-License-Identifier: MIT
#include "oracle/als_oracle.hpp"

#include <cmath>
#include <utility>

namespace polyad::oracle {

double residual(const CooTensor& x, const CpModel& model) {
  std::uint64_t cells = 1;
  for (const std::uint64_t d : x.dims) cells *= d;
  std::vector<double> difference(cells);
  for (std::uint64_t k = 0; k < x.nnz(); ++k) {
    std::uint64_t cell = 0;
    for (int m = 0; m < x.order(); ++m) cell = cell * x.dims[static_cast<std::size_t>(m)] + x.index(m, k);
    difference[cell] += x.value(k);
  }
  double sum = 0;
  for (std::uint64_t cell = 0; cell < cells; ++cell) {
    double value = 0;
    for (std::uint64_t r = 0; r < model.rank(); ++r) {
      double product = model.weights[r];
      std::uint64_t rest = cell;
      for (int m = x.order() - 1; m >= 0; --m) {
        const auto at = static_cast<std::size_t>(m);
        product *= model.factors[at](rest % x.dims[at], r);
        rest /= x.dims[at];
      }
      value += product;
    }
    sum += (difference[cell] - value) * (difference[cell] - value);
  }
  return std::sqrt(sum);
}

double fit(const CooTensor& x, const CpModel& model) {
  CpModel nothing;
  nothing.factors = model.factors;
  nothing.weights.assign(model.rank(), 0.0);
  return 1 - residual(x, model) / residual(x, nothing);
}

void solve(std::vector<std::vector<double>> g, Matrix& rows) {
  const std::size_t n = g.size();
  std::vector<std::vector<double>> inverse(n, std::vector<double>(n));
  for (std::size_t i = 0; i < n; ++i) inverse[i][i] = 1;
  for (std::size_t c = 0; c < n; ++c) {
    std::size_t pivot = c;
    for (std::size_t r = c; r < n; ++r)
      if (std::abs(g[r][c]) > std::abs(g[pivot][c])) pivot = r;
    std::swap(g[c], g[pivot]);
    std::swap(inverse[c], inverse[pivot]);
    const double d = g[c][c];
    for (std::size_t j = 0; j < n; ++j) {
      g[c][j] /= d;
      inverse[c][j] /= d;
    }
    for (std::size_t r = 0; r < n; ++r) {
      if (r == c) continue;
      const double f = g[r][c];
      for (std::size_t j = 0; j < n; ++j) {
        g[r][j] -= f * g[c][j];
        inverse[r][j] -= f * inverse[c][j];
      }
    }
  }
  for (std::uint64_t i = 0; i < rows.rows; ++i) {
    std::vector<double> v(n);
    for (std::size_t r = 0; r < n; ++r) v[r] = rows(i, r);
    for (std::size_t r = 0; r < n; ++r) {
      rows(i, r) = 0;
      for (std::size_t s = 0; s < n; ++s) rows(i, r) += v[s] * inverse[s][r];
    }
  }
}

CpModel als(const CooTensor& x, CpModel model, int iterations) {
  const auto rank = static_cast<std::size_t>(model.rank());
  for (int iteration = 0; iteration < iterations; ++iteration)
    for (int mode = 0; mode < x.order(); ++mode) {
      std::vector<std::vector<double>> g(rank, std::vector<double>(rank, 1.0));
      for (int m = 0; m < x.order(); ++m) {
        if (m == mode) continue;
        const Matrix& a = model.factors[static_cast<std::size_t>(m)];
        for (std::size_t r = 0; r < rank; ++r)
          for (std::size_t s = 0; s < rank; ++s) {
            double sum = 0;
            for (std::uint64_t i = 0; i < a.rows; ++i) sum += a(i, r) * a(i, s);
            g[r][s] *= sum;
          }
      }
      Matrix v(x.dims[static_cast<std::size_t>(mode)], rank);
      for (std::uint64_t k = 0; k < x.nnz(); ++k)
        for (std::size_t r = 0; r < rank; ++r) {
          double product = x.value(k);
          for (int m = 0; m < x.order(); ++m)
            if (m != mode) product *= model.factors[static_cast<std::size_t>(m)](x.index(m, k), r);
          v(x.index(mode, k), r) += product;
        }
      solve(g, v);
      model.factors[static_cast<std::size_t>(mode)] = std::move(v);
    }
  return model;
}

}  // namespace polyad::oracle
