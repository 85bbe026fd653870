// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <polyad/polyad.hpp>

#include "oracle/als_oracle.hpp"
#include "unit/solvers/small_tensors.hpp"

namespace polyad {
namespace {

using test::matmul;
using test::random_tensor;
using test::tensor_of;
using test::with_threads;

CpAlsOptions iterations(std::uint64_t rank, std::uint64_t count) {
  CpAlsOptions o;
  o.rank = rank;
  o.iterations = count;
  o.tolerance = 0;
  return o;
}

bool all_finite(const CpModel& model) {
  for (const double w : model.weights)
    if (!std::isfinite(w)) return false;
  for (const Matrix& a : model.factors)
    for (const double v : a.values)
      if (!std::isfinite(v)) return false;
  return true;
}

bool says(const CpAlsResult& r, std::string_view words) {
  for (const std::string& note : r.notes)
    if (note.find(words) != std::string::npos) return true;
  return false;
}

TEST(CpAls, DoesWhatTheDefinitionSays) {
  for (const std::vector<std::uint64_t>& dims :
       {std::vector<std::uint64_t>{7, 9}, {6, 7, 8}, {4, 5, 3, 6}, {3, 4, 3, 2, 5}}) {
    const CooTensor x = random_tensor(dims, 60, dims.size());
    for (const std::uint64_t rank : {1U, 2U}) {
      const CpModel expected = oracle::als(x, random_model(dims, rank), 6);
      const CpAlsResult found = cp_als(x, iterations(rank, 6));
      EXPECT_NEAR(found.fit, oracle::fit(x, expected), 1e-9) << "order " << dims.size() << ", rank " << rank;
      EXPECT_NEAR(found.fit, oracle::fit(x, found.model), 1e-9);
      EXPECT_EQ(found.iterations(), 6U);
      for (std::uint64_t k = 0; k < x.nnz(); ++k) {
        std::vector<std::uint64_t> at;
        for (int m = 0; m < x.order(); ++m) at.push_back(x.index(m, k));
        EXPECT_NEAR(value_at(found.model, at), value_at(expected, at), 1e-7);
      }
    }
  }
}

TEST(CpAls, FindsPlantedModels) {
  for (const std::vector<std::uint64_t>& dims : {std::vector<std::uint64_t>{60, 50, 40},
                                                 {30, 25, 20, 15},
                                                 {14, 12, 10, 9, 8},
                                                 {3000, 12, 20},
                                                 {8, 500, 9, 30}}) {
    GenerateOptions g;
    g.dims = dims;
    g.nnz = 8000;
    Context context;
    context.seed = 3;
    const Planted planted = generate_planted(g, 4, 0, context);
    CpAlsOptions o = iterations(4, 500);
    o.tolerance = 1e-9;
    o.restarts = 5;
    const CpAlsResult found = cp_als(planted.tensor, o);
    EXPECT_GT(found.fit, 0.999) << fmt::format("{}", dims.size());
    EXPECT_GT(score(planted.truth, found.model).score, 0.99) << "order " << dims.size() << ", fit " << found.fit;
    EXPECT_LE(found.runs.size(), 5U);
  }
}

/// Sums in f32 would show 0.9996 here.
TEST(CpAls, FitsNearOneAreRightInF32) {
  GenerateOptions g;
  g.dims = {40, 30, 25};
  g.nnz = 6000;
  g.precision = Precision::f32;
  const Planted planted = generate_planted(g, 3, 0);
  for (const std::string_view format : {"coo", "sweep"}) {
    CpAlsOptions o = iterations(3, 200);
    o.restarts = 3;
    o.tolerance = 1e-9;
    o.format = format;
    const CpAlsResult found = cp_als(planted.tensor, o);
    EXPECT_GT(found.fit, 1 - 1e-5) << format;
    EXPECT_NEAR(found.fit, oracle::fit(planted.tensor, found.model), 1e-7) << format;
    EXPECT_EQ(found.fit, found.history.back().fit) << format;
  }
}

TEST(CpAls, PerfectFitReachesOne) {
  GenerateOptions g;
  g.dims = {30, 20, 25};
  g.nnz = 3000;
  const Planted planted = generate_planted(g, 2, 0);
  CpAlsOptions o = iterations(2, 2000);
  o.restarts = 3;
  o.tolerance = 1e-14;
  const CpAlsResult found = cp_als(planted.tensor, o);
  EXPECT_GT(found.fit, 1 - 1e-7);
  EXPECT_LE(found.fit, 1);
}

TEST(CpAls, FindsStrassensAlgorithm) {
  CpAlsOptions o = iterations(7, 2000);
  o.tolerance = 1e-12;
  o.restarts = 20;
  EXPECT_GT(cp_als(matmul(2), o).fit, 0.9999);
  o.rank = 6;
  o.restarts = 4;
  EXPECT_LT(cp_als(matmul(2), o).fit, 0.9);
}

TEST(CpAls, EveryFormatAndNumberOfThreadsGivesTheSameFit) {
  const CooTensor x = random_tensor({40, 30, 50, 6}, 2000, 5);
  const double expected = cp_als(x, iterations(8, 5)).fit;
  for (const FormatEntry& format : formats())
    for (const int threads : {1, 2, 7}) {
      CpAlsOptions o = iterations(8, 5);
      o.format = format.name;
      const double fit = cp_als(x, o, with_threads(threads)).fit;
      EXPECT_NEAR(fit, expected, 1e-10 * expected) << format.name << ", " << threads << " threads";
    }
}

TEST(CpAls, TheSameCommandGivesTheSameBits) {
  const CooTensor x = random_tensor({60, 40, 50}, 5000, 6);
  for (const std::string format : {"coo", "csf-all", "flycoo", "hicoo", "alto"}) {
    CpAlsOptions o = iterations(9, 5);
    o.format = format;
    const CpModel a = cp_als(x, o, with_threads(3)).model;
    const CpModel b = cp_als(x, o, with_threads(3)).model;
    EXPECT_EQ(a.weights, b.weights) << format;
    for (std::size_t m = 0; m < 3; ++m) EXPECT_EQ(a.factors[m].values, b.factors[m].values) << format;
  }
}

TEST(CpAls, DeterministicRunsDoNotDependOnThreads) {
  const CooTensor x = random_tensor({60, 40, 50}, 5000, 6);
  std::vector<CpModel> models;
  for (const int threads : {1, 2, 7}) {
    Context context = with_threads(threads);
    context.deterministic = true;
    models.push_back(cp_als(x, iterations(9, 5), context).model);
  }
  for (std::size_t m = 0; m < 3; ++m) {
    EXPECT_EQ(models[0].factors[m].values, models[1].factors[m].values);
    EXPECT_EQ(models[0].factors[m].values, models[2].factors[m].values);
  }
}

/// Least squares, HALS and ridge lower the objective in every update.
TEST(CpAls, TheObjectiveNeverRises) {
  int runs = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    std::vector<std::uint64_t> dims;
    for (std::uint64_t m = 0; m < 2 + seed % 4; ++m) dims.push_back(3 + (seed * 7 + m * 5) % 12);
    std::uint64_t cells = 1;
    for (const std::uint64_t d : dims) cells *= d;
    const CooTensor x = random_tensor(dims, std::min(cells / 2, 40 + seed * 5), seed);
    for (const int kind : {0, 1, 2, 3}) {
      CpAlsOptions o = iterations(1 + seed % 6, 40);
      if (kind == 1 || kind == 3)
        for (int m = 0; m < x.order(); ++m) o.nonnegative.push_back(m);
      if (kind >= 2) o.l2 = 0.3;
      o.seed = seed;
      const CpAlsResult r = cp_als(x, o);
      ASSERT_EQ(r.history.size(), 40U);
      const double size = r.history[0].objective;
      for (std::size_t i = 1; i < r.history.size(); ++i)
        EXPECT_LE(r.history[i].objective, r.history[i - 1].objective + 1e-12 * size)
            << "seed " << seed << ", kind " << kind << ", iteration " << i + 1;
      ++runs;
    }
  }
  EXPECT_EQ(runs, 48);
}

TEST(CpAls, AwkwardTensors) {
  CpAlsOptions o;
  o.rank = 3;
  const CpAlsResult one = cp_als(tensor_of({5, 6, 7}, {{4, 5, 6, 2}}), o);
  EXPECT_NEAR(one.fit, 1, 1e-6);
  EXPECT_TRUE(all_finite(one.model));
  EXPECT_NEAR(cp_als(tensor_of({1, 1, 1}, {{0, 0, 0, -3}}), o).fit, 1, 1e-6);

  std::vector<std::vector<double>> rows;
  for (int i = 0; i < 24; ++i)
    rows.push_back({static_cast<double>(i / 8), static_cast<double>(i / 2 % 4), static_cast<double>(i % 2), 1});
  o.rank = 10;
  const CpAlsResult equal = cp_als(tensor_of({3, 4, 2}, rows), o);
  EXPECT_NEAR(equal.fit, 1, 1e-6);
  EXPECT_TRUE(says(equal, "singular")) << "the truncation is said";

  o.rank = 2;
  const CpAlsResult wide = cp_als(tensor_of({3, 3, 3}, {{0, 0, 0, 1e150}, {1, 1, 1, 1e-150}, {2, 2, 2, 1}}), o);
  EXPECT_GT(wide.fit, 0.999);
  EXPECT_NEAR(value_at(wide.model, std::vector<std::uint64_t>{0, 0, 0}) / 1e150, 1, 1e-9);
  EXPECT_TRUE(all_finite(wide.model));
  const CpAlsResult tiny = cp_als(tensor_of({3, 3, 3}, {{0, 0, 0, 1e-150}, {1, 1, 1, 2e-150}}), o);
  EXPECT_NEAR(tiny.fit, 1, 1e-6);

  std::vector<std::vector<double>> diagonal;
  for (int i = 0; i < 3; ++i) {
    diagonal.emplace_back(12, static_cast<double>(i));
    diagonal.back().push_back(1 + i);
  }
  EXPECT_GT(cp_als(tensor_of(std::vector<std::uint64_t>(12, 3), diagonal), o).fit, 0.3);
  EXPECT_EQ(cp_als(tensor_of({3, 4}, {{0, 0, 0}}), o).fit, 1) << "a tensor of zeros is fitted";
  EXPECT_EQ(cp_als(make_coo({3, 4}, 0, Precision::f64, {}), o).fit, 1) << "and so is one without nonzeros";
}

#if defined(__SSE2__) || defined(__aarch64__)

TEST(CpAls, NumbersThatSayNothingBecomeZerosNotSubnormal) {
  // Of the second nonzero a row of mode 1 gets 1e-20 times entries of other factors, and one of mode 2 1e-20 times
  // that.
  const CpAlsResult r =
      cp_als(tensor_of({2, 2, 2}, {{0, 0, 0, 1}, {1, 1, 1, 1e-20}}, Precision::f32), iterations(1, 1));
  EXPECT_NEAR(r.fit, 1, 1e-6);
  EXPECT_GT(r.model.factors[0](1, 0), 0);
  EXPECT_EQ(r.model.factors[1](1, 0), 0);
}

#endif

TEST(CpAls, NumbersStaySubnormalWhereTheySaySomething) {
  // As above, but all of the tensor is so small: the row of mode 2 is made from 1e-30 times 1e-9.
  const CpAlsResult r =
      cp_als(tensor_of({2, 2, 2}, {{0, 0, 0, 1e-21}, {1, 1, 1, 1e-30}}, Precision::f32), iterations(1, 1));
  EXPECT_NEAR(r.fit, 1, 1e-6);
  EXPECT_GT(r.model.factors[1](1, 0), 0);
  // And where rows are divided by a norm near the largest number.
  const CpAlsResult large = cp_als(
      tensor_of({3, 3, 3}, {{0, 0, 0, 1e36}, {1, 1, 1, 5e35}, {0, 1, 1, 3e35}}, Precision::f32), iterations(2, 60));
  EXPECT_GT(large.fit, 0.99);
}

TEST(CpAls, ManyOrLongModesDoNotMakeTheStartVanish) {
  // Two dense blocks of 2^12 cells; the products of entries of random factors of length 30 are 1e-9.
  std::vector<std::vector<double>> rows;
  for (int block = 0; block < 2; ++block)
    for (int cell = 0; cell < 4096; ++cell) {
      std::vector<double>& row = rows.emplace_back();
      for (int m = 0; m < 12; ++m) row.push_back(block * 20 + (cell >> m & 1));
      row.push_back(1 + block);
    }
  const std::vector<std::uint64_t> dims(12, 30);
  for (const Precision precision : {Precision::f32, Precision::f64})
    EXPECT_GT(cp_als(tensor_of(dims, rows, precision), iterations(2, 20)).fit, 0.4) << name_of(precision);
  GenerateOptions planted;
  planted.dims = std::vector<std::uint64_t>(6, 10000);
  planted.nnz = 2000;
  planted.precision = Precision::f32;
  EXPECT_GT(cp_als(generate_planted(planted, 3, 0).tensor, iterations(3, 30)).fit, 0.1);
}

TEST(CpAls, ValuesTooSmallAreAnError) {
  EXPECT_THROW((void)cp_als(tensor_of({2, 2}, {{0, 0, 1e-40}}, Precision::f32), iterations(1, 3)), Error);
  EXPECT_THROW((void)cp_als(tensor_of({2, 2}, {{0, 0, 1e-309}}), iterations(1, 3)), Error);
  CpAlsOptions ridge = iterations(1, 3);
  ridge.l2 = 0.1;
  EXPECT_THROW((void)cp_als(tensor_of({2, 2}, {{0, 0, 1e-200}}), ridge), Error);
}

TEST(CpAls, ValuesTooLargeForTheirSumsAreAnError) {
  std::vector<std::vector<double>> rows;
  for (int i = 0; i < 50; ++i) rows.push_back({static_cast<double>(i % 5), static_cast<double>(i / 5), 3e38});
  EXPECT_THROW((void)cp_als(tensor_of({5, 10}, rows, Precision::f32), iterations(2, 3)), Error);
}

TEST(CpAls, EmptySlicesGiveZeroRows) {
  const CpAlsResult r = cp_als(tensor_of({6, 5, 4}, {{0, 0, 0, 1}, {2, 1, 3, 2}, {5, 4, 3, 3}}), iterations(2, 10));
  for (const std::uint64_t i : {1U, 3U, 4U})
    for (std::uint64_t c = 0; c < 2; ++c) EXPECT_EQ(r.model.factors[0](i, c), 0);
}

TEST(CpAls, DuplicatesAreAdded) {
  const CooTensor twice = tensor_of({3, 3}, {{0, 0, 1}, {0, 0, 2}, {1, 2, 5}});
  const CooTensor once = tensor_of({3, 3}, {{0, 0, 3}, {1, 2, 5}});
  const CpAlsResult a = cp_als(twice, iterations(1, 10));
  const CpAlsResult b = cp_als(once, iterations(1, 10));
  EXPECT_EQ(a.fit, b.fit);
  EXPECT_EQ(a.model.weights, b.model.weights);
}

TEST(CpAls, SinglePrecisionFollowsDouble) {
  const CooTensor x = random_tensor({50, 40, 30}, 4000, 8);
  const CooTensor y = copy_as(x, Precision::f32);
  EXPECT_NEAR(cp_als(y, iterations(6, 20)).fit, cp_als(x, iterations(6, 20)).fit, 1e-4);
}

TEST(CpAls, NonnegativeFactorsAreNotNegative) {
  const CooTensor x = random_tensor({20, 15, 10}, 600, 9);
  CpAlsOptions o = iterations(5, 30);
  o.nonnegative = {0, 2};
  const CpAlsResult r = cp_als(x, o);
  for (const int mode : {0, 2})
    for (const double v : r.model.factors[static_cast<std::size_t>(mode)].values) EXPECT_GE(v, 0);
  EXPECT_NEAR(r.fit, oracle::fit(x, r.model), 1e-9);

  GenerateOptions g;
  g.dims = {40, 30, 20};
  g.nnz = 4000;
  const Planted planted = generate_planted(g, 3, 0);
  o = iterations(3, 400);
  o.nonnegative = {0, 1, 2};
  o.restarts = 3;
  EXPECT_GT(cp_als(planted.tensor, o, with_threads(1)).fit, 0.99) << "planted factors are not negative";
}

TEST(CpAls, ComponentsThatDieLeaveNumbersBehind) {
  int runs = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed)
    for (const Precision precision : {Precision::f32, Precision::f64}) {
      const CooTensor x = random_tensor({4 + seed % 4, 10, 4}, 2 + seed % 7, seed, precision);
      CpAlsOptions o = iterations(8 + seed % 9, 60);
      o.nonnegative = {0, 1, 2};
      o.seed = seed;
      const CpAlsResult r = cp_als(x, o);
      EXPECT_TRUE(all_finite(r.model)) << "seed " << seed;
      EXPECT_NEAR(r.fit, oracle::fit(x, r.model), precision == Precision::f64 ? 1e-6 : 1e-2) << "seed " << seed;
      ++runs;
    }
  EXPECT_EQ(runs, 120);
}

TEST(CpAls, RidgeShortensTheFactors) {
  const CooTensor x = random_tensor({20, 15, 10}, 600, 9);
  CpAlsOptions o = iterations(3, 200);
  const double free = cp_als(x, o).model.weights[0];
  o.l2 = 1;
  const CpAlsResult ridged = cp_als(x, o);
  EXPECT_LT(ridged.model.weights[0], free);
  EXPECT_NEAR(ridged.fit, oracle::fit(x, ridged.model), 1e-9);
}

TEST(CpAls, FixedModesStayAndComponentsKeepTheirOrder) {
  const CooTensor x = random_tensor({20, 15, 10}, 900, 10);
  const CpAlsResult known = cp_als(x, iterations(4, 30));
  const CooTensor fresh = random_tensor({35, 15, 10}, 900, 11);  // other rows in the free mode
  CpAlsOptions o = iterations(4, 5);
  o.start = CpStart::model;
  o.initial = &known.model;
  o.fixed = {1, 2};
  const CpAlsResult r = cp_als(fresh, o);
  EXPECT_EQ(r.model.factors[1].values, known.model.factors[1].values);
  EXPECT_EQ(r.model.factors[2].values, known.model.factors[2].values);
  EXPECT_NEAR(r.fit, oracle::fit(fresh, r.model), 1e-9);
  EXPECT_NEAR(r.history[0].fit, r.history[4].fit, 1e-12) << "one free mode is solved at once";
  CpModel one_less = known.model;
  for (std::uint64_t i = 0; i < 15; ++i) one_less.factors[1](i, 2) = 0;
  o.initial = &one_less;
  EXPECT_EQ(cp_als(fresh, o).model.weights[2], 0) << "a component that vanishes has no weight";
  o.initial = &known.model;
  const CpAlsResult single = cp_als(copy_as(fresh, Precision::f32), o);
  EXPECT_EQ(single.model.factors[1].values, known.model.factors[1].values) << "also in f32";
  o.fixed = {};
  EXPECT_THROW((void)cp_als(fresh, o), Error) << "without fixed modes the shapes must agree";
  o.fixed = {0, 1, 2};
  EXPECT_THROW((void)cp_als(x, o), Error) << "nothing is free";
  o.start = CpStart::random;
  o.fixed = {1};
  EXPECT_THROW((void)cp_als(x, o), Error) << "fixed to what?";
}

TEST(CpAls, GoesOnFromAModel) {
  const CooTensor x = random_tensor({20, 15, 10}, 900, 10);
  const CpAlsResult ten = cp_als(x, iterations(4, 10));
  CpAlsOptions o = iterations(4, 1);
  o.start = CpStart::model;
  o.initial = &ten.model;
  EXPECT_NEAR(cp_als(x, o).fit, cp_als(x, iterations(4, 11)).fit, 1e-9);
  o.iterations = 0;
  const CpAlsResult same = cp_als(x, o);
  EXPECT_NEAR(same.fit, ten.fit, 1e-12);
  EXPECT_GT(score(ten.model, same.model).score, 1 - 1e-12) << "weights are those of the model";
}

TEST(CpAls, TheSketchIsABetterStart) {
  GenerateOptions g;
  g.dims = {200, 150, 100};
  g.nnz = 20000;
  const Planted planted = generate_planted(g, 5, 0.05);
  CpAlsOptions o = iterations(5, 1);
  const double random = cp_als(planted.tensor, o).fit;
  o.start = CpStart::rsvd;
  EXPECT_GT(cp_als(planted.tensor, o).fit, random);
  const CpAlsResult above = cp_als(random_tensor({3, 4, 40}, 100, 2), [] {
    CpAlsOptions many = iterations(12, 10);
    many.start = CpStart::rsvd;
    return many;
  }());
  EXPECT_TRUE(all_finite(above.model)) << "more components than rows";
}

TEST(CpAls, RestartsKeepTheBest) {
  const CooTensor x = random_tensor({12, 10, 9}, 300, 4);
  CpAlsOptions o = iterations(4, 15);
  o.seed = 100;
  o.restarts = 4;
  const CpAlsResult r = cp_als(x, o);
  ASSERT_EQ(r.runs.size(), 4U);
  double best = 0;
  for (std::uint64_t k = 0; k < 4; ++k) {
    CpAlsOptions alone = iterations(4, 15);
    alone.seed = 100 + k;
    EXPECT_EQ(cp_als(x, alone).fit, r.runs[k].fit) << "start k is that of seed + k";
    best = std::max(best, r.runs[k].fit);
  }
  EXPECT_EQ(r.fit, best);
  EXPECT_NEAR(oracle::fit(x, r.model), best, 1e-9);
}

TEST(CpAls, RestartsAreComparedAtAnySize) {
  for (const double size : {1e-200, 1e200}) {
    std::vector<std::vector<double>> rows;
    for (int i = 0; i < 60; ++i)
      rows.push_back({static_cast<double>(i * 7 % 9), static_cast<double>(i * 5 % 8), static_cast<double>(i % 7),
                      (1 + i % 5) * size});
    CpAlsOptions o = iterations(3, 6);
    o.restarts = 6;
    const CpAlsResult r = cp_als(tensor_of({9, 8, 7}, rows), o);
    for (const CpRun& run : r.runs) EXPECT_LE(run.fit, r.fit);
  }
}

TEST(CpAls, SaysWhenComponentsAreAlike) {
  CpAlsOptions o = iterations(3, 100);
  EXPECT_TRUE(says(cp_als(tensor_of({3, 3, 3}, {{0, 0, 0, 5}}), o), "nearly the same"));
}

TEST(CpAls, SaysWhenItIsDegenerate) {
  // a o a o b + a o b o a + b o a o a has rank 3 and models of rank 2 as near as one likes (de Silva, Lim, 2008).
  const CooTensor x = tensor_of({2, 2, 2}, {{0, 0, 1, 1}, {0, 1, 0, 1}, {1, 0, 0, 1}});
  CpAlsOptions o = iterations(2, 3000);
  const CpAlsResult r = cp_als(x, o);
  EXPECT_TRUE(says(r, "degenerate")) << r.fit << " " << r.model.weights[0];
  EXPECT_FALSE(says(cp_als(random_tensor({12, 10, 9}, 300, 4), iterations(3, 50)), "degenerate"));
}

TEST(CpAls, EndsForTheReasonItGives) {
  const CooTensor x = random_tensor({12, 10, 9}, 300, 4);
  CpAlsOptions o = iterations(3, 7);
  EXPECT_EQ(cp_als(x, o).stop, CpStop::iterations);
  o.tolerance = 1e-3;
  o.iterations = 1000;
  const CpAlsResult converged = cp_als(x, o);
  EXPECT_TRUE(converged.converged());
  EXPECT_LT(std::abs(converged.history.back().change), 1e-3);
  o.tolerance = 0;
  o.iterations = 100000000;
  o.max_seconds = 0.05;
  EXPECT_EQ(cp_als(x, o).stop, CpStop::seconds);
  Context context;
  int asked = 0;
  context.cancelled = [&] { return ++asked > 40; };
  o.max_seconds = 0;
  const CpAlsResult stopped = cp_als(clone(x), o, context);
  EXPECT_EQ(stopped.stop, CpStop::cancelled);
  EXPECT_NEAR(stopped.fit, oracle::fit(x, stopped.model), 1e-9) << "also in the middle of an iteration";
  o.iterations = 0;
  const CpAlsResult start = cp_als(x, o);
  EXPECT_EQ(start.iterations(), 0U);
  EXPECT_NEAR(start.fit, oracle::fit(x, start.model), 1e-9) << "a start has a fit too";
}

TEST(CpAls, RefusesWhatMakesNoSense) {
  const CooTensor x = random_tensor({12, 10, 9}, 300, 4);
  const auto refused = [&](auto change) {
    CpAlsOptions o = iterations(2, 2);
    change(o);
    EXPECT_THROW((void)cp_als(x, o), Error);
  };
  refused([](CpAlsOptions& o) { o.rank = 0; });
  refused([](CpAlsOptions& o) { o.tolerance = -1; });
  refused([](CpAlsOptions& o) { o.tolerance = std::nan(""); });
  refused([](CpAlsOptions& o) { o.l2 = -1; });
  refused([](CpAlsOptions& o) { o.restarts = 0; });
  refused([](CpAlsOptions& o) { o.nonnegative = {3}; });
  refused([](CpAlsOptions& o) { o.nonnegative = {1, 1}; });
  refused([](CpAlsOptions& o) { o.format = "cheese"; });
  refused([](CpAlsOptions& o) { o.resume = true; });
  EXPECT_THROW((void)cp_als(tensor_of({5}, {{1, 2}}), iterations(2, 2)), Error);
}

}  // namespace
}  // namespace polyad
