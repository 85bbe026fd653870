// SPDX-License-Identifier: MIT
/// \file The oracle itself, on numbers done by hand.
#include "oracle/kernel_oracle.hpp"

#include <gtest/gtest.h>

#include "oracle/coo_oracle.hpp"

namespace polyad::oracle {
namespace {

// X is 2 x 2 x 2 with X(1,1,1) = 2, X(1,2,1) = 3, X(2,1,2) = 5 (1-based).
CooTensor small() { return tensor({2, 2, 2}, {{{0, 0, 0}, 2}, {{0, 1, 0}, 3}, {{1, 0, 1}, 5}}, Precision::f64); }

Dense matrix(std::uint64_t rows, std::uint64_t cols, std::vector<double> values) {
  Dense d(rows, cols);
  d.values = std::move(values);
  return d;
}

TEST(Oracle, Mttkrp) {
  const std::vector<Dense> factors = {matrix(2, 2, {1, 2, 3, 4}), matrix(2, 2, {5, 6, 7, 8}),
                                      matrix(2, 2, {1, -1, 2, -2})};
  // row 1: 2*(5,6)*(1,-1) + 3*(7,8)*(1,-1) = (31,-36); row 2: 5*(5,6)*(2,-2) = (50,-60)
  EXPECT_EQ(mttkrp(small(), factors, 0).values, (std::vector<double>{31, -36, 50, -60}));
  // row 1: 2*(1,2)*(1,-1) + 5*(3,4)*(2,-2) = (32,-44); row 2: 3*(1,2)*(1,-1) = (3,-6)
  EXPECT_EQ(mttkrp(small(), factors, 1).values, (std::vector<double>{32, -44, 3, -6}));
  // row 1: 2*(1,2)*(5,6) + 3*(1,2)*(7,8) = (31,72); row 2: 5*(3,4)*(5,6) = (75,120)
  EXPECT_EQ(mttkrp(small(), factors, 2).values, (std::vector<double>{31, 72, 75, 120}));
}

TEST(Oracle, Ttv) {
  const auto y = ttv(small(), {10, 1}, 1);
  ASSERT_EQ(y.size(), 2U);
  EXPECT_EQ(y.at({0, 0}), 23);  // 2*10 + 3*1
  EXPECT_EQ(y.at({1, 1}), 50);  // 5*10
}

TEST(Oracle, Ttm) {
  const auto y = ttm(small(), matrix(3, 2, {1, 0, 0, 1, 1, 1}), 1);
  ASSERT_EQ(y.size(), 2U);
  EXPECT_EQ(y.at({0, 0}), (std::vector<double>{2, 3, 5}));
  EXPECT_EQ(y.at({1, 1}), (std::vector<double>{5, 0, 5}));
}

TEST(Oracle, Innerprod) {
  const std::vector<Dense> factors = {matrix(2, 1, {1, 2}), matrix(2, 1, {3, 4}), matrix(2, 1, {5, 6})};
  // 2*15 + 3*20 + 5*36 = 270, with weight 2
  EXPECT_EQ(innerprod(small(), {2}, factors), 540);
}

}  // namespace
}  // namespace polyad::oracle
