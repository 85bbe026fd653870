// SPDX-License-Identifier: MIT
#include "polyad/statistics.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>

#include "core/group_sizes.hpp"
#include "oracle/coo_oracle.hpp"
#include "polyad/operations.hpp"

namespace polyad {
namespace {

constexpr std::uint64_t u64_max = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t u32_max = std::numeric_limits<std::uint32_t>::max();

Context with_threads(int threads) {
  Context context;
  context.threads = threads;
  return context;
}

std::vector<oracle::Shape> shapes() {
  return {
      {{7}, 1, 0, 0},
      {{50}, 3000, 0, 0},
      {{u64_max}, 9000, 0, 9},
      {{40, 30}, 5000, 0, 0},
      {{300, 20000}, 20000, 50, 0},
      {{1, 1, 1}, 9000, 0, 0},
      {{120, 91, 288}, 20000, 0, 0},
      {{1209, 9180, 28810}, 100000, 90, 0},
      {{5000, 5000, 1}, 70000, 100, 0},
      {{u32_max, u32_max, u32_max}, 20000, 0, 2},
      {{u64_max, 1000, u64_max, u64_max}, 20000, 80, 3},
      {{u64_max, u64_max, u64_max, u64_max, u64_max}, 30000, 60, 1},
      {std::vector<std::uint64_t>(8, 300), 4000, 0, 2},
      {std::vector<std::uint64_t>(32, 1000), 800, 0, 0},
  };
}

void expect_groups(const GroupStatistics& s, const std::map<oracle::Coordinate, std::uint64_t>& sizes) {
  EXPECT_EQ(s.count, sizes.size());
  const oracle::Spread spread = oracle::spread(sizes);
  EXPECT_EQ(s.max, spread.max);
  EXPECT_NEAR(s.mean, spread.mean, 1e-12 * spread.mean);
  EXPECT_NEAR(s.stdev, spread.stdev, 1e-10 * spread.mean);
  std::array<std::uint64_t, 64> histogram = {};
  for (const auto& [key, size] : sizes) {
    std::size_t b = 0;
    while (size >> (b + 1) != 0) ++b;
    ++histogram[b];
  }
  EXPECT_EQ(s.histogram, histogram);
}

std::vector<int> all_but(int order, int mode) {
  std::vector<int> modes;
  for (int m = 0; m < order; ++m)
    if (m != mode) modes.push_back(m);
  return modes;
}

bool same(const GroupStatistics& a, const GroupStatistics& b) {
  return a.count == b.count && a.max == b.max && a.histogram == b.histogram &&
         std::bit_cast<std::uint64_t>(a.mean) == std::bit_cast<std::uint64_t>(b.mean) &&
         std::bit_cast<std::uint64_t>(a.stdev) == std::bit_cast<std::uint64_t>(b.stdev);
}

bool same(const TensorStatistics& a, const TensorStatistics& b) {
  const auto bits = [](double v) { return std::bit_cast<std::uint64_t>(v); };
  bool equal = bits(a.density) == bits(b.density) && bits(a.norm) == bits(b.norm) && bits(a.sum) == bits(b.sum) &&
               bits(a.min) == bits(b.min) && bits(a.max) == bits(b.max) && a.zeros == b.zeros &&
               a.duplicates == b.duplicates && a.modes.size() == b.modes.size();
  for (std::size_t m = 0; equal && m < a.modes.size(); ++m)
    equal = same(a.modes[m].slices, b.modes[m].slices) && same(a.modes[m].fibres, b.modes[m].fibres);
  return equal;
}

TEST(Statistics, AgreeWithTheirDefinitions) {
  std::uint64_t seed = 0;
  for (const oracle::Shape& shape : shapes()) {
    const std::vector<oracle::Nonzero> all = oracle::random_nonzeros(shape, ++seed);
    CooTensor x = oracle::tensor(shape.dims, all, seed % 2 == 0 ? Precision::f32 : Precision::f64);
    const TensorStatistics s = statistics(x, with_threads(2));
    double sum = 0;
    double squares = 0;
    double least = all[0].value;
    double most = all[0].value;
    std::uint64_t zeros = 0;
    for (const oracle::Nonzero& z : all) {
      sum += z.value;
      squares += z.value * z.value;
      least = std::min(least, z.value);
      most = std::max(most, z.value);
      zeros += z.value == 0 ? 1 : 0;
    }
    EXPECT_EQ(s.sum, sum);
    EXPECT_EQ(s.norm, std::sqrt(squares));
    EXPECT_EQ(s.min, least);
    EXPECT_EQ(s.max, most);
    EXPECT_EQ(s.zeros, zeros);
    EXPECT_EQ(s.duplicates, all.size() - oracle::groups(all, all_but(x.order(), -1)).size());
    ASSERT_EQ(s.modes.size(), shape.dims.size());
    for (int m = 0; m < x.order(); ++m) {
      SCOPED_TRACE(testing::Message() << "shape " << seed << ", mode " << m);
      const ModeStatistics& mode = s.modes[static_cast<std::size_t>(m)];
      EXPECT_EQ(mode.dim, shape.dims[static_cast<std::size_t>(m)]);
      expect_groups(mode.slices, oracle::groups(all, {m}));
      expect_groups(mode.fibres, oracle::groups(all, all_but(x.order(), m)));
    }
    // Neither threads nor the order of the nonzeros nor what is known of it matter (whole values: sums are exact).
    for (const int threads : {1, 3, 7, 16}) EXPECT_TRUE(same(s, statistics(x, with_threads(threads)))) << seed;
    ensure_sorted(x);
    EXPECT_TRUE(same(s, statistics(x, with_threads(2)))) << seed;
    x.sorted_by.clear();
    EXPECT_TRUE(same(s, statistics(x, with_threads(3)))) << seed;
    std::vector<int> backwards = all_but(x.order(), -1);
    std::reverse(backwards.begin(), backwards.end());
    sort_nonzeros(x, backwards);
    EXPECT_TRUE(same(s, statistics(x, with_threads(2)))) << seed;
  }
}

TEST(Statistics, EveryWayToCountGroupsGivesTheSame) {
  std::uint64_t seed = 50;
  for (const oracle::Shape& shape : shapes()) {
    if (shape.dims.size() == 32) continue;
    const CooTensor x = oracle::tensor(shape.dims, oracle::random_nonzeros(shape, ++seed), Precision::f32);
    const Context context = with_threads(3);
    const GroupCounter automatic(x, context);
    for (int m = -1; m < std::min(x.order(), 2); ++m) {
      const std::vector<int> modes = all_but(x.order(), m);
      const GroupStatistics expected = automatic.count(modes).statistics();
      const auto check = [&](GroupCounter::Path path, std::uint64_t mask) {
        EXPECT_TRUE(same(GroupCounter(x, context, path, mask).count(modes).statistics(), expected)) << seed << " " << m;
      };
      check(GroupCounter::Path::sort, u64_max);
      check(GroupCounter::Path::hash, u64_max);
      check(GroupCounter::Path::hash, 0xff);  // every hash collides
      check(GroupCounter::Path::hash, 0);
    }
  }
}

TEST(Statistics, OfAnEmptyTensorAreZero) {
  const TensorStatistics s = statistics(make_coo({3, 4, 5}, 0, Precision::f64, Context{}));
  TensorStatistics zero;
  zero.modes.resize(3);
  EXPECT_TRUE(same(s, zero));
  EXPECT_EQ(s.modes[1].dim, 4U);
}

TEST(Statistics, NormNeitherOverflowsNorUnderflows) {
  const double denormal = std::numeric_limits<double>::denorm_min();
  for (const double scale : {1.0, 1e150, 1e-150, 1e300, 1e-300, 0x1p1000, 0x1p-1060, denormal}) {
    const CooTensor x = oracle::tensor({9, 9}, {{{0, 0}, 3 * scale}, {{1, 1}, -4 * scale}}, Precision::f64);
    EXPECT_DOUBLE_EQ(statistics(x).norm, 5 * scale) << scale;
  }
  const CooTensor mixed = oracle::tensor({9, 9}, {{{0, 0}, 3e150}, {{1, 1}, 1e-150}, {{2, 2}, -4e150}}, Precision::f64);
  EXPECT_DOUBLE_EQ(statistics(mixed).norm, 5e150);
  const CooTensor zeros = oracle::tensor({9, 9}, {{{0, 0}, 0}, {{1, 1}, -0.0}}, Precision::f64);
  EXPECT_EQ(statistics(zeros).norm, 0);
  EXPECT_EQ(statistics(zeros).zeros, 2U);
}

TEST(Statistics, SumsAreAccurateAndHaveTheSameBitsForAnyNumberOfThreads) {
  std::vector<oracle::Nonzero> all;
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> uniform(-1, 1);
  // Pairs that cancel, and 1 at the end: plain addition loses it.
  for (int k = 0; k < 100000; ++k) all.push_back({{static_cast<std::uint64_t>(k)}, 1e12 * uniform(random)});
  for (int k = 0; k < 100000; ++k)
    all.push_back({{static_cast<std::uint64_t>(k)}, -all[static_cast<std::size_t>(k)].value});
  all.push_back({{0}, 1});
  std::shuffle(all.begin(), all.end(), random);
  const CooTensor x = oracle::tensor({100000}, all, Precision::f64);
  const TensorStatistics s = statistics(x, with_threads(1));
  EXPECT_NEAR(s.sum, 1, 1e-9);
  for (const int threads : {2, 3, 7, 16}) EXPECT_TRUE(same(s, statistics(x, with_threads(threads))));
}

TEST(Statistics, DensityOfHugeShapes) {
  EXPECT_DOUBLE_EQ(statistics(oracle::tensor({4, 8}, {{{0, 0}, 1}, {{1, 1}, 1}}, Precision::f64)).density, 2.0 / 32);
  const std::vector<std::uint64_t> dims(5, u64_max);
  const CooTensor x = oracle::tensor(dims, {{oracle::Coordinate(5, 7), 1}}, Precision::f64);
  EXPECT_DOUBLE_EQ(statistics(x).density, 0x1p-320);
  const CooTensor y =
      oracle::tensor(std::vector<std::uint64_t>(32, u64_max), {{oracle::Coordinate(32, 7), 1}}, Precision::f64);
  EXPECT_EQ(statistics(y).density, 0);  // 2^-2048
}

TEST(Statistics, StdevOfEqualSizesIsZeroAndOfHugeSizesExact) {
  GroupTally t;
  for (int k = 0; k < 1000; ++k) t.add(3);
  EXPECT_EQ(t.statistics().stdev, 0);
  GroupTally huge;  // a tensor no machine here can hold
  huge.add(std::uint64_t{1} << 40U);
  huge.add((std::uint64_t{1} << 40U) + 2);
  EXPECT_EQ(huge.statistics().stdev, 1);
  EXPECT_EQ(huge.statistics().histogram[40], 2U);
}

TEST(Statistics, AllocateByNonzerosOnly) {
  const CooTensor x = oracle::tensor({u64_max, u64_max}, {{{5, u64_max - 1}, 1}, {{7, 7}, 2}}, Precision::f64);
  const Context context = with_threads(2);
  EXPECT_EQ(statistics(x, context).modes[0].slices.count, 2U);
  EXPECT_LE(context.memory->peak(), 100000U);
}

}  // namespace
}  // namespace polyad
