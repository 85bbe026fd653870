// SPDX-License-Identifier: MIT
#include "polyad/generate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <set>

#include "generate/cells.hpp"
#include "generate/clusters.hpp"
#include "generate/random.hpp"
#include "polyad/error.hpp"
#include "polyad/operations.hpp"

namespace polyad {
namespace {

GenerateOptions options_of(std::vector<std::uint64_t> dims, std::uint64_t nnz, std::vector<double> skew = {},
                           double burst = 1, std::vector<double> widths = {}) {
  GenerateOptions o;
  o.dims = std::move(dims);
  o.nnz = nnz;
  o.skew = std::move(skew);
  o.burst = burst;
  o.widths = std::move(widths);
  return o;
}

Context with(int threads, std::uint64_t seed = 1) {
  Context context;
  context.threads = threads;
  context.seed = seed;
  return context;
}

std::vector<std::uint64_t> coordinate(const CooTensor& x, std::uint64_t k) {
  std::vector<std::uint64_t> c;
  for (int m = 0; m < x.order(); ++m) c.push_back(x.index(m, k));
  return c;
}

/// Everything that generate() promises about any result.
void expect_promises(const CooTensor& x, const GenerateOptions& o) {
  ASSERT_EQ(x.nnz(), o.nnz);
  EXPECT_EQ(x.dims, o.dims);
  EXPECT_EQ(x.precision(), o.precision);
  EXPECT_TRUE(x.duplicates_merged);
  for (int m = 0; m < x.order(); ++m) EXPECT_EQ(x.sorted_by[static_cast<std::size_t>(m)], m);
  for (std::uint64_t k = 0; k < x.nnz(); ++k) {
    if (k > 0) {
      ASSERT_LT(coordinate(x, k - 1), coordinate(x, k)) << k;  // sorted, each once
    }
    for (int m = 0; m < x.order(); ++m) ASSERT_LT(x.index(m, k), o.dims[static_cast<std::size_t>(m)]);
    const double v = x.value(k);
    ASSERT_GT(v, 0.08);
    ASSERT_LT(v, 11.4);
    const double rounded = std::round(v * 1e4) / 1e4;
    ASSERT_EQ(v, o.precision == Precision::f32 ? static_cast<double>(static_cast<float>(rounded)) : rounded);
  }
  if (o.nnz > 0) {
    for (int m = 0; m < x.order(); ++m)
      EXPECT_EQ(x.index(m, o.nnz - 1), o.dims[static_cast<std::size_t>(m)] - 1);  // the last corner
  }
}

std::uint64_t hash_of(const CooTensor& x) {
  std::uint64_t h = 0;
  for (std::uint64_t k = 0; k < x.nnz(); ++k) {
    for (int m = 0; m < x.order(); ++m) h = portable::mix(h ^ x.index(m, k));
    h = portable::mix(h ^ std::bit_cast<std::uint64_t>(x.value(k)));
  }
  return h;
}

const std::vector<GenerateOptions>& cases() {
  static const std::vector<GenerateOptions> all = {
      options_of({100, 200, 300}, 50000),         // uniform
      options_of({100, 200, 300}, 50000, {1.1}),  // one skew for all
      options_of({183, 24, 1140, 1717}, 40000, {0.1, 0.4, 0.6, 0.6}, 6, {1, 3, 3, 3}),
      options_of({1000, 900, 2000}, 60000, {0.6, 0.5, 0.7}, 60, {3, 3, 30}),
      options_of({7}, 5),                                    // order 1, dense
      options_of({1, 1, 1}, 1),                              // one cell
      options_of({10, 1, 10}, 100),                          // full
      options_of({10, 10, 10}, 900, {1.5}, 20, {3}),         // mostly full
      options_of({20, 20, 20}, 3999, {3}),                   // strong skew: gets stuck, is filled up
      options_of({50, 50, 50}, 30000, {2, 0, 4}, 500, {2}),  // clusters far larger than their cells
      options_of({3, 4, 5}, 0),                              // empty
      options_of({2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2}, 20000, {0.5}, 3, {2}),
      options_of({std::uint64_t{1} << 40U, 3, std::uint64_t{1} << 40U}, 20000, {1, 0, 0.5}, 4, {2, 1, 5}),
      options_of({std::uint64_t{1} << 40U, std::uint64_t{1} << 40U, 5}, 20000),
      options_of({4294967295U, 4294967295U}, 1000),
  };
  return all;
}

TEST(Generate, KeepsItsPromises) {
  for (const GenerateOptions& o : cases()) {
    SCOPED_TRACE(testing::PrintToString(o.dims));
    expect_promises(generate(o, with(2)), o);
  }
}

TEST(Generate, SameForEveryNumberOfThreads) {
#ifdef POLYAD_SANITIZED
  constexpr std::array thread_counts = {7};
#else
  constexpr std::array thread_counts = {2, 3, 7};
#endif
  for (const GenerateOptions& o : cases()) {
    SCOPED_TRACE(testing::PrintToString(o.dims));
    const CooTensor one = generate(o, with(1));
    for (const int threads : thread_counts) EXPECT_TRUE(same_nonzeros(one, generate(o, with(threads)))) << threads;
  }
}

TEST(Generate, SeedMatters) {
  const GenerateOptions& o = cases()[1];
  const CooTensor a = generate(o, with(1, 1));
  EXPECT_TRUE(same_nonzeros(a, generate(o, with(1, 1))));
  EXPECT_FALSE(same_nonzeros(a, generate(o, with(1, 2))));
}

// The bytes are a promise: the numbers were computed on x86-64 with g++ 12.
TEST(Generate, StaysTheSame) {
  EXPECT_EQ(hash_of(generate(cases()[0], with(2))), 17929241551905416216U);
  EXPECT_EQ(hash_of(generate(cases()[1], with(2))), 10693415628792961757U);
  EXPECT_EQ(hash_of(generate(cases()[3], with(2))), 4299850993864945001U);
}

TEST(Generate, SinglePrecision) {
  GenerateOptions o = cases()[2];
  const CooTensor wide = generate(o, with(2));
  o.precision = Precision::f32;
  const CooTensor narrow = generate(o, with(2));
  expect_promises(narrow, o);
  for (std::uint64_t k = 0; k < narrow.nnz(); ++k) ASSERT_EQ(narrow.value(k), static_cast<float>(wide.value(k)));
}

TEST(Generate, ValuesLookLogNormal) {
  const CooTensor x = generate(cases()[0], with(2));
  double sum = 0;
  double squares = 0;
  const auto n = static_cast<double>(x.nnz());
  for (std::uint64_t k = 0; k < x.nnz(); ++k) {
    sum += std::log(x.value(k));
    squares += std::log(x.value(k)) * std::log(x.value(k));
  }
  EXPECT_NEAR(sum / n, 0, 0.02);  // 6 * 0.7 / sqrt(50000)
  EXPECT_NEAR(squares / n, 0.49, 0.02);
}

TEST(Generate, SkewMakesSomeSlicesHeavy) {
  const auto heaviest = [](const CooTensor& x, int mode) {
    std::map<std::uint64_t, std::uint64_t> counts;
    for (std::uint64_t k = 0; k < x.nnz(); ++k) ++counts[x.index(mode, k)];
    std::uint64_t most = 0;
    for (const auto& [index, count] : counts) most = std::max(most, count);
    return most;
  };
  const CooTensor x = generate(options_of({1000, 1000, 1000}, 50000, {0, 0.8, 1.2}), with(2));
  EXPECT_LT(heaviest(x, 0), 100U);  // mean 50
  EXPECT_GT(heaviest(x, 1), 500U);
  EXPECT_GT(heaviest(x, 2), 5000U);
}

TEST(Generate, ClustersMakeLongFibres) {
  const auto fibres = [](const CooTensor& x) {  // along the last mode; x is sorted
    std::uint64_t n = 1;
    for (std::uint64_t k = 1; k < x.nnz(); ++k)
      n += x.index(0, k) != x.index(0, k - 1) || x.index(1, k) != x.index(1, k - 1) ? 1U : 0U;
    return n;
  };
  EXPECT_GT(fibres(generate(options_of({3000, 3000, 3000}, 30000), with(2))), 29000U);
  EXPECT_LT(fibres(generate(options_of({3000, 3000, 3000}, 30000, {}, 30, {1, 1, 40}), with(2))), 4000U);
}

TEST(Generate, RefusesNonsense) {
  const auto message = [](const GenerateOptions& o) -> std::string {
    try {
      (void)generate(o);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::usage);
      return e.what();
    }
    return "no error";
  };
  EXPECT_NE(message(options_of({2, 3, 4}, 25)).find("dims 2x3x4 hold at most 24 nonzeros, fewer than the 25"),
            std::string::npos);
  EXPECT_NE(message(options_of({}, 1)).find("0 dims"), std::string::npos);
  EXPECT_NE(message(options_of({2, 0}, 0)).find("mode 2 has length 0"), std::string::npos);
  EXPECT_NE(message(options_of({9, 9, 9}, 5, {1, 2})).find("2 values of skew for 3 modes"), std::string::npos);
  EXPECT_NE(message(options_of({9, 9, 9}, 5, {-1})).find("skew is -1"), std::string::npos);
  EXPECT_NE(message(options_of({9, 9, 9}, 5, {}, 0.5)).find("burst is 0.5"), std::string::npos);
  EXPECT_NE(message(options_of({9, 9, 9}, 5, {}, 2, {0})).find("widths is 0"), std::string::npos);
}

TEST(Generate, HonoursTheMemoryLimit) {
  const GenerateOptions o = options_of({1000, 1000, 1000}, 1000000, {0.5}, 4, {1, 2, 3});
  Context context = with(2);
  const CooTensor x = generate(o, context);
  EXPECT_LE(context.memory->peak(), 3 * x.bytes());
  context.memory = std::make_shared<MemoryBudget>(x.bytes() / 2);
  EXPECT_THROW((void)generate(o, context), Error);
  EXPECT_EQ(context.memory->used(), 0U);
}

TEST(Generate, ReportsAndStops) {
  Context context = with(2);
  std::set<std::string> phases;
  context.observer = [&](const Progress& p) { phases.emplace(p.phase); };
  (void)generate(cases()[3], context);
  EXPECT_TRUE(phases.contains("generating"));
  context.cancelled = [] { return true; };
  EXPECT_THROW((void)generate(cases()[3], context), Error);
}

TEST(Presets, HaveTheShapesOfTheField) {
  std::map<std::string_view, std::pair<std::vector<std::uint64_t>, std::uint64_t>> want = {
      {"uber", {{183, 24, 1140, 1717}, 3309490}},         {"nell2", {{12092, 9184, 28818}, 76879419}},
      {"deli", {{532924, 17262471, 2480308}, 140126181}}, {"vast", {{165427, 11374, 2, 100, 89}, 26021945}},
      {"enron", {{6066, 5699, 244268, 1176}, 54202099}},  {"darpa", {{22476, 22476, 23776223}, 28436042}},
      {"random", {{30000, 40000, 50000}, 10000000}}};
  ASSERT_EQ(presets().size(), want.size());
  for (const Preset& p : presets()) {
    SCOPED_TRACE(p.name);
    EXPECT_EQ(p.options.dims, want[p.name].first);
    EXPECT_EQ(p.nnz, want[p.name].second);
    GenerateOptions o = p.options;
    o.nnz = 20000;
    expect_promises(generate(o, with(2)), o);
  }
}

TEST(Cells, ThinAndUnite) {
  const std::vector<std::uint64_t> dims = {10, 20, 30};
  const Context context = with(3);
  CooTensor a = synthetic::draw_cells(dims, 0, 2000, context);
  CooTensor b = synthetic::draw_cells(dims, 1500, 1000, context);
  synthetic::make_set(a, context);
  synthetic::make_set(b, context);
  EXPECT_EQ(a.nnz(), 2000U);  // no cell twice
  std::set<std::vector<std::uint64_t>> want;
  for (const CooTensor* x : {&a, &b})
    for (std::uint64_t k = 0; k < x->nnz(); ++k) want.insert(coordinate(*x, k));
  synthetic::unite(a, b, context);
  ASSERT_EQ(a.nnz(), 2500U);
  std::uint64_t k = 0;
  for (const auto& c : want) EXPECT_EQ(coordinate(a, k++), c);
  const std::vector<std::uint64_t> last = coordinate(a, 2499);
  synthetic::thin(a, 700, context);
  ASSERT_EQ(a.nnz(), 700U);
  EXPECT_EQ(coordinate(a, 699), last);
  for (k = 0; k < 700; ++k) {
    EXPECT_TRUE(want.contains(coordinate(a, k)));
    if (k > 0) {
      EXPECT_LT(coordinate(a, k - 1), coordinate(a, k));
    }
  }
}

TEST(Zipf, RanksFollowThePowerLaw) {
  const synthetic::ZipfMode mode(1000, 1.5, portable::Key(1, "test"));
  portable::Random random(portable::Key(2, "test"));
  std::vector<double> counts(1000);
  constexpr int n = 200000;
  for (int k = 0; k < n; ++k) counts[mode(random)] += 1;
  std::sort(counts.rbegin(), counts.rend());
  // P(rank i) = (i^-0.5 - (i+1)^-0.5) / (1 - 1001^-0.5)
  for (int i = 1; i <= 10; ++i) {
    const double p = (1 / std::sqrt(i) - 1 / std::sqrt(i + 1.0)) / (1 - 1 / std::sqrt(1001.0));
    EXPECT_NEAR(counts[static_cast<std::size_t>(i) - 1] / n, p, 6 * std::sqrt(p / n) + 1e-3) << i;
  }
}

}  // namespace
}  // namespace polyad
