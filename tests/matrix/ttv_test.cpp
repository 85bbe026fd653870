// SPDX-License-Identifier: MIT
/// \file TTV, TTM, inner product and norm of every format in the registry against the oracle: every kernel that can,
/// every mode, precision and number of threads, exactly.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <polyad/polyad.hpp>
#include <span>

#include "matrix/cases.hpp"
#include "matrix/registered.hpp"
#include "oracle/kernel_oracle.hpp"

namespace polyad {
namespace {

#ifdef POLYAD_SANITIZED
constexpr std::array thread_counts = {7};
constexpr std::array rows_of_ttm = {37};
constexpr std::array threads_of_ttm = {7};
constexpr std::array ranks = {33};
#else
constexpr std::array thread_counts = {1, 2, 3, 7, 16};
constexpr std::array rows_of_ttm = {5, 37};
constexpr std::array threads_of_ttm = {1, 7};
constexpr std::array ranks = {1, 10, 33};
#endif

Context threads_of(int threads) {
  Context context;
  context.threads = threads;
  return context;
}

struct Built {
  Context context;
  Tensor tensor;
};

/// The tensor in a format, built with each number of threads; none where the format cannot hold it.
std::vector<Built> built_with(const CooTensor& x, std::string_view format, std::span<const int> counts,
                              bool deterministic = false) {
  std::vector<Built> all;
  for (const int threads : counts) {
    Context context = threads_of(threads);
    context.deterministic = deterministic;
    if (std::optional<Tensor> t = registered::built(x, format, context)) all.push_back({context, std::move(*t)});
  }
  return all;
}

std::vector<double> whole_numbers(std::uint64_t n, std::uint64_t seed) {
  cases::Dice dice(seed);
  std::vector<double> v(n);
  for (double& x : v) x = static_cast<double>(dice.below(7)) - 3;
  return v;
}

using Sums = std::map<std::vector<std::uint64_t>, double>;

/// The result as a map; fails when a coordinate comes twice, out of order, or the tensor does not know it is sorted.
Sums checked(const CooTensor& y) {
  Sums sums;
  std::vector<std::uint64_t> last;
  for (std::uint64_t k = 0; k < y.nnz(); ++k) {
    std::vector<std::uint64_t> at;
    for (int m = 0; m < y.order(); ++m) at.push_back(y.index(m, k));
    EXPECT_TRUE(last.empty() || last < at) << "nonzero " << k << " of the result is out of order";
    last = at;
    sums[at] = y.value(k);
  }
  std::vector<int> natural(y.dims.size());
  for (std::size_t m = 0; m < natural.size(); ++m) natural[m] = static_cast<int>(m);
  EXPECT_EQ(y.sorted_by, natural);
  EXPECT_TRUE(y.duplicates_merged);
  return sums;
}

class TtvBattery : public testing::TestWithParam<std::string_view> {};

TEST_P(TtvBattery, TtvIsExact) {
  if (!registered::wanted(GetParam())) GTEST_SKIP();
  std::map<std::string_view, int> ran;
  for (const cases::Case& c : cases::all())
    for (const Precision precision : {Precision::f32, Precision::f64}) {
      const CooTensor x = cases::make(c, precision);
      std::vector<std::vector<double>> vectors;
      std::vector<Sums> expected;
      for (int mode = 0; mode < x.order(); ++mode) {
        vectors.push_back(whole_numbers(x.dims[static_cast<std::size_t>(mode)], static_cast<std::uint64_t>(mode)));
        expected.push_back(oracle::ttv(x, vectors.back(), mode));
      }
      for (const int threads : thread_counts) {
        const Context context = threads_of(threads);
        const std::optional<Tensor> t = registered::built(x, GetParam(), context);
        if (!t) break;
        for (int mode = 0; mode < x.order(); ++mode)
          for (const KernelEntry& kernel : kernels()) {
            if (kernel.operation != "ttv") continue;
            SCOPED_TRACE(fmt::format("{}, {}, {}, mode {}, {} threads", kernel.name, c.name, name_of(precision),
                                     mode + 1, threads));
            KernelChoice choice;
            std::optional<CooTensor> y;
            try {
              y = ttv(*t, mode, vectors[static_cast<std::size_t>(mode)], context, kernel.name, &choice);
            } catch (const Error& e) {
              EXPECT_EQ(e.kind(), ErrorKind::usage) << e.what();
              continue;
            }
            EXPECT_EQ(choice.name, kernel.name);
            EXPECT_EQ(y->precision(), precision);
            EXPECT_EQ(y->order(), x.order() - 1);
            EXPECT_TRUE(checked(*y) == expected[static_cast<std::size_t>(mode)]);
            ++ran[kernel.name];
            if (HasFailure()) return;
          }
      }
    }
  int all = 0;
  for (const auto& [kernel, count] : ran) {
    fmt::print("{}: {} products by {}\n", GetParam(), count, kernel);
    all += count;
  }
  EXPECT_GT(all, 0);
}

TEST_P(TtvBattery, TtvTakesTheFormatsOwnKernel) {
  if (!registered::wanted(GetParam())) GTEST_SKIP();
  const CooTensor x = cases::make(cases::every()[4], Precision::f64);
  const Tensor t = build(x, GetParam());
  for (int mode = 0; mode < x.order(); ++mode) {
    KernelChoice choice;
    static_cast<void>(ttv(t, mode, whole_numbers(x.dims[static_cast<std::size_t>(mode)], 1), {}, {}, &choice));
    bool own = false;
    for (const KernelEntry& k : kernels())
      own = own || (k.operation == "ttv" && k.backend == "cpu" && k.formats == GetParam());
    EXPECT_EQ(choice.name == "ttv/generic", !own) << choice.name;
    EXPECT_FALSE(choice.why.empty());
  }
}

TEST_P(TtvBattery, DeterministicKernelsGiveTheSameBits) {
  if (!registered::wanted(GetParam())) GTEST_SKIP();
  int ran = 0;
  for (const cases::Case& c : cases::all()) {
    CooTensor x = cases::make(c, Precision::f64);
    cases::Dice dice(5);
    for (std::uint64_t k = 0; k < x.nnz(); ++k) std::get<Buffer<double>>(x.values)[k] *= 0.1 + dice.unit();
    // Deterministic: the order of nonzeros in a format may depend on the threads without it.
    const std::vector<Built> tensors = built_with(x, GetParam(), std::array{1, 2, 7}, true);
    for (int mode = 0; mode < x.order(); ++mode) {
      std::vector<double> vector(x.dims[static_cast<std::size_t>(mode)]);
      for (double& v : vector) v = dice.unit() - 0.3;
      for (const KernelEntry& kernel : kernels()) {
        if (kernel.operation != "ttv" || !kernel.deterministic) continue;
        std::optional<CooTensor> first;
        for (const auto& [context, t] : tensors) {
          std::optional<CooTensor> y;
          try {
            y = ttv(t, mode, vector, context, kernel.name);
          } catch (const Error&) {
            break;
          }
          if (!first)
            first = std::move(*y);
          else
            EXPECT_TRUE(same_nonzeros(*first, *y)) << kernel.name << ", " << c.name << ", mode " << mode + 1;
          ++ran;
        }
      }
    }
  }
  fmt::print("{}: {} deterministic products\n", GetParam(), ran);
  EXPECT_GT(ran, 0);
}

TEST_P(TtvBattery, TtmIsExact) {
  if (!registered::wanted(GetParam())) GTEST_SKIP();
  int ran = 0;
  for (const cases::Case& c : cases::all())
    for (const Precision precision : {Precision::f32, Precision::f64}) {
      const CooTensor x = cases::make(c, precision);
      const std::vector<Built> tensors = built_with(x, GetParam(), threads_of_ttm);
      for (int mode = 0; mode < x.order(); ++mode) {
        const std::uint64_t dim = x.dims[static_cast<std::size_t>(mode)];
        if (dim > 100000) continue;
        for (const std::uint64_t rows : rows_of_ttm) {
          oracle::Dense dense(rows, dim);
          dense.values = whole_numbers(rows * dim, rows);
          Matrix matrix(rows, dim);
          matrix.values.assign(dense.values.begin(), dense.values.end());
          const auto expected = oracle::ttm(x, dense, mode);
          for (const auto& [context, t] : tensors) {
            SCOPED_TRACE(fmt::format("{}, {}, mode {}, {} rows, {} threads", c.name, name_of(precision), mode + 1, rows,
                                     context.threads));
            const SemiSparseTensor y = ttm(t, mode, matrix, context);
            EXPECT_EQ(y.dense_mode, mode);
            ASSERT_EQ(y.fibres.nnz(), expected.size());
            ASSERT_EQ(y.rows.rows(), expected.size());
            std::uint64_t f = 0;
            std::uint64_t wrong = 0;
            for (const auto& [at, row] : expected) {  // in the order of the result
              for (int m = 0; m < y.fibres.order(); ++m)
                wrong += y.fibres.index(m, f) != at[static_cast<std::size_t>(m)];
              for (std::uint64_t j = 0; j < rows; ++j) wrong += y.rows(f, j) != row[j];
              wrong += y.fibres.value(f) != 1;
              ++f;
            }
            EXPECT_EQ(wrong, 0U);
            ++ran;
            if (HasFailure()) return;
          }
        }
      }
    }
  fmt::print("{}: {} TTMs\n", GetParam(), ran);
  EXPECT_GT(ran, 0);
}

TEST_P(TtvBattery, InnerProductAndNormAreExact) {
  if (!registered::wanted(GetParam())) GTEST_SKIP();
  int ran = 0;
  for (const cases::Case& c : cases::all())
    for (const Precision precision : {Precision::f32, Precision::f64}) {
      const CooTensor x = cases::make(c, precision);
      if (x.dims[0] > 100000) continue;  // the factors would take longer than all the rest
      double squares = 0;
      for (std::uint64_t k = 0; k < x.nnz(); ++k) squares += x.value(k) * x.value(k);
      const std::vector<Built> tensors = built_with(x, GetParam(), thread_counts);
      for (const std::uint64_t rank : ranks) {
        CpModel model;
        model.weights = whole_numbers(rank, rank);
        std::vector<oracle::Dense> dense;
        for (const std::uint64_t d : x.dims) {
          oracle::Dense& f = dense.emplace_back(d, rank);
          f.values = whole_numbers(d * rank, d + rank);
          Matrix& a = model.factors.emplace_back(d, rank);
          a.values.assign(f.values.begin(), f.values.end());
        }
        const double expected = oracle::innerprod(x, model.weights, dense);
        for (const auto& [context, t] : tensors) {
          EXPECT_EQ(innerprod(t, model, context), expected) << c.name << ", rank " << rank << ", " << context.threads;
          EXPECT_EQ(norm(t, context), std::sqrt(squares)) << c.name << ", " << context.threads;
          ++ran;
        }
      }
    }
  fmt::print("{}: {} inner products and norms\n", GetParam(), ran);
  EXPECT_GT(ran, 0);
}

INSTANTIATE_TEST_SUITE_P(Formats, TtvBattery, testing::ValuesIn(registered::formats()), registered::test_name);

}  // namespace
}  // namespace polyad
