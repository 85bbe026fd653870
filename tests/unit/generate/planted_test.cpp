// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "generate/random.hpp"
#include "generate/supports.hpp"
#include "polyad/error.hpp"
#include "polyad/generate.hpp"
#include "polyad/operations.hpp"

namespace polyad {
namespace {

struct Case {
  std::vector<std::uint64_t> dims;
  std::uint64_t nnz;
  std::uint64_t rank;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {{14, 12, 10, 9, 8}, 20000, 4},  // small dims, supports of half of each mode
      {{200, 300, 400}, 50000, 8},     //
      {{5, 2000, 30}, 6000, 3},        // skewed sizes
      {{1000000, 50, 60}, 10000, 5},   //
      {{20, 20, 20}, 8000, 3},         // full: every component covers everything
      {{20, 20, 20}, 7000, 6},         // much overlap
      {{1, 40, 50}, 900, 2},           // a mode of length 1
      {{6, 6, 6, 6, 6, 6, 6, 6}, 20000, 4},
      {{30, 30, 30}, 27, 1},
  };
  return all;
}

GenerateOptions options_of(const Case& c) {
  GenerateOptions o;
  o.dims = c.dims;
  o.nnz = c.nnz;
  return o;
}

Context with(int threads) {
  Context context;
  context.threads = threads;
  context.seed = 5;
  return context;
}

double value_at(const CpModel& model, const std::vector<std::uint64_t>& at) {
  double sum = 0;
  for (std::uint64_t r = 0; r < model.rank(); ++r) {
    double p = model.weights[r];
    for (std::size_t m = 0; m < at.size(); ++m) p *= model.factors[m](at[m], r);
    sum += p;
  }
  return sum;
}

/// Squared norm of the whole model: sum_rs w_r w_s prod_m (A_m' A_m)_rs.
double squared_norm(const CpModel& model) {
  double sum = 0;
  for (std::uint64_t r = 0; r < model.rank(); ++r) {
    for (std::uint64_t s = 0; s < model.rank(); ++s) {
      double p = model.weights[r] * model.weights[s];
      for (const Matrix& a : model.factors) {
        double dot = 0;
        for (std::uint64_t i = 0; i < a.rows; ++i) dot += a(i, r) * a(i, s);
        p *= dot;
      }
      sum += p;
    }
  }
  return sum;
}

TEST(Planted, StoresTheWholeModel) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(testing::PrintToString(c.dims));
    const Planted p = generate_planted(options_of(c), c.rank, 0, with(2));
    const CooTensor& x = p.tensor;
    EXPECT_EQ(x.dims, c.dims);
    EXPECT_TRUE(x.duplicates_merged);
    ASSERT_EQ(x.sorted_by.size(), c.dims.size());
    EXPECT_NEAR(static_cast<double>(x.nnz()), static_cast<double>(c.nnz), 0.1 * static_cast<double>(c.nnz));
    double squares = 0;
    std::vector<std::uint64_t> before;
    for (std::uint64_t k = 0; k < x.nnz(); ++k) {
      std::vector<std::uint64_t> at;
      for (int m = 0; m < x.order(); ++m) at.push_back(x.index(m, k));
      ASSERT_LT(before, at);
      ASSERT_GT(x.value(k), 0);
      ASSERT_NEAR(x.value(k) / value_at(p.truth, at), 1, 1e-14);
      squares += x.value(k) * x.value(k);
      before = at;
    }
    // Nothing is missing: the stored values have the norm of the model.
    EXPECT_NEAR(squares / squared_norm(p.truth), 1, 1e-12);
    for (std::size_t m = 0; m < c.dims.size(); ++m) EXPECT_EQ(before[m], c.dims[m] - 1);
  }
}

TEST(Planted, TruthIsNormalisedAndTellsComponentsApart) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(testing::PrintToString(c.dims));
    const CpModel truth = generate_planted(options_of(c), c.rank, 0, with(2)).truth;
    ASSERT_EQ(truth.rank(), c.rank);
    for (std::uint64_t r = 0; r + 1 < c.rank; ++r) EXPECT_GT(truth.weights[r], truth.weights[r + 1]);
    EXPECT_LE(truth.weights.front(), 2 * truth.weights.back());
    for (std::uint64_t r = 0; r < c.rank; ++r) {
      for (std::uint64_t s = 0; s <= r; ++s) {
        double congruence = 1;
        for (const Matrix& a : truth.factors) {
          double dot = 0;
          for (std::uint64_t i = 0; i < a.rows; ++i) dot += a(i, r) * a(i, s);
          if (r == s) {
            EXPECT_NEAR(dot, 1, 1e-14);
          }
          congruence *= dot;
        }
        if (r != s) {
          EXPECT_LT(congruence, 0.6);
        }
      }
    }
  }
}

TEST(Planted, SameForEveryNumberOfThreads) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(testing::PrintToString(c.dims));
    const Planted one = generate_planted(options_of(c), c.rank, 0.1, with(1));
    for (const int threads : {2, 3, 7}) {
      const Planted more = generate_planted(options_of(c), c.rank, 0.1, with(threads));
      EXPECT_TRUE(same_nonzeros(one.tensor, more.tensor)) << threads;
      EXPECT_EQ(one.truth.weights, more.truth.weights);
    }
  }
}

// The bytes are a promise: computed on x86-64 with g++ 12, noise included.
TEST(Planted, StaysTheSame) {
  const CooTensor x = generate_planted(options_of(cases()[0]), 4, 0.1, with(2)).tensor;
  std::uint64_t h = 0;
  for (std::uint64_t k = 0; k < x.nnz(); ++k) {
    for (int m = 0; m < x.order(); ++m) h = portable::mix(h ^ x.index(m, k));
    h = portable::mix(h ^ std::bit_cast<std::uint64_t>(x.value(k)));
  }
  EXPECT_EQ(h, 16631159133531007378U);
}

TEST(Planted, NoiseHasTheStatedSize) {
  const Case& c = cases()[1];
  const CooTensor clean = generate_planted(options_of(c), c.rank, 0, with(2)).tensor;
  const CooTensor noisy = generate_planted(options_of(c), c.rank, 0.1, with(2)).tensor;
  ASSERT_EQ(clean.nnz(), noisy.nnz());
  double squares = 0;
  double noise = 0;
  double sum = 0;
  for (std::uint64_t k = 0; k < clean.nnz(); ++k) {
    const double d = noisy.value(k) - clean.value(k);
    squares += clean.value(k) * clean.value(k);
    noise += d * d;
    sum += d;
  }
  const auto n = static_cast<double>(clean.nnz());
  EXPECT_NEAR(std::sqrt(noise / squares), 0.1, 0.1 * 6 / std::sqrt(2 * n));
  EXPECT_NEAR(sum / std::sqrt(n * noise), 0, 6 / std::sqrt(n));
}

TEST(Planted, SinglePrecision) {
  GenerateOptions o = options_of(cases()[0]);
  const CooTensor wide = generate_planted(o, 4, 0, with(2)).tensor;
  o.precision = Precision::f32;
  const CooTensor narrow = generate_planted(o, 4, 0, with(2)).tensor;
  ASSERT_EQ(narrow.precision(), Precision::f32);
  ASSERT_EQ(narrow.nnz(), wide.nnz());
  for (std::uint64_t k = 0; k < wide.nnz(); ++k) ASSERT_EQ(narrow.value(k), static_cast<float>(wide.value(k)));
}

TEST(Planted, MemoryStaysNearTheTensor) {
  for (const Case& c : {Case{{300, 300, 300}, 1000000, 4}, Case{{100, 100, 100}, 900000, 20}}) {
    const Context context = with(2);
    const Planted p = generate_planted(options_of(c), c.rank, 0, context);
    EXPECT_LE(context.memory->peak(), 3 * p.tensor.bytes());
  }
}

TEST(Planted, RefusesNonsense) {
  GenerateOptions o = options_of(cases()[1]);
  EXPECT_THROW((void)generate_planted(o, 0, 0), Error);
  EXPECT_THROW((void)generate_planted(o, o.nnz + 1, 0), Error);
  EXPECT_THROW((void)generate_planted(o, 3, -1), Error);
  o.skew = {1};
  EXPECT_THROW((void)generate_planted(o, 3, 0), Error);
}

TEST(SupportSizes, ProductAndProportion) {
  using Sizes = std::vector<std::uint64_t>;
  using synthetic::support_sizes;
  EXPECT_EQ(support_sizes(Sizes{100, 100, 100}, 1000), (Sizes{10, 10, 10}));
  EXPECT_EQ(support_sizes(Sizes{5, 2000, 30}, 1000), (Sizes{3, 111, 3}));
  EXPECT_EQ(support_sizes(Sizes{4, 4}, 16), (Sizes{4, 4}));
  EXPECT_EQ(support_sizes(Sizes{9, 9, 9}, 1), (Sizes{1, 1, 1}));
  EXPECT_EQ(support_sizes(Sizes{std::uint64_t{1} << 40U, 10, 10}, 9000), (Sizes{1000, 3, 3}));
}

TEST(SupportSizes, ActiveLengthsHoldTheModel) {
  using Sizes = std::vector<std::uint64_t>;
  using synthetic::active_lengths;
  EXPECT_EQ(active_lengths(Sizes{1000, 1000, 1000}, 8000, 1), (Sizes{80, 80, 80}));  // supports of 20
  EXPECT_EQ(active_lengths(Sizes{30, 1000, 1000}, 8000, 8), (Sizes{16, 72, 76}));    // 3 x 18 x 19, and 2 * rank
  EXPECT_EQ(active_lengths(Sizes{14, 12, 10, 9, 8}, 20000, 4), (Sizes{14, 12, 10, 9, 8}));
  const Sizes many = active_lengths(Sizes{5, 2000, 30}, 60000, 64);
  EXPECT_GE(many[0] * many[1] * many[2], 120000U);
}

// Ten blocks of a tenth each cover 1 - 0.9^10 of the cells.
TEST(SupportSizes, BlocksOverlap) {
  const std::vector<std::uint64_t> dims = {100, 100, 100};
  EXPECT_NEAR(synthetic::block_cells(dims, 651322, 10), 1e5, 0.5);
  EXPECT_EQ(synthetic::block_cells(dims, 50, 10), 5);
  EXPECT_EQ(synthetic::block_cells(dims, 1000000, 10), 1e6);
}

}  // namespace
}  // namespace polyad
