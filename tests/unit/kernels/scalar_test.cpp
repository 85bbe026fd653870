// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <polyad/polyad.hpp>

#include "matrix/cases.hpp"

namespace polyad {
namespace {

CooTensor with_values(const std::vector<double>& values, Precision precision = Precision::f64) {
  CooTensor x = make_coo({values.size(), 1, 1}, values.size(), precision, {});
  visit(x, [&]<class Index, class Value>(const CooView<Index, Value>& v) {
    for (std::size_t k = 0; k < values.size(); ++k) {
      v.indices[0][k] = static_cast<Index>(k);
      v.values[k] = static_cast<Value>(values[k]);
    }
  });
  return x;
}

double norm_of(const std::vector<double>& values, Precision precision = Precision::f64) {
  return norm(build(with_values(values, precision), "coo"));
}

TEST(Norm, OfFewNumbers) {
  EXPECT_EQ(norm_of({3, -4}), 5);
  EXPECT_EQ(norm_of({0, 0}), 0);
  EXPECT_EQ(norm(build(make_coo({3, 3}, 0, Precision::f64, {}), "coo")), 0);
  EXPECT_EQ(norm_of({3e-30, 4e-30}, Precision::f32),
            std::sqrt(std::pow(double{3e-30F}, 2) + std::pow(double{4e-30F}, 2)));
}

TEST(Norm, NeitherOverflowsNorUnderflows) {
  for (const double scale : {1e-320, 1e-300, 1e-200, 1e-150, 1e-100, 1.0, 1e100, 1e150, 1e200, 1e300, 3e307}) {
    const double found = norm_of({3 * scale, 4 * scale});
    EXPECT_NEAR(found / scale, 5, scale < 1e-307 ? 1e-3 : 1e-14) << scale;
  }
  EXPECT_NEAR(norm_of({1e150, 1e-150, -1e150}) / 1e150, std::sqrt(2), 1e-15);
  EXPECT_NEAR(norm_of({1e160, 1}) / 1e160, 1, 1e-15);
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(norm_of({1, -infinity}), infinity);
  EXPECT_TRUE(std::isnan(norm_of({1e200, std::numeric_limits<double>::quiet_NaN()})));
}

TEST(Norm, IsTheSameBitsForAnyNumberOfThreads) {
  for (const double scale : {1.0, 1e200}) {
    std::vector<double> values(100000);
    cases::Dice dice(1);
    for (double& v : values) v = (dice.unit() - 0.5) * scale;
    const CooTensor x = with_values(values);
    Context one;
    one.threads = 1;
    const double expected = norm(build(x, "coo"), one);
    long double sum = 0;
    for (const double v : values) sum += static_cast<long double>(v / scale) * (v / scale);
    EXPECT_NEAR(expected / scale, static_cast<double>(std::sqrt(sum)), 1e-12);
    for (const int threads : {2, 3, 16}) {
      Context context;
      context.threads = threads;
      EXPECT_EQ(norm(build(x, "coo"), context), expected) << threads;
    }
  }
}

/// A model with given entries; factor m has `rows[m]` rows.
CpModel model_of(const std::vector<double>& weights, const std::vector<std::uint64_t>& rows) {
  CpModel model;
  model.weights = weights;
  cases::Dice dice(7);
  for (const std::uint64_t n : rows) {
    Matrix& a = model.factors.emplace_back(n, weights.size());
    for (double& v : a.values) v = static_cast<double>(dice.below(9)) - 4;
  }
  return model;
}

/// The norm of all entries, one by one.
double dense_norm(const CpModel& model) {
  double sum = 0;
  for (std::uint64_t i = 0; i < model.factors[0].rows; ++i)
    for (std::uint64_t j = 0; j < model.factors[1].rows; ++j)
      for (std::uint64_t k = 0; k < model.factors[2].rows; ++k) {
        double entry = 0;
        for (std::size_t r = 0; r < model.weights.size(); ++r)
          entry += model.weights[r] * model.factors[0](i, r) * model.factors[1](j, r) * model.factors[2](k, r);
        sum += entry * entry;
      }
  return std::sqrt(sum);
}

TEST(ModelNorm, IsThatOfItsEntries) {
  for (const std::vector<double>& weights : {std::vector<double>{2}, {1, -3, 0.5, 4, 7}, {1, 0, 2}}) {
    const CpModel model = model_of(weights, {5, 6, 7});
    EXPECT_NEAR(norm(model), dense_norm(model), 1e-11 * dense_norm(model));
  }
  EXPECT_EQ(norm(model_of({0, 0}, {3, 4, 5})), 0);
  EXPECT_EQ(norm(CpModel{}), 0);
}

TEST(ModelNorm, CancelledComponentsGiveZeroNotNan) {
  CpModel model = model_of({1, -1}, {50, 60, 70});
  for (Matrix& a : model.factors)
    for (std::uint64_t i = 0; i < a.rows; ++i) a(i, 1) = a(i, 0) = a(i, 0) / 3;
  EXPECT_NEAR(norm(model), 0, 1e-6);
}

TEST(ModelNorm, NeitherOverflowsNorUnderflows) {
  CpModel model = model_of({1, -3, 0.5}, {5, 6, 7});
  const double expected = norm(model);
  for (double& v : model.factors[0].values) v *= 1e200;
  for (double& v : model.factors[1].values) v *= 1e200;
  for (double& v : model.factors[2].values) v *= 1e-250;
  EXPECT_NEAR(norm(model) / 1e150, expected, 1e-12 * expected);
  for (double& v : model.factors[0].values) v *= 1e-300;
  EXPECT_NEAR(norm(model) / 1e-150, expected, 1e-12 * expected);
}

TEST(Innerprod, IsTheSameBitsForAnyNumberOfThreadsAndRefusesOtherShapes) {
  const CooTensor x = [&] {
    CooTensor t = cases::make(cases::all().back(), Precision::f64);
    cases::Dice dice(9);
    for (std::uint64_t k = 0; k < t.nnz(); ++k) std::get<Buffer<double>>(t.values)[k] *= dice.unit();
    return t;
  }();
  CpModel model = model_of({0.3, -1.7, 2.1}, x.dims);
  double expected = 0;
  for (const int threads : {1, 2, 7}) {
    Context context;
    context.threads = threads;
    const double found = innerprod(build(x, "coo", {}, context), model, context);
    if (threads == 1) expected = found;
    EXPECT_EQ(found, expected);
  }
  EXPECT_NE(expected, 0);
  const Tensor t = build(x, "coo");
  model.factors.pop_back();
  EXPECT_THROW(static_cast<void>(innerprod(t, model)), Error);
  model.factors.emplace_back(3, 3);
  EXPECT_THROW(static_cast<void>(innerprod(t, model)), Error);
}

}  // namespace
}  // namespace polyad
