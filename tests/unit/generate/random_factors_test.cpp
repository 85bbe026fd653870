// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <cmath>
#include <polyad/polyad.hpp>

#include "generate/uniform_draws.hpp"

namespace polyad {
namespace {

TEST(RandomFactors, TheSameForAnyNumberOfThreads) {
  const std::vector<std::uint64_t> dims = {5000, 3, 1};
  Context one;
  one.threads = 1;
  one.seed = 7;
  Context many = one;
  many.threads = 5;
  const CpModel a = random_model(dims, 7, one);
  const CpModel b = random_model(dims, 7, many);
  const std::vector<FactorMatrix<double>> direct = random_factors<double>(dims, 7, many);
  const std::vector<FactorMatrix<float>> rounded = random_factors<float>(dims, 7, many);
  double sum = 0;
  for (std::size_t m = 0; m < dims.size(); ++m) {
    EXPECT_EQ(a.factors[m].values, b.factors[m].values);
    EXPECT_EQ(a.factors[m].values, matrix_of(direct[m]).values);
    for (std::uint64_t i = 0; i < dims[m]; ++i)
      for (std::uint64_t r = 0; r < 7; ++r) {
        ASSERT_EQ(rounded[m](i, r), static_cast<float>(a.factors[m](i, r)));
        ASSERT_TRUE(a.factors[m](i, r) >= 0 && a.factors[m](i, r) < 1);
        sum += a.factors[m](i, r);
      }
  }
  EXPECT_NEAR(sum / (5004 * 7), 0.5, 0.01);
  EXPECT_EQ(a.weights, std::vector<double>(7, 1.0));
  many.seed = 8;
  EXPECT_NE(random_model(dims, 7, many).factors[0].values, a.factors[0].values);
  EXPECT_NE(a.factors[1].values[0], a.factors[2].values[0]);
  EXPECT_THROW((void)random_model(dims, 0, one), Error);
}

TEST(RandomFactors, ColumnsOfAboutLength1AreTheSameNumbers) {
  const std::vector<std::uint64_t> dims = {1, 2, 100, 30000};
  const std::vector<FactorMatrix<float>> drawn = random_factors<float>(dims, 5);
  const std::vector<FactorMatrix<float>> scaled = random_factors<float>(dims, 5, {}, ColumnLengths::about_1);
  for (std::size_t m = 0; m < dims.size(); ++m) {
    const float scale = scaled[m](0, 0) / drawn[m](0, 0);
    EXPECT_EQ(std::exp2(std::round(std::log2(scale))), scale);
    for (std::uint64_t i = 0; i < dims[m]; ++i)
      for (std::uint64_t r = 0; r < 5; ++r) ASSERT_EQ(scaled[m](i, r), drawn[m](i, r) * scale);
    const double length = norm(scaled[m]) / std::sqrt(5.0);
    EXPECT_LT(length, 1.5);
    if (dims[m] >= 100) {
      EXPECT_GT(length, 0.6);
    }
  }
}

TEST(UniformDraws, AreThoseOfTheStream) {
  const portable::Key key(3, "test");
  for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{77},
                                    (std::uint64_t{1} << 33U) - 9, (std::uint64_t{1} << 40U) + 5}) {
    for (const std::size_t count : {0U, 1U, 2U, 3U, 15U, 16U, 17U, 1000U}) {
      std::vector<double> found(count + 1, -1.0);
      portable::uniform_draws(key, first, count, found.data());
      portable::Random random(key);
      random.seek(first);
      for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(found[i], random.uniform()) << first << " + " << i;
      EXPECT_EQ(found[count], -1) << "nothing behind them is written";
    }
  }
}

TEST(RandomFactors, ModelToFactorsAndBack) {
  CpModel model;
  model.weights = {2, 3};
  model.factors = {Matrix(2, 2), Matrix(1, 2)};
  model.factors[0].values = {3, 0, -4, 0};
  model.factors[1].values = {1e300, 1};
  const std::vector<FactorMatrix<double>> all = factors_of<double>(model);
  EXPECT_EQ(matrix_of(all[0]).values, model.factors[0].values);
  EXPECT_EQ(all[0](1, 2), 0);  // padding
  EXPECT_DOUBLE_EQ(norm(all[0]), 5);
  EXPECT_THROW((void)factors_of<float>(model), Error);
}

}  // namespace
}  // namespace polyad
