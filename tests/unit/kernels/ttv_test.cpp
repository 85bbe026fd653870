// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <polyad/polyad.hpp>

#include "kernels/gpu/pipeline_model.hpp"
#include "kernels/ttv/fibre_sums.hpp"
#include "matrix/cases.hpp"
#include "oracle/kernel_oracle.hpp"
#include "unit/formats/example_a.hpp"

namespace polyad {
namespace {

constexpr std::array all_formats = {"coo", "hocoo", "hocsr", "cfb", "hocfs-csr", "hocfs-ell"};

FormatOptions for_mode(int mode) {
  FormatOptions o;
  o.mode = mode;
  return o;
}

/// By hand: X times (1, 10, 100, 1000) along mode 3 writes the rows of the printed slices as decimal digits.
TEST(Ttv, OfExampleA) {
  const CooTensor x = example_a();
  const std::vector<double> v = {1, 10, 100, 1000};
  const std::vector<std::array<double, 3>> expected = {
      {1, 1, 13},   {1, 2, 90},  {1, 3, 370},  {1, 4, 8500}, {1, 5, 2},    {3, 1, 400}, {3, 2, 7000},
      {3, 3, 2005}, {3, 4, 610}, {4, 1, 8070}, {4, 2, 3},    {4, 3, 1200}, {4, 5, 5600}};
  for (const char* format : all_formats) {
    const CooTensor y = ttv(build(x, format), 2, v);
    EXPECT_EQ(y.dims, (std::vector<std::uint64_t>{4, 5}));
    ASSERT_EQ(y.nnz(), expected.size()) << format;
    for (std::size_t k = 0; k < expected.size(); ++k) {
      EXPECT_EQ(static_cast<double>(y.index(0, k) + 1), expected[k][0]) << format << ", sum " << k;
      EXPECT_EQ(static_cast<double>(y.index(1, k) + 1), expected[k][1]) << format << ", sum " << k;
      EXPECT_EQ(y.value(k), expected[k][2]) << format << ", sum " << k;
    }
  }
}

TEST(Ttv, KeepsSumsThatCancel) {
  CooTensor x = make_coo({2, 3}, 2, Precision::f32, {});
  std::get<Buffer<std::uint32_t>>(x.indices[1])[1] = 2;
  std::get<Buffer<float>>(x.values)[0] = 4;
  std::get<Buffer<float>>(x.values)[1] = -2;
  for (const char* format : all_formats) {
    const CooTensor y = ttv(build(x, format), 1, std::vector<double>{1, 1, 2});
    EXPECT_EQ(y.order(), 1);
    ASSERT_EQ(y.nnz(), 1U);
    EXPECT_EQ(y.value(0), 0);
    EXPECT_EQ(y.precision(), Precision::f32);
  }
}

/// Padding of ELL is left out, not multiplied: no NaN from 0 times infinity.
TEST(Ttv, InfinityOnlyGoesWhereItIsUsed) {
  const CooTensor x = example_a(Precision::f32);
  const double infinity = std::numeric_limits<double>::infinity();
  for (const char* format : all_formats) {
    const CooTensor y = ttv(build(x, format), 2, std::vector<double>{infinity, 1, 1, 1});
    int infinite = 0;
    for (std::uint64_t k = 0; k < y.nnz(); ++k) {
      EXPECT_FALSE(std::isnan(y.value(k))) << format;
      infinite += std::isinf(y.value(k)) ? 1 : 0;
    }
    EXPECT_EQ(infinite, 4) << format;  // rows (1,1), (1,5), (3,3), (4,2) have a first element
  }
}

/// Fibres of 0 to 20,000 nonzeros, so that some end in the middle of a piece and one goes over several.
template <class T>
void long_and_short_fibres(IndexWidth width) {
  const std::uint64_t long_mode = width == IndexWidth::u32 ? 30000 : (std::uint64_t{1} << 32U) + 5;
  CooTensor x = make_coo({40, 50, 30000}, 60000, sizeof(T) == 4 ? Precision::f32 : Precision::f64, {});
  if (width == IndexWidth::u64) x = make_coo({long_mode, 50, 30000}, 60000, x.precision(), {});
  visit(x, [&]<class Index, class Value>(const CooView<Index, Value>& v) {
    cases::Dice dice(3);
    for (std::uint64_t k = 0; k < v.nnz; ++k) {
      v.indices[0][k] = k < 20000 ? 7 : static_cast<Index>(cases::skewed(dice, 40));
      v.indices[1][k] = k < 20000 ? 8 : static_cast<Index>(cases::skewed(dice, 50));
      v.indices[2][k] = static_cast<Index>(dice.below(30000));
      v.values[k] = static_cast<Value>(cases::small_value(dice));
    }
  });
  std::vector<double> v(30000);
  cases::Dice dice(4);
  for (double& e : v) e = cases::small_value(dice);
  const auto expected = oracle::ttv(x, v, 2);
  for (const char* format : all_formats) {
    if (width == IndexWidth::u64 && std::string_view(format) == "hocsr") continue;  // 2^32 rows are refused
    for (const int threads : {1, 5}) {
      Context context;
      context.threads = threads;
      const CooTensor y = ttv(build(x, format, for_mode(2), context), 2, v, context);
      ASSERT_EQ(y.nnz(), expected.size()) << format;
      std::uint64_t k = 0;
      for (const auto& [at, sum] : expected) {
        ASSERT_EQ(y.index(0, k), at[0]) << format;
        ASSERT_EQ(y.index(1, k), at[1]) << format;
        ASSERT_EQ(y.value(k), sum) << format << ", fibre " << at[0] << " " << at[1];
        ++k;
      }
    }
  }
}

TEST(Ttv, LongAndShortFibresU32F32) { long_and_short_fibres<float>(IndexWidth::u32); }
TEST(Ttv, LongAndShortFibresU32F64) { long_and_short_fibres<double>(IndexWidth::u32); }
TEST(Ttv, LongAndShortFibresU64F32) { long_and_short_fibres<float>(IndexWidth::u64); }
TEST(Ttv, LongAndShortFibresU64F64) { long_and_short_fibres<double>(IndexWidth::u64); }

TEST(Ttv, AnotherModeThanTheFormatWasBuiltForTakesTheGenericKernel) {
  const CooTensor x = example_a();
  const std::vector<double> v = {1, 2, 3, 4, 5};
  const auto expected = oracle::ttv(x, v, 1);
  for (const char* format : {"hocsr", "cfb", "hocfs-csr", "hocfs-ell"}) {
    const Tensor t = build(x, format, for_mode(2));
    KernelChoice choice;
    const CooTensor y = ttv(t, 1, v, {}, {}, &choice);
    EXPECT_EQ(choice.name, "ttv/generic");
    EXPECT_EQ(y.nnz(), expected.size());
    for (std::uint64_t k = 0; k < y.nnz(); ++k) EXPECT_EQ(y.value(k), expected.at({y.index(0, k), y.index(1, k)}));
    KernelChoice own;
    static_cast<void>(ttv(t, 2, std::vector<double>(4), {}, {}, &own));
    try {
      static_cast<void>(ttv(t, 1, v, {}, own.name));
      FAIL() << own.name << " took another mode";
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("was built for mode 3, not for mode 2"), std::string::npos) << e.what();
    }
  }
}

TEST(Ttv, SaysWhatIsWrong) {
  const Tensor t = build(example_a(), "cfb");
  const auto message = [&](int mode, std::size_t length, std::string_view kernel = {}) -> std::string {
    try {
      static_cast<void>(ttv(t, mode, std::vector<double>(length), {}, kernel));
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::usage);
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(message(1, 4), "ttv: a vector of 4 numbers for mode 2, whose length is 5");
  EXPECT_EQ(message(3, 4), "ttv: mode 4 of a tensor with 3 modes");
  EXPECT_NE(message(1, 5, "ttv/none").find("there is no kernel 'ttv/none'"), std::string::npos);
  EXPECT_NE(message(1, 5, "ttv/hocsr/rows").find("it works on hocsr"), std::string::npos);
}

/// Every position of the path belongs to one piece, whatever is empty.
TEST(FibrePath, CoversEveryFibreAndNonzeroOnce) {
  cases::Dice dice(1);
  for (int round = 0; round < 50; ++round) {
    const std::uint64_t fibres = dice.below(20000);
    Offsets begins({}, fibres + 1, 1000000, "a test");
    for (std::uint64_t f = 0; f < fibres; ++f)
      begins.set(f + 1, begins[f] + (dice.below(4) == 0 ? dice.below(f % 1000 == 0 ? 20000 : 3) : 0));
    const std::uint64_t nnz = begins[fibres];
    const FibrePath path(begins, nnz);
    FibrePath::Position last = path.begin(0);
    EXPECT_EQ(last.fibre + last.nonzero, 0U);
    for (std::uint64_t p = 1; p <= path.pieces(); ++p) {
      const FibrePath::Position at = path.begin(p);
      EXPECT_LE(at.fibre - last.fibre + at.nonzero - last.nonzero, piece_steps);
      EXPECT_GE(at.fibre, last.fibre);
      EXPECT_GE(at.nonzero, begins[at.fibre]);
      EXPECT_LE(at.nonzero, at.fibre < fibres ? begins[at.fibre + 1] : nnz);
      last = at;
    }
    EXPECT_EQ(last.fibre, fibres);
    EXPECT_EQ(last.nonzero, nnz);
  }
}

/// The formula as printed, its misprint corrected; for k >= 2.
double printed_formula(const std::vector<CollectionTimes>& t) {
  const std::size_t k = t.size();
  double sum = t[0].copy_in + std::max(t[1].copy_in, t[0].compute);
  for (std::size_t i = 0; i + 2 < k; ++i) sum += std::max({t[i + 2].copy_in, t[i + 1].compute, t[i].copy_out});
  return sum + std::max(t[k - 2].copy_out, t[k - 1].compute) + t[k - 1].copy_out;
}

TEST(Pipeline, OfOneAndTwoCollections) {
  const std::vector<CollectionTimes> one = {{2, 3, 5}};
  EXPECT_EQ(synchronous_time(one), 10);
  EXPECT_EQ(pipelined_time(one), 10);
  const std::vector<CollectionTimes> two = {{2, 3, 5}, {7, 11, 13}};
  EXPECT_EQ(synchronous_time(two), 41);
  EXPECT_EQ(pipelined_time(two), 2 + 7 + 11 + 13);  // the misprint, max(t2, t2), would give 2 + 3 + 11 + 13
  EXPECT_EQ(pipelined_time({}), 0);
}

TEST(Pipeline, IsNeverSlowerAndFollowsTheFormula) {
  cases::Dice dice(2);
  for (int round = 0; round < 1000; ++round) {
    std::vector<CollectionTimes> t(2 + dice.below(20));
    for (CollectionTimes& c : t)
      c = {static_cast<double>(dice.below(100)), static_cast<double>(dice.below(100)),
           static_cast<double>(dice.below(100))};
    EXPECT_EQ(pipelined_time(t), printed_formula(t));
    EXPECT_LE(pipelined_time(t), synchronous_time(t));
    double longest = 0;  // no step can be faster than doing one kind of work alone
    for (const CollectionTimes& c : t) longest += c.compute;
    EXPECT_GE(pipelined_time(t), longest);
  }
}

TEST(Pipeline, SchedulesAreBetweenTheLongestStepAndTheCommonBeat) {
  cases::Dice dice(3);
  for (int round = 0; round < 300; ++round) {
    std::vector<CollectionTimes> t(1 + dice.below(20));
    CollectionTimes sums;
    for (CollectionTimes& c : t) {
      c = {static_cast<double>(dice.below(100)), static_cast<double>(dice.below(100)),
           static_cast<double>(dice.below(100))};
      sums.copy_in += c.copy_in;
      sums.compute += c.compute;
      sums.copy_out += c.copy_out;
    }
    EXPECT_EQ(scheduled_time(t, 1), synchronous_time(t));
    for (int q = 2; q <= 5; ++q) EXPECT_LE(scheduled_time(t, q), scheduled_time(t, q - 1));
    EXPECT_LE(scheduled_time(t, 3), synchronous_time(t));
    EXPECT_GE(scheduled_time(t, 5), std::max({sums.copy_in, sums.compute, sums.copy_out}));
    const int best = best_queues(t, 5);
    EXPECT_GE(best, 3);
    EXPECT_LE(best, 5);
  }
  EXPECT_EQ(best_queues(std::vector<CollectionTimes>(9, {1, 1, 1}), 5), 3);  // of one size: three steps, three queues
  EXPECT_EQ(best_queues(std::vector<CollectionTimes>(9, {1, 1, 1}), 2), 2);  // memory for two
  // A long copy in behind short ones: with more under way it begins earlier.
  const std::vector<CollectionTimes> uneven = {{1, 9, 9}, {1, 1, 1}, {1, 1, 1}, {30, 1, 1}, {1, 1, 1}};
  EXPECT_GT(best_queues(uneven, 5), 3);
}

TEST(Pipeline, RatesExplainWhatWasMeasured) {
  const CollectionSize small = {1000, 100, 50};
  const CollectionSize large = {5000, 500, 250};
  const StepRates wanted = {{2, 0.5}, {1, 0.25}, {4, 0.125}};
  const StepRates found = rates_from(small, wanted.of(small), large, wanted.of(large));
  EXPECT_DOUBLE_EQ(found.copy_in.begin, 2);
  EXPECT_DOUBLE_EQ(found.copy_in.slope, 0.5);
  EXPECT_DOUBLE_EQ(found.compute.slope, 0.25);
  EXPECT_DOUBLE_EQ(found.copy_out.of(80), 14);
  const StepRate noisy = rate_through(100, 5, 200, 3);  // the larger one was faster
  EXPECT_EQ(noisy.slope, 0);
  EXPECT_EQ(noisy.begin, 5);
}

/// k collections of one size: more until beginning them costs more than the overlap gives; as many as memory asks for.
TEST(Pipeline, CutsAsTheModelSays) {
  const CollectionSize whole = {1e9, 1e8, 1e8};
  const StepRates rates = {{1e-5, 1e-10}, {1e-5, 1e-9}, {1e-5, 1e-10}};
  const auto tp = [&](std::uint64_t k) {
    const auto n = static_cast<double>(k);
    return pipelined_time(
        std::vector<CollectionTimes>(k, rates.of({whole.in_bytes / n, whole.nnz / n, whole.out_bytes / n})));
  };
  const std::uint64_t best = best_collections(rates, whole, 1e12);
  EXPECT_GT(best, 20U);
  EXPECT_LT(best, 500U);
  for (const std::uint64_t other : {1, 4, 16, 1000, 4000}) EXPECT_LE(tp(best), tp(other)) << other;
  const StepRates slow_start = {{10, 1e-10}, {10, 1e-9}, {10, 1e-10}};
  EXPECT_EQ(best_collections(slow_start, whole, 1e12), 1U);
  EXPECT_EQ(best_collections(slow_start, whole, 1.1e8), 10U);  // memory
}

}  // namespace
}  // namespace polyad
