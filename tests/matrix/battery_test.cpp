// SPDX-License-Identifier: MIT
/// \file Everything in the registry against the oracle: every format, every kernel that can, every mode, rank,
/// precision and number of threads, exactly. POLYAD_BATTERY_FORMATS=a,b restricts the formats while one is being
/// written.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <polyad/polyad.hpp>

#include "matrix/cases.hpp"
#include "matrix/factors.hpp"
#include "matrix/registered.hpp"
#include "oracle/kernel_oracle.hpp"

namespace polyad {
namespace {

#ifdef POLYAD_SANITIZED
constexpr std::array ranks = {33};
constexpr std::array thread_counts = {7};
#else
constexpr std::array ranks = {1, 3, 8, 10, 16, 17, 33, 64};
constexpr std::array thread_counts = {1, 2, 3, 7, 16};
#endif

/// Every rank with two threads, every number of threads with ranks of each kind of blocks of columns.
bool together(int threads, std::uint64_t rank) { return threads == 2 || rank == 3 || rank == 16 || rank == 33; }

class Battery : public testing::TestWithParam<std::string_view> {};

TEST_P(Battery, GivesTheCoordinatesBack) {
  if (!registered::wanted(GetParam())) GTEST_SKIP();
  int ran = 0;
  for (const cases::Case& c : cases::all())
    for (const Precision precision : {Precision::f32, Precision::f64})
      for (const int threads : {1, 7}) {
        SCOPED_TRACE(fmt::format("{}, {}, {} threads", c.name, name_of(precision), threads));
        Context context;
        context.threads = threads;
        CooTensor x = cases::make(c, precision);
        const std::optional<Tensor> t = registered::built(x, GetParam(), context);
        if (!t) continue;
        EXPECT_EQ(t->nnz(), x.nnz());
        EXPECT_EQ(t->dims(), x.dims);
        EXPECT_EQ(t->precision(), precision);
        CooTensor back = t->to_coo(context);
        std::vector<int> order(x.dims.size());
        for (std::size_t m = 0; m < order.size(); ++m) order[m] = static_cast<int>(m);
        sort_nonzeros(x, order);
        sort_nonzeros(back, order);
        if (c.duplicates) {  // equal coordinates may change places among themselves
          merge_duplicates(x);
          merge_duplicates(back);
        }
        EXPECT_TRUE(same_nonzeros(x, back));
        ++ran;
      }
  fmt::print("{}: {} round trips\n", GetParam(), ran);
  EXPECT_GT(ran, 0);
}

template <class T>
int mttkrp_cases(const cases::Case& c, std::string_view format) {
  int ran = 0;
  const CooTensor x = cases::make(c, sizeof(T) == 4 ? Precision::f32 : Precision::f64);
  const bool large = x.nnz() * x.dims[0] > 5000000;
  std::vector<std::pair<std::vector<oracle::Dense>, std::vector<oracle::Dense>>> expected;  // per rank factors, results
  for (const int rank : ranks) {
    if (large && rank != 3 && rank != 16 && rank != 33) continue;
    auto& [factors, results] = expected.emplace_back();
    factors = cases::whole_number_factors(x.dims, static_cast<std::uint64_t>(rank));
    for (int mode = 0; mode < x.order(); ++mode) results.push_back(oracle::mttkrp(x, factors, mode));
  }
  for (const int threads : thread_counts) {
    Context context;
    context.threads = threads;
    std::optional<Tensor> t = registered::built(x, format, context);
    if (!t) return 0;
    Workspace workspace;
    for (const auto& [dense, results] : expected) {
      if (!together(threads, dense[0].cols)) continue;
      const std::vector<FactorMatrix<T>> factors = cases::as_factors<T>(dense);
      for (int mode = 0; mode < x.order(); ++mode)
        for (const KernelEntry& kernel : kernels()) {
          if (kernel.operation != "mttkrp") continue;
          try {
            static_cast<void>(mttkrp_choice(*t, mode, dense[0].cols, context, kernel.name));
          } catch (const Error& e) {
            EXPECT_EQ(e.kind(), ErrorKind::usage);
            continue;
          }
          const oracle::Dense& want = results[static_cast<std::size_t>(mode)];
          FactorMatrix<T> out(context, want.rows, want.cols);
          std::fill_n(out.data(), out.rows() * out.stride(), T{77});
          const KernelChoice ran_kernel =
              mttkrp<T>(*t, std::span<const FactorMatrix<T>>(factors), mode, out, workspace, context, kernel.name);
          EXPECT_EQ(ran_kernel.name, kernel.name);
          std::uint64_t wrong = 0;
          for (std::uint64_t i = 0; i < want.rows; ++i)
            for (std::uint64_t r = 0; r < want.cols; ++r) wrong += static_cast<double>(out(i, r)) != want(i, r);
          EXPECT_EQ(wrong, 0U) << kernel.name << ", " << c.name << ", mode " << mode + 1 << ", rank " << want.cols
                               << ", " << threads << " threads, " << (sizeof(T) == 4 ? "f32" : "f64");
          ++ran;
          if (wrong != 0) return ran;
        }
    }
  }
  return ran;
}

TEST_P(Battery, MttkrpIsExact) {
  if (!registered::wanted(GetParam())) GTEST_SKIP();
  int ran = 0;
  for (const cases::Case& c : cases::all()) {
    if (c.dims[0] > 100000) continue;  // its dense results would take longer than all the rest
    ran += mttkrp_cases<float>(c, GetParam()) + mttkrp_cases<double>(c, GetParam());
    if (HasFailure()) break;
  }
  fmt::print("{}: {} MTTKRPs\n", GetParam(), ran);
  EXPECT_GT(ran, 0);
}

TEST_P(Battery, DeterministicKernelsGiveTheSameBits) {
  if (!registered::wanted(GetParam())) GTEST_SKIP();
  int ran = 0;
  for (const cases::Case& c : cases::all()) {
    if (c.dims[0] > 100000) continue;
    CooTensor x = cases::make(c, Precision::f64);
    cases::Dice dice(5);
    for (std::uint64_t k = 0; k < x.nnz(); ++k) std::get<Buffer<double>>(x.values)[k] *= 0.1 + dice.unit();
    for (int mode = 0; mode < x.order(); ++mode) {
      std::vector<std::vector<double>> results;
      for (const int threads : {1, 2, 7}) {
        Context context;
        context.threads = threads;
        context.deterministic = true;
        std::optional<Tensor> t = registered::built(x, GetParam(), context);
        if (!t) continue;
        std::vector<FactorMatrix<double>> factors;
        cases::Dice fill(9);
        for (const std::uint64_t d : x.dims) {
          FactorMatrix<double>& f = factors.emplace_back(context, d, 10);
          for (std::uint64_t i = 0; i < d; ++i)
            for (std::uint64_t r = 0; r < 10; ++r) f(i, r) = fill.unit() - 0.3;
        }
        FactorMatrix<double> out(context, x.dims[static_cast<std::size_t>(mode)], 10);
        Workspace workspace;
        const KernelChoice kernel =
            mttkrp<double>(*t, std::span<const FactorMatrix<double>>(factors), mode, out, workspace, context);
        results.emplace_back(out.data(), out.data() + out.rows() * out.stride());
        EXPECT_EQ(results.back(), results.front())
            << kernel.name << ", " << c.name << ", mode " << mode + 1 << ", " << threads << " threads";
        ++ran;
      }
    }
  }
  fmt::print("{}: {} deterministic MTTKRPs\n", GetParam(), ran);
  EXPECT_GT(ran, 0);
}

/// The same command with as many threads gives the same bytes, also without Context::deterministic.
TEST_P(Battery, TheSameThreadsGiveTheSameBits) {
  if (!registered::wanted(GetParam())) GTEST_SKIP();
  int ran = 0;
  for (const cases::Case& c : cases::all()) {
    if (c.dims[0] > 100000 || c.nnz < 1000) continue;
    CooTensor x = cases::make(c, Precision::f64);
    cases::Dice dice(5);
    for (std::uint64_t k = 0; k < x.nnz(); ++k) std::get<Buffer<double>>(x.values)[k] *= 0.1 + dice.unit();
    for (const bool private_outputs : {true, false}) {
      Context seven;
      seven.threads = 7;
      Context context = seven;
      const std::vector<FactorMatrix<double>> factors = random_factors<double>(x.dims, 40, context);
      std::optional<Tensor> t = registered::built(x, GetParam(), context);
      if (!t) continue;
      if (!private_outputs) context.memory = std::make_shared<MemoryBudget>(1);
      for (int mode = 0; mode < x.order(); ++mode) {
        FactorMatrix<double> out(Context{}, x.dims[static_cast<std::size_t>(mode)], 40);
        std::vector<double> first;
        for (int repeat = 0; repeat < 3; ++repeat) {
          std::optional<Tensor> again;
          if (GetParam() == "flycoo")
            again = registered::built(x, GetParam(), seven);  // its order changes while computing
          Workspace workspace;
          try {
            mttkrp<double>(again ? *again : *t, std::span<const FactorMatrix<double>>(factors), mode, out, workspace,
                           context);
          } catch (const Error& e) {
            EXPECT_EQ(e.kind(), ErrorKind::limit);
            continue;
          }
          std::vector<double> bits(out.data(), out.data() + out.rows() * out.stride());
          if (first.empty()) first = bits;
          EXPECT_EQ(first, bits) << c.name << ", mode " << mode + 1;
          ++ran;
        }
      }
    }
  }
  EXPECT_GT(ran, 0);
}

INSTANTIATE_TEST_SUITE_P(Formats, Battery, testing::ValuesIn(registered::formats()), registered::test_name);

}  // namespace
}  // namespace polyad
