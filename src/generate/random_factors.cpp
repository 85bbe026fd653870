// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>

#include "backends/cpu/threads.hpp"
#include "generate/random.hpp"
#include "generate/uniform_draws.hpp"
#include "polyad/cp_model.hpp"
#include "polyad/error.hpp"
#include "polyad/factors.hpp"

namespace polyad {

namespace {

/// Calls put(i, row) with the entries of every row of the random factor of a mode, row by row inside a thread's share.
template <class Put>
void draw(std::size_t mode, std::uint64_t rows, std::uint64_t rank, const Context& context, const Put& put) {
  const portable::Key key(context.seed, "random-model", mode);
  const std::uint64_t some = std::max<std::uint64_t>(1, 1024 / rank);  // rows that are drawn at once
  cpu::parallel_ranges(
      context.thread_count(), rows,
      [&](std::uint64_t begin, std::uint64_t end) {
        std::vector<double> numbers(some * rank);
        for (std::uint64_t first = begin; first < end; first += some) {
          const std::uint64_t count = std::min(some, end - first);
          portable::uniform_draws(key, first * rank, count * rank, numbers.data());
          for (std::uint64_t i = 0; i < count; ++i) put(first + i, numbers.data() + i * rank);
        }
      },
      1U << 10U);
}

/// The power of two that makes the length of a column of so many uniform numbers, sqrt(rows / 3) or so, about 1.
double to_unit_length(std::uint64_t rows) {
  return std::ldexp(1.0, -std::max(0, static_cast<int>(std::lround(std::log2(static_cast<double>(rows) / 3) / 2))));
}

void check_rank(std::uint64_t rank) {
  if (rank == 0) throw usage_error("rank 0; a model has at least one component");
}

}  // namespace

CpModel random_model(std::span<const std::uint64_t> dims, std::uint64_t rank, const Context& context) {
  check_rank(rank);
  CpModel model;
  model.weights.assign(rank, 1.0);
  for (std::size_t m = 0; m < dims.size(); ++m) {
    Matrix& a = model.factors.emplace_back(Matrix::unset(dims[m], rank));
    draw(m, dims[m], rank, context,
         [&](std::uint64_t i, const double* row) { std::copy_n(row, rank, a.values.data() + i * rank); });
  }
  return model;
}

template <class T>
std::vector<FactorMatrix<T>> random_factors(std::span<const std::uint64_t> dims, std::uint64_t rank,
                                            const Context& context, ColumnLengths lengths) {
  check_rank(rank);
  std::vector<FactorMatrix<T>> all;
  for (std::size_t m = 0; m < dims.size(); ++m) {
    FactorMatrix<T>& a = all.emplace_back(context, dims[m], rank);
    const double scale = lengths == ColumnLengths::about_1 ? to_unit_length(dims[m]) : 1;
    draw(m, dims[m], rank, context, [&](std::uint64_t i, const double* row) {
      for (std::uint64_t r = 0; r < rank; ++r) a(i, r) = static_cast<T>(row[r] * scale);
    });
  }
  return all;
}

template std::vector<FactorMatrix<float>> random_factors(std::span<const std::uint64_t>, std::uint64_t, const Context&,
                                                         ColumnLengths);
template std::vector<FactorMatrix<double>> random_factors(std::span<const std::uint64_t>, std::uint64_t, const Context&,
                                                          ColumnLengths);

}  // namespace polyad
