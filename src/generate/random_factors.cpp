// SPDX-License-Identifier: MIT
#include "backends/cpu/threads.hpp"
#include "generate/random.hpp"
#include "polyad/cp_model.hpp"
#include "polyad/error.hpp"
#include "polyad/factors.hpp"

namespace polyad {

namespace {

/// Calls put(i, r, value) for every entry of the random factor of a mode, row by row inside a thread's share.
template <class Put>
void draw(int mode, std::uint64_t rows, std::uint64_t rank, const Context& context, const Put& put) {
  const portable::Key key(context.seed, "random-model", static_cast<std::uint64_t>(mode));
  cpu::parallel_ranges(
      context.thread_count(), rows,
      [&](std::uint64_t begin, std::uint64_t end) {
        portable::Random random(key);
        random.seek(begin * rank);
        for (std::uint64_t i = begin; i < end; ++i)
          for (std::uint64_t r = 0; r < rank; ++r) put(i, r, random.uniform());
      },
      1U << 10U);
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
    Matrix& a = model.factors.emplace_back(dims[m], rank);
    draw(static_cast<int>(m), dims[m], rank, context,
         [&](std::uint64_t i, std::uint64_t r, double value) { a(i, r) = value; });
  }
  return model;
}

template <class T>
std::vector<FactorMatrix<T>> random_factors(std::span<const std::uint64_t> dims, std::uint64_t rank,
                                            const Context& context) {
  check_rank(rank);
  std::vector<FactorMatrix<T>> all;
  for (std::size_t m = 0; m < dims.size(); ++m) {
    FactorMatrix<T>& a = all.emplace_back(context, dims[m], rank);
    draw(static_cast<int>(m), dims[m], rank, context,
         [&](std::uint64_t i, std::uint64_t r, double value) { a(i, r) = static_cast<T>(value); });
  }
  return all;
}

template std::vector<FactorMatrix<float>> random_factors(std::span<const std::uint64_t>, std::uint64_t, const Context&);
template std::vector<FactorMatrix<double>> random_factors(std::span<const std::uint64_t>, std::uint64_t,
                                                          const Context&);

}  // namespace polyad
