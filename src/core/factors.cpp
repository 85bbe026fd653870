// SPDX-License-Identifier: MIT
#include "polyad/factors.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "backends/cpu/threads.hpp"
#include "polyad/error.hpp"

namespace polyad {

namespace {

/// Rows that a thread is worth starting for.
constexpr std::uint64_t rows_per_thread = 1U << 12U;

}  // namespace

template <class T>
std::vector<FactorMatrix<T>> factors_of(const CpModel& model, const Context& context) {
  std::vector<FactorMatrix<T>> all;
  for (std::size_t m = 0; m < model.factors.size(); ++m) {
    const Matrix& from = model.factors[m];
    FactorMatrix<T>& to = all.emplace_back(context, from.rows, from.cols);
    cpu::parallel_ranges(
        context.thread_count(), from.rows,
        [&](std::uint64_t begin, std::uint64_t end) {
          for (std::uint64_t i = begin; i < end; ++i)
            for (std::uint64_t r = 0; r < from.cols; ++r) {
              const double value = from(i, r);
              if (std::abs(value) > static_cast<double>(std::numeric_limits<T>::max()))
                throw Error(ErrorKind::input,
                            fmt::format("the factor of mode {} has {} in row {}, which {} cannot hold", m + 1, value,
                                        i + 1, sizeof(T) == 4 ? "f32" : "f64"));
              to(i, r) = static_cast<T>(value);
            }
        },
        rows_per_thread);
  }
  return all;
}

template <class T>
Matrix matrix_of(const FactorMatrix<T>& factor, const Context& context) {
  Matrix a = Matrix::unset(factor.rows(), factor.cols());
  cpu::parallel_ranges(
      context.thread_count(), a.rows,
      [&](std::uint64_t begin, std::uint64_t end) {
        for (std::uint64_t i = begin; i < end; ++i)
          for (std::uint64_t r = 0; r < a.cols; ++r) a(i, r) = static_cast<double>(factor(i, r));
      },
      rows_per_thread);
  return a;
}

template <class T>
double norm(const FactorMatrix<T>& factor) {
  double sum = 0;
  for (std::uint64_t i = 0; i < factor.rows(); ++i) {
    double row = 0;
    for (std::uint64_t r = 0; r < factor.cols(); ++r) {
      const auto value = static_cast<double>(factor(i, r));
      row += value * value;
    }
    sum += row;
  }
  return std::sqrt(sum);
}

template std::vector<FactorMatrix<float>> factors_of(const CpModel&, const Context&);
template std::vector<FactorMatrix<double>> factors_of(const CpModel&, const Context&);
template Matrix matrix_of(const FactorMatrix<float>&, const Context&);
template Matrix matrix_of(const FactorMatrix<double>&, const Context&);
template double norm(const FactorMatrix<float>&);
template double norm(const FactorMatrix<double>&);

}  // namespace polyad
