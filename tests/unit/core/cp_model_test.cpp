// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <polyad/polyad.hpp>
#include <random>
#include <stdexcept>

namespace polyad {
namespace {

constexpr double largest = std::numeric_limits<double>::max();
constexpr double smallest = std::numeric_limits<double>::denorm_min();

/// Factors of normal deviates; weights from 1 on.
CpModel normal_model(const std::vector<std::uint64_t>& dims, std::uint64_t rank, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  CpModel model;
  for (std::uint64_t r = 0; r < rank; ++r) model.weights.push_back(1.0 + static_cast<double>(r));
  for (const std::uint64_t d : dims) {
    Matrix& a = model.factors.emplace_back(d, rank);
    for (double& v : a.values) v = normal(random);
  }
  return model;
}

Matrix matrix(std::uint64_t rows, std::uint64_t cols, const std::vector<double>& values) {
  Matrix a(rows, cols);
  a.values.assign(values.begin(), values.end());
  return a;
}

double norm_of(const Matrix& a, std::uint64_t r) {
  long double sum = 0;
  for (std::uint64_t i = 0; i < a.rows; ++i) sum += static_cast<long double>(a(i, r)) * a(i, r);
  return static_cast<double>(std::sqrt(sum));
}

/// Every value of a small model.
std::vector<double> all_values(const CpModel& model) {
  std::vector<std::uint64_t> at(model.factors.size());
  std::vector<double> values;
  while (true) {
    values.push_back(value_at(model, at));
    std::size_t m = 0;
    while (m < at.size() && ++at[m] == model.factors[m].rows) at[m++] = 0;
    if (m == at.size()) return values;
  }
}

void expect_same_values(const CpModel& a, const CpModel& b) {
  const std::vector<double> x = all_values(a);
  const std::vector<double> y = all_values(b);
  ASSERT_EQ(x.size(), y.size());
  for (std::size_t k = 0; k < x.size(); ++k) ASSERT_NEAR(x[k], y[k], 1e-12) << k;
}

template <class F>
std::string message_of(const F& f, ErrorKind kind = ErrorKind::usage) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind);
    return e.what();
  }
  return "nothing was thrown";
}

TEST(CpModel, NormaliseKeepsTheValues) {
  CpModel model = normal_model({4, 3, 5}, 6, 1);  // the rank is above a dim
  model.weights[2] = -2.5;
  const CpModel before = model;
  normalise(model);
  for (const Matrix& a : model.factors)
    for (std::uint64_t r = 0; r < 6; ++r) EXPECT_NEAR(norm_of(a, r), 1, 1e-15);
  for (std::uint64_t r = 0; r < 6; ++r) {
    const double want = before.weights[r] * norm_of(before.factors[0], r) * norm_of(before.factors[1], r) *
                        norm_of(before.factors[2], r);
    EXPECT_NEAR(model.weights[r] / want, 1, 1e-14) << r;
  }
  expect_same_values(model, before);
}

TEST(CpModel, NormaliseLongColumns) {
  CpModel model = normal_model({300000}, 1, 2);
  normalise(model);
  EXPECT_NEAR(norm_of(model.factors[0], 0), 1, 2e-15);
}

TEST(CpModel, NormaliseNumbersOfAnySize) {
  // Per column: squares overflow, squares underflow, the largest, the smallest, both ends at once.
  const std::vector<double> row = {3e300, 3e-300, largest, smallest, 1e300};
  const std::vector<double> next = {-4e300, -4e-300, largest, smallest, 1e-300};
  std::vector<double> values = row;
  values.insert(values.end(), next.begin(), next.end());
  CpModel model;
  model.weights = {2, 2, 0.5, 2, 2};
  model.factors = {matrix(2, 5, values)};
  normalise(model);
  const Matrix& a = model.factors[0];
  EXPECT_DOUBLE_EQ(a(0, 0), 0.6);
  EXPECT_DOUBLE_EQ(a(1, 0), -0.8);
  EXPECT_DOUBLE_EQ(a(0, 1), 0.6);
  EXPECT_DOUBLE_EQ(a(1, 1), -0.8);
  EXPECT_DOUBLE_EQ(a(0, 2), std::sqrt(0.5));
  EXPECT_DOUBLE_EQ(a(1, 3), std::sqrt(0.5));
  EXPECT_EQ(a(0, 4), 1);
  EXPECT_EQ(a(1, 4), 0);  // 1e-600
  EXPECT_DOUBLE_EQ(model.weights[0], 1e301);
  EXPECT_DOUBLE_EQ(model.weights[1], 1e-299);
  EXPECT_DOUBLE_EQ(model.weights[2], std::sqrt(0.5) * largest);
  EXPECT_EQ(model.weights[3], 3 * smallest);  // 2 sqrt(2)
  EXPECT_DOUBLE_EQ(model.weights[4], 2e300);
}

TEST(CpModel, NormaliseProductsThatLeaveTheRangeAndComeBack) {
  CpModel model;
  model.weights = {1e-300, 1e300};
  for (const double size : {1e300, 1e250, 1e-200, 1e-250}) model.factors.push_back(matrix(1, 2, {size, 1 / size}));
  normalise(model);
  EXPECT_NEAR(model.weights[0] / 1e-200, 1, 1e-13);  // 1e-300 * 1e300 * 1e250 * 1e-200 * 1e-250
  EXPECT_NEAR(model.weights[1] / 1e200, 1, 1e-13);
  for (const Matrix& a : model.factors) EXPECT_EQ(a.values, (LargeVector<double>{1, 1}));
}

TEST(CpModel, NormaliseRefusesALengthThatNoDoubleHolds) {
  CpModel model;
  model.weights = {1, 1};
  model.factors = {matrix(1, 2, {2, 1e200}), matrix(1, 2, {2, 1e200})};
  const CpModel before = model;
  EXPECT_NE(message_of([&] { normalise(model); }, ErrorKind::limit).find("the length of component 2 is about 2^1329"),
            std::string::npos);
  EXPECT_EQ(model.weights, before.weights);
  EXPECT_EQ(model.factors[0].values, before.factors[0].values);
}

TEST(CpModel, ZeroColumns) {
  CpModel model;
  model.weights = {5, -5, 1};
  model.factors = {matrix(2, 3, {3, 0, -1, 4, 0, 0}), matrix(2, 3, {1, -2, 0, 0, 0, 2})};
  arrange(model);
  EXPECT_EQ(model.weights, (std::vector<double>{25, 2, 0}));
  EXPECT_FALSE(std::signbit(model.weights[2]));
  EXPECT_EQ(model.factors[0](0, 2), 0);
  EXPECT_EQ(model.factors[0](1, 2), 0);
  EXPECT_EQ(model.factors[1](0, 2), 1);  // the sign of a zero component is free
  EXPECT_EQ(model.factors[0](0, 1), 1);
  EXPECT_EQ(model.factors[1](1, 1), -1);  // -1 * 2 stays negative, in the last mode
}

TEST(CpModel, ArrangeSigns) {
  // All combinations of the signs of weight and three modes, and of both for one mode.
  for (unsigned signs = 0; signs < 16; ++signs) {
    const auto sign = [&](unsigned bit) { return (signs >> bit & 1U) != 0 ? -1.0 : 1.0; };
    CpModel model;
    model.weights = {sign(3) * 2};
    for (unsigned m = 0; m < 3; ++m) model.factors.push_back(matrix(3, 1, {sign(m) * 1, sign(m) * -2, sign(m) * 2}));
    const CpModel before = model;
    arrange(model);
    EXPECT_NEAR(model.weights[0], 54, 1e-13);
    const double left = -sign(0) * sign(1) * sign(2) * sign(3);  // the first of the two largest has the other sign
    for (std::size_t m = 0; m < 3; ++m)
      EXPECT_NEAR(model.factors[m](1, 0), (m == 2 ? left : 1) * 2 / 3, 1e-15) << signs;
    expect_same_values(model, before);
  }
  for (const double sign : {1.0, -1.0}) {
    CpModel model;
    model.weights = {-3};
    model.factors = {matrix(2, 1, {0, sign})};
    arrange(model);
    EXPECT_EQ(model.weights[0], 3);
    EXPECT_EQ(model.factors[0](1, 0), -sign);
  }
}

TEST(CpModel, ArrangeOrder) {
  CpModel model;
  model.weights = {1, 3, -3, 0, 7, 3};
  model.factors = {matrix(1, 6, {1, 1, 1, 1, 1, 1}), matrix(6, 6, std::vector<double>(36))};
  for (std::uint64_t r = 0; r < 6; ++r) model.factors[1](r, r) = 1;
  arrange(model);
  EXPECT_EQ(model.weights, (std::vector<double>{7, 3, 3, 3, 1, 0}));
  const std::vector<std::uint64_t> from = {4, 1, 2, 5, 0, 3};
  for (std::uint64_t k = 0; k < 6; ++k) EXPECT_EQ(std::abs(model.factors[1](from[k], k)), 1) << k;
  EXPECT_EQ(model.factors[1](2, 2), -1);  // the weight was negative
  const CpModel once = model;
  arrange(model);
  EXPECT_EQ(model.weights, once.weights);
  EXPECT_EQ(model.factors[1].values, once.factors[1].values);
}

TEST(CpModel, ScoreOfAShuffledModel) {
  const CpModel a = normal_model({7, 5, 6}, 4, 3);
  CpModel b = a;
  const std::vector<std::size_t> to = {2, 0, 3, 1};  // component r of a is to[r] of b
  for (std::size_t m = 0; m < 3; ++m)
    for (std::uint64_t i = 0; i < a.factors[m].rows; ++i)
      for (std::size_t r = 0; r < 4; ++r)
        b.factors[m](i, to[r]) = a.factors[m](i, r) * (m == 0 ? -4.0 : m == 1 ? 0.25 : 1.0);
  for (std::size_t r = 0; r < 4; ++r) b.weights[to[r]] = a.weights[r];
  const ModelScore s = score(a, b);
  EXPECT_NEAR(s.score, 1, 1e-14);
  ASSERT_EQ(s.matches.size(), 4U);
  for (std::size_t r = 0; r < 4; ++r) {
    const ComponentMatch& match = s.matches[r];
    EXPECT_EQ(match.a, r);
    EXPECT_EQ(match.b, to[r]);
    EXPECT_NEAR(match.congruence, -1, 1e-14);
    EXPECT_NEAR(match.score, 1, 1e-14);
    ASSERT_EQ(match.cosines.size(), 3U);
    EXPECT_NEAR(match.cosines[0], -1, 1e-14);
    EXPECT_NEAR(match.cosines[1], 1, 1e-14);
    for (const double cosine : match.cosines) EXPECT_LE(std::abs(cosine), 1);
  }
}

TEST(CpModel, ScoreByHand) {
  CpModel a;
  a.weights = {2};
  a.factors = {matrix(2, 1, {3, 4}), matrix(2, 1, {1, 0})};  // length 10
  CpModel b;
  b.weights = {-8};
  b.factors = {matrix(2, 1, {1, 0}), matrix(2, 1, {-1, 0})};  // length 8
  const ModelScore s = score(a, b);
  EXPECT_NEAR(s.matches[0].cosines[0], 0.6, 1e-15);
  EXPECT_EQ(s.matches[0].cosines[1], -1);
  EXPECT_NEAR(s.matches[0].congruence, -0.6, 1e-15);
  EXPECT_NEAR(s.score, 0.6 * 0.8, 1e-15);
  EXPECT_NEAR(score(b, a).score, s.score, 1e-15);
  a.weights = {0};
  EXPECT_EQ(score(a, b).score, 0);  // one length is 0
  b.weights = {0};
  EXPECT_NEAR(score(a, b).score, 0.6, 1e-15);  // both are: no difference
  b.factors[0].values = {0, 0};
  EXPECT_EQ(score(a, b).matches[0].congruence, 0);
  EXPECT_EQ(score(a, b).matches[0].cosines[0], 0);
}

TEST(CpModel, ScoreOfNumbersOfAnySize) {
  const CpModel a = normal_model({5, 4}, 2, 4);
  CpModel b = a;
  for (double& v : b.factors[0].values) v *= 1e300;
  for (double& v : b.factors[1].values) v *= 1e-300;
  EXPECT_NEAR(score(a, b).score, 1, 1e-13);
  for (double& v : b.factors[1].values) v *= 1e290;
  EXPECT_EQ(score(b, b).score, score(a, a).score);  // lengths of 1e590
  EXPECT_LT(score(a, b).score, 1e-289);
  EXPECT_NEAR(std::abs(score(a, b).matches[0].congruence), 1, 1e-13);
}

TEST(CpModel, ScoreWithOtherRank) {
  const CpModel a = normal_model({6, 5}, 2, 5);
  CpModel b = normal_model({6, 5}, 5, 6);
  for (std::size_t m = 0; m < 2; ++m)
    for (std::uint64_t i = 0; i < a.factors[m].rows; ++i) {
      b.factors[m](i, 3) = a.factors[m](i, 0);
      b.factors[m](i, 1) = a.factors[m](i, 1);
    }
  b.weights[3] = a.weights[0];
  b.weights[1] = a.weights[1];
  const ModelScore s = score(a, b);
  EXPECT_NEAR(s.score, 1, 1e-14);
  EXPECT_EQ(s.matches[0].b, 3U);
  EXPECT_EQ(s.matches[1].b, 1U);
  const ModelScore t = score(b, a);
  ASSERT_EQ(t.matches.size(), 2U);
  EXPECT_NEAR(t.score, 1, 1e-14);
  EXPECT_EQ(t.matches[0].a, 1U);
  EXPECT_EQ(t.matches[0].b, 1U);
  EXPECT_EQ(t.matches[1].a, 3U);
  EXPECT_EQ(t.matches[1].b, 0U);
}

/// The largest sum of |congruence| over all ways to pair the components.
double best_sum(const CpModel& a, const CpModel& b) {
  const bool swapped = a.rank() > b.rank();
  const CpModel& few = swapped ? b : a;
  const CpModel& many = swapped ? a : b;
  std::vector<std::size_t> order(many.rank());
  std::iota(order.begin(), order.end(), std::size_t{0});
  double best = 0;
  do {
    double sum = 0;
    for (std::size_t r = 0; r < few.rank(); ++r) {
      double product = 1;
      for (std::size_t m = 0; m < few.factors.size(); ++m) {
        double dot = 0;
        for (std::uint64_t i = 0; i < few.factors[m].rows; ++i)
          dot += few.factors[m](i, r) * many.factors[m](i, order[r]);
        product *= dot / norm_of(few.factors[m], r) / norm_of(many.factors[m], order[r]);
      }
      sum += std::abs(product);
    }
    best = std::max(best, sum);
  } while (std::ranges::next_permutation(order).found);
  return best;
}

TEST(CpModel, ScoreFindsTheBestOfAllPermutations) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    const std::uint64_t rank_a = 1 + seed % 6;
    const std::uint64_t rank_b = 1 + seed / 6 % 6;
    const CpModel a = normal_model({3, 2}, rank_a, 100 + seed);
    const CpModel b = normal_model({3, 2}, rank_b, 200 + seed);
    const ModelScore s = score(a, b);
    double sum = 0;
    std::vector<char> used_a(rank_a);
    std::vector<char> used_b(rank_b);
    for (const ComponentMatch& match : s.matches) {
      sum += std::abs(match.congruence);
      EXPECT_EQ(used_a[match.a]++, 0);
      EXPECT_EQ(used_b[match.b]++, 0);
    }
    EXPECT_EQ(s.matches.size(), std::min(rank_a, rank_b));
    EXPECT_TRUE(std::ranges::is_sorted(s.matches, {}, &ComponentMatch::a));
    EXPECT_NEAR(sum, best_sum(a, b), 1e-13) << seed;
  }
}

TEST(CpModel, ScoreWhereGreedyFails) {
  const auto columns = [](double first, double second) {  // unit vectors at these degrees
    const double degree = std::acos(-1.0) / 180;
    return matrix(
        2, 2,
        {std::cos(first * degree), std::cos(second * degree), std::sin(first * degree), std::sin(second * degree)});
  };
  CpModel a;
  a.weights = {1, 1};
  a.factors = {columns(0, 20)};
  CpModel b = a;
  b.factors = {columns(8, -15)};  // the best pair first: cos 8 + cos 35 = 1.809; best: cos 15 + cos 12 = 1.944
  const ModelScore s = score(a, b);
  EXPECT_EQ(s.matches[0].b, 1U);
  EXPECT_EQ(s.matches[1].b, 0U);
  EXPECT_NEAR(2 * s.score, 1.944, 1e-3);
}

TEST(CpModel, ScoreRefusesOtherShapes) {
  const CpModel a = normal_model({3, 4, 5}, 2, 7);
  EXPECT_NE(message_of([&] {
              (void)score(a, normal_model({3, 5, 5}, 2, 7));
            }).find("are 3 x 4 x 5 and 3 x 5 x 5"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              (void)score(a, normal_model({3, 4}, 2, 7));
            }).find("are 3 x 4 x 5 and 3 x 4,"),
            std::string::npos);
  CpModel broken = a;
  broken.weights.pop_back();
  EXPECT_NE(message_of([&] { (void)score(a, broken); }).find("has 2 columns and the model 1 weights"),
            std::string::npos);
  EXPECT_THROW(normalise(broken), Error);
}

TEST(CpModel, ValueAt) {
  CpModel model;
  model.weights = {2, -1};
  model.factors = {matrix(2, 2, {1, 2, 3, 4}), matrix(1, 2, {5, 6})};
  EXPECT_EQ(value_at(model, std::vector<std::uint64_t>{0, 0}), 2 * 1 * 5 - 2 * 6);
  EXPECT_EQ(value_at(model, std::vector<std::uint64_t>{1, 0}), 2 * 3 * 5 - 4 * 6);
  EXPECT_NE(message_of([&] {
              (void)value_at(model, std::vector<std::uint64_t>{1, 1});
            }).find("index 1 in mode 2"),
            std::string::npos);
  EXPECT_NE(message_of([&] { (void)value_at(model, std::vector<std::uint64_t>{1}); }).find("found 1 indices"),
            std::string::npos);
}

TEST(CpModel, Reconstruct) {
  const std::vector<std::uint64_t> dims = {40, 30, 20};
  const CpModel model = normal_model(dims, 3, 8);
  for (const Precision precision : {Precision::f64, Precision::f32})
    for (const IndexWidth width : {IndexWidth::u32, IndexWidth::u64}) {
      Context context;
      context.threads = 4;
      CooTensor at = make_coo(dims, 10000, precision, width, context);
      std::mt19937_64 random(9);
      for (std::size_t m = 0; m < 3; ++m)
        std::visit(
            [&](auto& b) {
              for (auto& i : b) i = static_cast<std::uint32_t>(random() % dims[m]);
            },
            at.indices[m]);
      at.sorted_by = {2, 0, 1};
      at.duplicates_merged = true;
      at.labels = {ModeLabels("a"), ModeLabels("b"), ModeLabels("c")};
      const CooTensor x = reconstruct(model, at, context);
      EXPECT_EQ(x.dims, at.dims);
      EXPECT_EQ(x.precision(), precision);
      EXPECT_EQ(x.index_width(), width);
      EXPECT_EQ(x.sorted_by, at.sorted_by);
      EXPECT_TRUE(x.duplicates_merged);
      EXPECT_EQ(x.labels, at.labels);
      for (std::uint64_t k = 0; k < 10000; ++k) {
        std::vector<std::uint64_t> place;
        for (int m = 0; m < 3; ++m) {
          ASSERT_EQ(x.index(m, k), at.index(m, k));
          place.push_back(x.index(m, k));
        }
        const double want = value_at(model, place);
        ASSERT_EQ(x.value(k), precision == Precision::f32 ? static_cast<float>(want) : want);
      }
    }
}

TEST(CpModel, ReconstructRefuses) {
  CpModel model = normal_model({3, 4}, 2, 10);
  const Context context;
  EXPECT_NE(message_of([&] {
              (void)reconstruct(model, make_coo({3, 5}, 1, Precision::f64, context));
            }).find("the model is 3 x 4 and the tensor 3 x 5"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              (void)reconstruct(model, make_coo({3}, 1, Precision::f64, context));
            }).find("the model is 3 x 4 and the tensor 3,"),
            std::string::npos);
  EXPECT_EQ(reconstruct(model, make_coo({3, 4}, 0, Precision::f64, context)).nnz(), 0U);
  model.factors[0].values.assign(6, 1e30);
  model.factors[1].values.assign(8, 1e30);
  const CooTensor one = make_coo({3, 4}, 1, Precision::f32, context);
  EXPECT_NE(message_of([&] { (void)reconstruct(model, one); }, ErrorKind::limit).find("which f32 cannot hold"),
            std::string::npos);
}

TEST(CpModel, TopEntries) {
  CpModel model;
  model.weights = {1, 1};
  model.factors = {matrix(5, 2, {1, 9, -3, 9, 3, 9, 0, 9, 2, 9})};
  const auto indices = [&](std::uint64_t count) {
    std::vector<std::uint64_t> all;
    for (const TopEntry& e : top_entries(model, 0, 0, count)) all.push_back(e.index);
    return all;
  };
  EXPECT_EQ(indices(0), (std::vector<std::uint64_t>{}));
  EXPECT_EQ(indices(3), (std::vector<std::uint64_t>{1, 2, 4}));  // -3 before 3: the lower index
  EXPECT_EQ(indices(5), (std::vector<std::uint64_t>{1, 2, 4, 0, 3}));
  EXPECT_EQ(indices(std::numeric_limits<std::uint64_t>::max()), indices(5));
  EXPECT_EQ(top_entries(model, 0, 0, 1)[0].value, -3);
  EXPECT_EQ(top_entries(model, 1, 0, 2)[1].index, 1U);
  EXPECT_NE(message_of([&] { (void)top_entries(model, 2, 0, 1); }).find("component 3 of a model of rank 2"),
            std::string::npos);
  EXPECT_NE(message_of([&] { (void)top_entries(model, 0, 1, 1); }).find("mode 2 of a model of order 1"),
            std::string::npos);
  EXPECT_THROW((void)top_entries(model, 0, -1, 1), Error);
}

TEST(CpModel, TopEntriesOfAllComponents) {
  Context context;
  context.threads = 3;
  CpModel model = random_model(std::array<std::uint64_t, 1>{70'000}, 3);
  Matrix& a = model.factors[0];
  for (std::uint64_t i = 0; i < a.rows; ++i) {
    a(i, 0) = std::round(a(i, 0) * 20 - 10);  // many ties, both signs, zeros
    a(i, 2) = 0;
  }
  for (const std::uint64_t count : {0, 1, 7, 500, 99'999}) {
    const std::vector<std::vector<TopEntry>> found = top_entries_of_mode(model, 0, count, context);
    ASSERT_EQ(found.size(), 3U);
    for (std::uint64_t r = 0; r < 3; ++r) {
      std::vector<TopEntry> want;
      for (std::uint64_t i = 0; i < a.rows; ++i) want.push_back({i, a(i, r)});
      std::ranges::stable_sort(want, std::ranges::greater{}, [](const TopEntry& e) { return std::abs(e.value); });
      want.resize(std::min(count, a.rows));
      ASSERT_EQ(found[r].size(), want.size());
      for (std::size_t k = 0; k < want.size(); ++k) {
        ASSERT_EQ(found[r][k].index, want[k].index);
        ASSERT_EQ(found[r][k].value, want[k].value);
      }
    }
  }
  EXPECT_TRUE(top_entries_of_mode(random_model(std::array<std::uint64_t, 1>{0}, 2), 0, 5)[1].empty());
  EXPECT_THROW((void)top_entries_of_mode(model, 1, 1, context), Error);
}

TEST(CpModel, Names) {
  CpModel model = normal_model({2, 3}, 1, 11);
  EXPECT_EQ(label_of(model, 1, 2), "3");
  EXPECT_EQ(mode_name(model, 1), "mode 2");
  model.labels = {ModeLabels("book"), ModeLabels()};
  model.labels[0].push_back("Genesis");
  model.labels[0].push_back("");
  EXPECT_EQ(label_of(model, 0, 0), "Genesis");
  EXPECT_EQ(label_of(model, 0, 1), "2");
  EXPECT_EQ(label_of(model, 1, 0), "1");
  EXPECT_EQ(mode_name(model, 0), "book");
  EXPECT_EQ(mode_name(model, 1), "mode 2");
  EXPECT_THROW((void)label_of(model, 0, 2), Error);
}

TEST(Align, RowsFollowTheirLabels) {
  CpModel model;
  model.weights = {1};
  model.factors = {Matrix(3, 1), Matrix(2, 1)};
  model.factors[0].values = {1, 2, 3};
  model.factors[1].values = {4, 5};
  model.labels.resize(2);
  for (const char* l : {"a", "b", "c"}) model.labels[0].push_back(l);
  std::vector<ModeLabels> wanted(2);
  for (const char* l : {"c", "new", "a", "b"}) wanted[0].push_back(l);
  for (const char* l : {"x", "y"}) wanted[1].push_back(l);
  EXPECT_EQ(align(model, 0, wanted[0]), 1U);
  EXPECT_EQ(align(model, 1, wanted[1]), 0U);
  EXPECT_EQ(model.factors[0].values, (LargeVector<double>{3, 0, 1, 2}));
  EXPECT_EQ(model.labels[0][3], "b");
  EXPECT_EQ(model.factors[1].values, (LargeVector<double>{4, 5})) << "without labels of its own it stays";
}

TEST(Arrange, SignsAreThoseOfTheColumnsItGives) {
  // The entries differ in the last digit, and no longer when the column has length 1: then the first counts.
  CpModel model;
  model.weights = {1};
  model.factors = {matrix(2, 1, {-1.881887309488307, 1.8818873094883073}), matrix(1, 1, {1})};
  arrange(model);
  EXPECT_GT(model.factors[0](0, 0), 0);
  CpModel again = model;
  arrange(again);
  EXPECT_EQ(again.factors[0].values, model.factors[0].values);
}

TEST(Matrix, RefusesMoreEntriesThanThereCanBe) {
  EXPECT_THROW(Matrix(std::uint64_t{1} << 61U, 8), std::length_error);
  EXPECT_THROW((void)Matrix::unset(std::uint64_t{1} << 61U, 8), std::length_error);
  EXPECT_EQ(Matrix(std::uint64_t{1} << 61U, 0).values.size(), 0U);
}

TEST(Arrange, TheSameForAnyNumberOfThreads) {
  // More rows than are summed at once, and the largest entries of columns in several blocks of them.
  CpModel model = random_model(std::vector<std::uint64_t>{1'200'000, 3, 70'000}, 3);
  for (std::uint64_t r = 0; r < 3; ++r) model.factors[0](1'100'000 + r, r) = r == 1 ? 7 : -7;
  model.factors[0](5, 2) = 7;  // the first of equal ones
  CpModel one = model;
  CpModel many = model;
  Context context;
  context.threads = 1;
  arrange(one, context);
  context.threads = 5;
  arrange(many, context);
  EXPECT_EQ(one.weights, many.weights);
  for (std::size_t m = 0; m < 3; ++m) EXPECT_EQ(one.factors[m].values, many.factors[m].values);
  for (std::uint64_t k = 0; k < 3; ++k) {
    EXPECT_NEAR(norm_of(one.factors[0], k), 1, 1e-12);
    EXPECT_GT(one.factors[0](1'100'000, k) + one.factors[0](1'100'001, k), 0) << "the largest entry is positive";
  }
}

}  // namespace
}  // namespace polyad
