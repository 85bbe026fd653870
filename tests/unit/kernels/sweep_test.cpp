// SPDX-License-Identifier: MIT
/// \file The sweep engine: its layout, and products that are kept from one mode to the next.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <polyad/polyad.hpp>
#include <tuple>
#include <utility>
#include <vector>

#include "formats/sweep/sweep.hpp"
#include "oracle/kernel_oracle.hpp"

namespace polyad {
namespace {

CooTensor integers(const std::vector<std::uint64_t>& dims, std::uint64_t nnz, double burst,
                   const std::vector<double>& widths = {}) {
  GenerateOptions options;
  options.dims = dims;
  options.nnz = nnz;
  options.burst = burst;
  options.widths = widths;
  CooTensor x = generate(options);
  auto& values = std::get<Buffer<double>>(x.values);
  for (std::uint64_t k = 0; k < x.nnz(); ++k) values[k] = static_cast<double>(k % 7) - 3;
  return x;
}

/// Whole numbers: sums are exact in any order.
FactorMatrix<double> integer_factor(const CooTensor& x, std::size_t m, std::uint64_t rank, std::uint64_t salt) {
  FactorMatrix<double> factor(Context{}, x.dims[m], rank);
  for (std::uint64_t i = 0; i < x.dims[m]; ++i) {
    double* row = factor.row(i);
    for (std::uint64_t r = 0; r < rank; ++r)
      row[r] = static_cast<double>((i * 31 + r * 17 + m * 7 + salt * 13) % 5) - 2;
  }
  return factor;
}

std::vector<FactorMatrix<double>> integer_factors(const CooTensor& x, std::uint64_t rank, std::uint64_t salt) {
  std::vector<FactorMatrix<double>> factors;
  for (std::size_t m = 0; m < x.dims.size(); ++m) factors.push_back(integer_factor(x, m, rank, salt));
  return factors;
}

void expect_same(const FactorMatrix<double>& found, const oracle::Dense& want, const std::string& what) {
  for (std::uint64_t i = 0; i < found.rows(); ++i) {
    const double* row = found.row(i);
    for (std::uint64_t r = 0; r < found.cols(); ++r)
      if (row[r] != want(i, r)) FAIL() << what << ", row " << i << ", column " << r << ": " << row[r];
  }
}

/// Shapes whose splits differ: one leaf mode, merged leaf modes, leaves in the middle of the cycle, two modes, single
/// nonzeros, more than one chunk.
const std::vector<CooTensor>& shapes() {
  static const std::vector<CooTensor> all = [] {
    std::vector<CooTensor> list;
    list.push_back(integers({40, 30, 500}, 20000, 20, {2, 2, 30}));
    list.push_back(integers({500, 30, 40}, 20000, 20, {30, 2, 2}));
    list.push_back(integers({40, 500, 30}, 20000, 20, {2, 30, 2}));
    list.push_back(integers({300, 8, 9, 200}, 20000, 6, {1, 3, 3, 3}));
    list.push_back(integers({2, 600, 300, 3, 5}, 20000, 6, {2, 1, 1, 3, 3}));
    list.push_back(integers({70, 900}, 20000, 5, {1, 20}));
    list.push_back(integers({3000, 4000, 5000}, 20000, 1));
    list.push_back(integers({4, 5, 6, 7, 8, 9}, 20000, 1));
    list.push_back(integers({3, 400, 500}, 60000, 1));  // roots with more nonzeros than a chunk
    list.push_back(integers({30, 3, 900}, 60000, 6, {1, 1, 20}));
    return list;
  }();
  return all;
}

class SweepFormats : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Both, SweepFormats, testing::Values("sweep", "sweep-two"),
                         [](const auto& given) { return std::string(given.param) == "sweep" ? "One" : "Two"; });

#ifdef POLYAD_SANITIZED
constexpr std::uint64_t many_columns = 12;  // the oracle takes long there
#else
constexpr std::uint64_t many_columns = 40;
#endif

TEST_P(SweepFormats, KeptProductsFollowTheFactorsThatChange) {
  for (const CooTensor& x : shapes())
    for (const std::uint64_t rank : {std::uint64_t{3}, many_columns}) {
      const std::string shape = fmt::format("{} rank {}", fmt::join(x.dims, "x"), rank);
      for (const int threads : {1, 3}) {
        Context context;
        context.threads = threads;
        Tensor tensor = build(x, GetParam(), {}, context);
        std::vector<FactorMatrix<double>> factors = integer_factors(x, rank, 0);
        Workspace workspace;
        workspace.keep_products();
        for (std::uint64_t sweep = 0; sweep < 2; ++sweep)
          for (int mode = 0; mode < x.order(); ++mode) {
            FactorMatrix<double> out(context, x.dims[static_cast<std::size_t>(mode)], rank);
            (void)mttkrp<double>(tensor, factors, mode, out, workspace, context, "mttkrp/sweep/two-pass");
            expect_same(out, oracle::mttkrp(x, factors, mode), fmt::format("{}, mode {}", shape, mode + 1));
            if (HasFatalFailure()) return;
            // The mode's factor becomes another one, as in CP-ALS.
            const auto at = static_cast<std::size_t>(mode);
            factors[at] = integer_factor(x, at, rank, sweep * 10 + at + 1);
            workspace.changed(mode);
          }
      }
    }
}

TEST(Sweep, TwoHasACopySortedByItsLeafMode) {
  const CooTensor& x = shapes()[3];
  const Tensor tensor = build(x, "sweep-two");
  const auto* sweep = get_if<Sweep>(tensor.body(0));
  ASSERT_TRUE(sweep->leaf_copy);
  ASSERT_EQ(sweep->split.leaves.size(), 1U);
  EXPECT_EQ(sweep->leaf_copy->tiling.mode, sweep->split.leaves[0]);
  EXPECT_EQ(sweep->leaf_copy->shape().nnz, x.nnz());
  EXPECT_FALSE(get_if<Sweep>(build(x, "sweep").body(0))->leaf_copy);
  for (const int leaf : {0, 3})
    EXPECT_EQ(get_if<Sweep>(build(x, "sweep-two", {.leaf_modes = {leaf}}).body(0))->leaf_copy->tiling.mode, leaf);
  EXPECT_THROW((void)build(x, "sweep-two", {.leaf_modes = {1, 2}}), Error);
}

TEST(Sweep, TakesTheLeavesItIsTold) {
  const CooTensor& x = shapes()[3];  // of 300, 8, 9 and 200
  const std::vector<FactorMatrix<double>> factors = integer_factors(x, 8, 0);
  for (const std::vector<int>& leaves : std::vector<std::vector<int>>{{0}, {1, 2}, {3}, {3, 0}, {1, 2, 3}}) {
    FormatOptions options;
    options.leaf_modes = leaves;
    Tensor tensor = build(x, "sweep", options);
    EXPECT_EQ(get_if<Sweep>(tensor.body(0))->split.leaves, leaves);
    Workspace workspace;
    for (int mode = 0; mode < x.order(); ++mode) {
      FactorMatrix<double> out(Context{}, x.dims[static_cast<std::size_t>(mode)], 8);
      (void)mttkrp<double>(tensor, factors, mode, out, workspace, {}, "mttkrp/sweep/two-pass");
      expect_same(out, oracle::mttkrp(x, factors, mode),
                  fmt::format("leaves {}, mode {}", fmt::join(leaves, "+"), mode + 1));
    }
  }
  // Not neighbours, not of this tensor, all of them, too many rows.
  for (const std::vector<int>& leaves : std::vector<std::vector<int>>{{0, 2}, {4}, {-1}, {0, 1, 2, 3}, {0, 1, 2}}) {
    FormatOptions options;
    options.leaf_modes = leaves;
    if (leaves == std::vector{0, 1, 2}) {
      EXPECT_NO_THROW((void)build(x, "sweep", options));  // 21,600 leaves
      EXPECT_THROW((void)build(shapes()[6], "sweep", {.leaf_modes = {0, 1}}), Error);
    } else {
      EXPECT_THROW((void)build(x, "sweep", options), Error) << fmt::format("{}", fmt::join(leaves, ", "));
    }
  }
}

TEST(Sweep, WhatThePlannerFoundIsWhatIsBuilt) {
  for (const CooTensor& x : shapes()) {
    const Choice choice = choose_format(x, 16, {}, std::numeric_limits<double>::infinity());
    if (!choice.format.starts_with("sweep")) continue;
    const Tensor told = build(x, choice.format, options_for(choice, 16));
    EXPECT_EQ(get_if<Sweep>(told.body(0))->split.leaves, choice.leaf_modes);
    EXPECT_EQ(told.bytes(), build(x, choice.format).bytes());
  }
}

TEST(Sweep, NothingIsKeptWithoutAPromise) {
  const CooTensor& x = shapes()[0];
  Tensor tensor = build(x, "sweep");
  Workspace workspace;
  FactorMatrix<double> out(Context{}, x.dims[0], 8);
  for (const std::uint64_t salt : {0U, 1U, 2U}) {
    const std::vector<FactorMatrix<double>> factors = integer_factors(x, 8, salt);
    (void)mttkrp<double>(tensor, factors, 0, out, workspace);
    expect_same(out, oracle::mttkrp(x, factors, 0), fmt::format("salt {}", salt));
    if (HasFatalFailure()) return;
  }
}

TEST(Sweep, AnotherTensorsProductsAreNotTaken) {
  const CooTensor& x = shapes()[0];
  CooTensor y = clone(x);
  for (double& v : std::get<Buffer<double>>(y.values)) v *= 2;
  Workspace workspace;
  workspace.keep_products();
  const std::vector<FactorMatrix<double>> factors = integer_factors(x, 8, 0);
  FactorMatrix<double> out(Context{}, x.dims[0], 8);
  for (const CooTensor* t : std::vector<const CooTensor*>{&x, &y}) {
    Tensor tensor = build(*t, "sweep");
    for (int round = 0; round < 2; ++round) {
      (void)mttkrp<double>(tensor, factors, 0, out, workspace);
      expect_same(out, oracle::mttkrp(*t, factors, 0), fmt::format("round {}", round));
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Sweep, WhateverTheMemoryItIsRightAndWithinTheLimit) {
  for (const CooTensor* x : std::vector<const CooTensor*>{&shapes()[0], &shapes()[3], &shapes()[4]}) {
    Context context;
    context.threads = 2;
    Tensor tensor = build(*x, "sweep", {}, context);
    const std::vector<FactorMatrix<double>> factors = integer_factors(*x, 16, 0);
    std::vector<oracle::Dense> want;
    std::vector<FactorMatrix<double>> out;
    for (int mode = 0; mode < x->order(); ++mode) {
      want.push_back(oracle::mttkrp(*x, factors, mode));
      out.emplace_back(context, x->dims[static_cast<std::size_t>(mode)], 16);
    }
    for (std::uint64_t limit = 30000; limit < 30'000'000; limit += limit / 4) {
      Context tight = context;
      tight.memory = std::make_shared<MemoryBudget>(limit);
      Workspace workspace;
      workspace.keep_products();
      for (int mode = 0; mode < x->order(); ++mode) {
        const auto at = static_cast<std::size_t>(mode);
        (void)mttkrp<double>(tensor, factors, mode, out[at], workspace, tight);
        expect_same(out[at], want[at], fmt::format("mode {} within {} bytes", mode + 1, limit));
        if (HasFatalFailure()) return;
      }
      EXPECT_LE(tight.memory->peak(), limit);
    }
  }
}

TEST(Sweep, AnotherNumberOfThreadsFindsNothingStale) {
  const CooTensor& x = shapes()[3];  // merged leaves
  Context context;
  Tensor tensor = build(x, "sweep", {}, context);
  const std::vector<FactorMatrix<double>> factors = integer_factors(x, 8, 0);
  Workspace workspace;
  workspace.keep_products();
  for (const int threads : {1, 4, 2, 3, 1})
    for (int mode = 0; mode < x.order(); ++mode) {
      context.threads = threads;
      FactorMatrix<double> out(context, x.dims[static_cast<std::size_t>(mode)], 8);
      (void)mttkrp<double>(tensor, factors, mode, out, workspace, context);
      expect_same(out, oracle::mttkrp(x, factors, mode), fmt::format("{} threads, mode {}", threads, mode + 1));
      if (HasFatalFailure()) return;
    }
}

TEST(Sweep, AnInfinityStaysWithItsNonzeros) {
  // Modes 2 and 3 are merged; row 1 of mode 3 is infinite and meets index 0 of mode 2 nowhere.
  CooTensor x = integers({50, 3, 4}, 500, 1);
  auto& second = std::get<Buffer<std::uint32_t>>(x.indices[1]);
  auto& third = std::get<Buffer<std::uint32_t>>(x.indices[2]);
  for (std::uint64_t k = 0; k < x.nnz(); ++k)
    if (second[k] == 0 && third[k] == 1) second[k] = 2;
  x.sorted_by.clear();
  x.duplicates_merged = false;
  std::vector<FactorMatrix<double>> factors = integer_factors(x, 4, 0);
  for (std::uint64_t r = 0; r < 4; ++r) factors[2](1, r) = std::numeric_limits<double>::infinity();
  Tensor tensor = build(x, "sweep");
  Workspace workspace;
  FactorMatrix<double> out(Context{}, 3, 4);
  (void)mttkrp<double>(tensor, factors, 1, out, workspace);
  for (std::uint64_t r = 0; r < 4; ++r) EXPECT_TRUE(std::isfinite(out(0, r))) << out(0, r);
}

TEST(Sweep, FibresAreArrangedByLength) {
  for (const CooTensor& x : shapes()) {
    const Sweep s = Sweep::build(x, {}, false, {});
    std::uint64_t fibres = 0;
    EXPECT_EQ(s.begin[0], 0U);
    EXPECT_EQ(s.begin[s.chunks()], x.nnz());
    for (std::uint64_t c = 0; c < s.chunks(); ++c) {
      std::uint64_t nonzeros = 0;
      for (std::size_t l = 0; l < s.lengths[c].size(); ++l) {
        nonzeros += s.lengths[c][l] * (l + 1);
        fibres += s.lengths[c][l];
      }
      EXPECT_EQ(nonzeros, s.begin[c + 1] - s.begin[c]);
      EXPECT_GT(nonzeros, 0U);
      EXPECT_LT(nonzeros, 2 * Sweep::chunk_nonzeros);
      if (c > 0) {
        EXPECT_LE(s.roots[c - 1].last, s.roots[c].first);
        if (s.roots[c - 1].last == s.roots[c].first) {
          EXPECT_TRUE(s.is_cut(c - 1) && s.is_cut(c));
        }
      }
      if (s.is_cut(c)) {
        EXPECT_EQ(s.roots[c].first, s.roots[c].last) << "a piece of one root and nothing else";
      }
    }
    EXPECT_EQ(fibres, s.fibres());
    EXPECT_EQ(s.split.leaves.size() + s.split.fibres.size(), x.dims.size());
    const double predicted = predict_storage(x, {}, "sweep").bytes;
    EXPECT_NEAR(predicted, static_cast<double>(s.bytes()), 0.12 * predicted + 512)
        << fmt::format("{}", fmt::join(x.dims, "x"));
  }
}

/// Fibres of every length up to 130, several chunks of them.
CooTensor fibres_of_all_lengths(Precision precision) {
  constexpr std::uint64_t fibres = 900;
  const auto length = [](std::uint64_t f) { return 1 + f * 37 % 130; };
  std::uint64_t nnz = 0;
  for (std::uint64_t f = 0; f < fibres; ++f) nnz += length(f);
  CooTensor x = make_coo({fibres / 9, 9, 130}, nnz, precision, {});
  visit(x, [&]<class Index, class Value>(const CooView<Index, Value>& v) {
    std::uint64_t z = 0;
    for (std::uint64_t f = 0; f < fibres; ++f)
      for (std::uint64_t k = 0; k < length(f); ++k, ++z) {
        v.indices[0][z] = static_cast<Index>(f / 9);
        v.indices[1][z] = static_cast<Index>(f % 9);
        v.indices[2][z] = static_cast<Index>(k);
        v.values[z] = static_cast<Value>(z);
      }
  });
  return x;
}

TEST(Sweep, EveryNonzeroStaysInItsFibre) {
  for (const Precision precision : {Precision::f32, Precision::f64})
    for (const bool sorted : {true, false}) {
      CooTensor x = fibres_of_all_lengths(precision);
      if (!sorted) sort_nonzeros(x, std::vector<int>{2, 1, 0}, {});
      FormatOptions options;
      options.leaf_modes = {2};
      const Sweep s = Sweep::build(x, options, false, {});
      ASSERT_EQ(s.split.fibres, (std::vector<int>{0, 1}));
      const auto& leaves = std::get<Buffer<std::uint16_t>>(s.leaves);
      const auto value = [&](std::uint64_t z) {
        return std::visit([&](const auto& values) { return static_cast<double>(values[z]); }, s.values);
      };
      const auto id = [&](std::size_t h, std::uint64_t f) {
        return std::uint64_t{std::get<Buffer<std::uint16_t>>(s.ids[h])[f]};
      };
      using Nonzero = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, double>;
      std::vector<Nonzero> found;
      std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<std::size_t>> pieces;
      std::uint64_t fibre = 0;
      for (std::uint64_t c = 0; c < s.chunks(); ++c)
        for (std::size_t length = 1; length <= Sweep::longest_fibre; ++length)
          for (int k = 0; k < s.lengths[c][length - 1]; ++k, ++fibre) {
            pieces[{id(0, fibre), id(1, fibre)}].push_back(length);
            for (std::size_t i = 0; i < length; ++i) {
              const std::uint64_t z = found.size();
              found.emplace_back(id(0, fibre), id(1, fibre), leaves[z], value(z));
            }
          }
      std::ranges::sort(found);
      std::vector<Nonzero> expected;
      const CooTensor as_made = fibres_of_all_lengths(precision);
      for (std::uint64_t z = 0; z < as_made.nnz(); ++z)
        expected.emplace_back(as_made.index(0, z), as_made.index(1, z), as_made.index(2, z), as_made.value(z));
      EXPECT_TRUE(found == expected);
      // No fibre is in more pieces than its length, or the end of a chunk, makes necessary.
      std::size_t more = 0;
      for (auto& [ids, lengths] : pieces) {
        std::size_t sum = 0;
        for (const std::size_t l : lengths) sum += l;
        more += lengths.size() - (sum + Sweep::longest_fibre - 1) / Sweep::longest_fibre;
      }
      EXPECT_LE(more, s.chunks());
    }
}

}  // namespace
}  // namespace polyad
