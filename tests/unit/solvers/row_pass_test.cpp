// SPDX-License-Identifier: MIT
#include "solvers/cp_als/row_pass.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <polyad/polyad.hpp>

#include "kernels/mttkrp/update_rows.hpp"
#include "solvers/cp_als/gram_solve.hpp"
#include "unit/solvers/small_tensors.hpp"

namespace polyad::cp_als_detail {
namespace {

template <class T>
FactorMatrix<T> some_rows(std::uint64_t rows, std::uint64_t rank) {
  const std::uint64_t dims[] = {rows};
  std::vector<FactorMatrix<T>> random = random_factors<T>(dims, rank);
  for (std::uint64_t i = 0; i < rows; i += 3)  // empty slices
    for (std::uint64_t r = 0; r < rank; ++r) random[0](i, r) = 0;
  return std::move(random[0]);
}

Small some_solution(std::uint64_t rank) {
  Small w(rank);
  for (std::uint64_t r = 0; r < rank; ++r)
    for (std::uint64_t s = 0; s < rank; ++s) w(r, s) = std::sin(static_cast<double>(3 * r + s));
  return w;
}

template <class T>
void expect_plain_loops(std::uint64_t rows, std::uint64_t rank) {
  const double tolerance = sizeof(T) == 4 ? 1e-4 : 1e-10;
  const FactorMatrix<T> v = some_rows<T>(rows, rank);
  const Small w = some_solution(rank);
  std::vector<double> expected(rows * rank);
  std::vector<double> gram(rank * rank);
  std::vector<double> inner(rank);
  for (std::uint64_t i = 0; i < rows; ++i) {
    for (std::uint64_t s = 0; s < rank; ++s)
      for (std::uint64_t r = 0; r < rank; ++r) expected[i * rank + s] += static_cast<double>(v(i, r)) * w(r, s);
    for (std::uint64_t r = 0; r < rank; ++r) {
      inner[r] += static_cast<double>(v(i, r)) * expected[i * rank + r];
      for (std::uint64_t s = 0; s < rank; ++s) gram[r * rank + s] += expected[i * rank + r] * expected[i * rank + s];
    }
  }
  std::vector<RowSums> sums;
  for (const int threads : {1, 2, 7}) {
    FactorMatrix<T> a = some_rows<T>(rows, rank);
    sums.push_back(solve_rows(a, w, test::with_threads(threads)));
    double size = 0;
    for (std::uint64_t i = 0; i < rows; ++i)
      for (std::uint64_t r = 0; r < rank; ++r) {
        ASSERT_NEAR(static_cast<double>(a(i, r)), expected[i * rank + r], tolerance * static_cast<double>(rank));
        size = std::max(size, std::abs(gram[r * rank + r]));
      }
    for (std::uint64_t r = 0; r < rank; ++r) {
      ASSERT_NEAR(sums.back().inner[r], inner[r], tolerance * (1 + size));
      for (std::uint64_t s = 0; s < rank; ++s)
        ASSERT_NEAR(sums.back().gram(r, s), gram[r * rank + s], tolerance * (1 + size)) << r << " " << s;
    }
    EXPECT_EQ(gram_of(a, test::with_threads(threads)).values, sums.back().gram.values);
  }
  EXPECT_EQ(sums[0].gram.values, sums[1].gram.values) << "the same bits for any number of threads";
  EXPECT_EQ(sums[0].gram.values, sums[2].gram.values);
  EXPECT_EQ(sums[0].inner, sums[1].inner);
}

TEST(RowPass, IsWhatPlainLoopsGive) {
  for (const std::uint64_t rank : {1U, 3U, 4U, 5U, 8U, 16U, 17U, 33U}) {
    expect_plain_loops<float>(131, rank);
    expect_plain_loops<double>(131, rank);
  }
  expect_plain_loops<double>(0, 3);
  expect_plain_loops<double>(1, 40);
}

TEST(RowPass, SeveralThreadsReallyShareTheRows) {
  expect_plain_loops<float>(20000, 33);
  expect_plain_loops<double>(20000, 33);
}

TEST(RowPass, DescentFindsTheNonnegativeMinimum) {
  // Rows with a known answer: the gradient v - a G is 0 where a > 0 and not positive where a = 0.
  const std::uint64_t rank = 6;
  const FactorMatrix<double> base = some_rows<double>(40, rank);
  const Small gram = gram_of(base, {});
  FactorMatrix<double> v({}, 500, rank);
  FactorMatrix<double> a({}, 500, rank);
  for (std::uint64_t i = 0; i < 500; ++i)
    for (std::uint64_t r = 0; r < rank; ++r) {
      v(i, r) = std::sin(static_cast<double>(i * 7 + r * 3)) * 5;
      a(i, r) = 0.5;
    }
  const std::vector<double> one(rank, 1.0);
  const Context context = test::with_threads(2);
  RowScratch<double> scratch;
  const auto descent = nonnegative_descent<double>(a, {1.0, gram, one, one, 2000}, scratch, context);
  update_rows(v, *descent, context);
  for (std::uint64_t i = 0; i < 500; ++i)
    for (std::uint64_t r = 0; r < rank; ++r) {
      double gradient = v(i, r);
      for (std::uint64_t s = 0; s < rank; ++s) gradient -= a(i, s) * gram(s, r);
      EXPECT_GE(a(i, r), 0);
      EXPECT_LT(a(i, r) > 0 ? std::abs(gradient) : gradient, 1e-6) << i << " " << r;
    }
}

TEST(GramSolve, InvertsAndTruncates) {
  const Small gram = gram_of(some_rows<double>(60, 7), {});
  const PseudoInverse inverse = pseudo_inverse(gram, 0, 0);
  EXPECT_EQ(inverse.truncated, 0U);
  for (std::uint64_t r = 0; r < 7; ++r)
    for (std::uint64_t s = 0; s < 7; ++s) {
      double sum = 0;
      for (std::uint64_t k = 0; k < 7; ++k) sum += gram(r, k) * inverse.matrix(k, s);
      EXPECT_NEAR(sum, r == s ? 1 : 0, 1e-9);
    }
  Small ones(3);  // rank 1, and a component that vanished
  for (std::uint64_t r = 0; r < 2; ++r)
    for (std::uint64_t s = 0; s < 2; ++s) ones(r, s) = 4;
  const PseudoInverse singular = pseudo_inverse(ones, 0, 0);
  EXPECT_EQ(singular.truncated, 1U);
  EXPECT_NEAR(singular.matrix(0, 0) + singular.matrix(0, 1), 0.125, 1e-12);
  EXPECT_EQ(singular.matrix(2, 2), 0);
}

}  // namespace
}  // namespace polyad::cp_als_detail
