// SPDX-License-Identifier: MIT
#include "formats/merged/merged.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <polyad/polyad.hpp>

#include "matrix/cases.hpp"
#include "oracle/kernel_oracle.hpp"

namespace polyad {
namespace {

using Groups = std::vector<std::vector<int>>;

/// Whole numbers: sums are exact in any order.
CooTensor integer_tensor(const std::vector<std::uint64_t>& dims, std::uint64_t nnz,
                         Precision precision = Precision::f64) {
  CooTensor x = cases::make({"", dims, nnz, nullptr, false}, precision);
  visit(x, [&]<class Index, class Stored>(const CooView<Index, Stored>& v) {
    for (std::uint64_t k = 0; k < v.nnz; ++k) v.values[k] = static_cast<Stored>(k % 5) - 2;
  });
  return x;
}

/// Dims whose groups differ: in front, in the middle, behind, two of them, all but one, none, a mode of length 1.
const std::vector<std::vector<std::uint64_t>>& dims_to_merge() {
  static const std::vector<std::vector<std::uint64_t>> all = {
      {12, 9, 300, 400},  {400, 7, 11, 300},         {300, 400, 6, 5}, {8, 9, 500, 6, 7}, {20, 30, 40},
      {5000, 6000, 7000}, {3, 4, 5, 6, 700, 2, 900}, {50, 1, 60, 800}, {900, 40},
  };
  return all;
}

Groups groups_of(const std::vector<std::uint64_t>& dims, std::uint64_t nnz, std::uint64_t rank = 16) {
  CooTensor x = make_coo(dims, nnz, Precision::f64, Context{});
  return ModeGroups::choose(x, rank).modes;
}

TEST(ModeGroups, TheFewestCombinationsAreMergedFirst) {
  EXPECT_EQ(groups_of({183, 24, 1140, 1717}, 100000), (Groups{{0, 1}, {2}, {3}}));
  EXPECT_EQ(groups_of({165000, 11000, 2, 100, 89}, 100000), (Groups{{0}, {1}, {2, 3, 4}}));
  EXPECT_EQ(groups_of({300, 30, 20, 200}, 100000), (Groups{{0}, {1, 2}, {3}}));
  EXPECT_EQ(groups_of({6000, 5700, 244000, 1200}, 100000), (Groups{{0}, {1}, {2}, {3}}));
}

TEST(ModeGroups, TablesStayNear) {
  EXPECT_EQ(groups_of({183, 24, 1140, 1717}, 100000, 64), (Groups{{0, 1}, {2}, {3}}));  // 2.2 MB
  EXPECT_EQ(groups_of({183, 24, 1140, 1717}, 100000, 128), (Groups{{0}, {1}, {2}, {3}}));
  EXPECT_EQ(groups_of({183, 24, 1140, 1717}, 8000), (Groups{{0}, {1}, {2}, {3}}));  // a table would cost more
  EXPECT_EQ(groups_of({300, 300, 7}, 300000, 1), (Groups{{0}, {1, 2}}));
  EXPECT_EQ(groups_of({2, 3, 4, 5}, 100), (Groups{{0, 1}, {2, 3}}));  // two are left
  EXPECT_EQ(groups_of({40, 50}, 1000), (Groups{{0}, {1}}));
  EXPECT_EQ(groups_of({2, 3, 4}, 100, std::uint64_t{1} << 61U), (Groups{{0}, {1}, {2}}));
  EXPECT_EQ(groups_of({2, 3, 4}, 0), (Groups{{0}, {1}, {2}}));
  const std::uint64_t huge = ~std::uint64_t{0};
  EXPECT_EQ(groups_of({huge, huge, 5, 6}, 1000), (Groups{{0}, {1}, {2, 3}}));
}

TEST(ModeGroups, IndicesAreDigits) {
  const CooTensor x = integer_tensor({8, 9, 500, 6, 7}, 400);
  const ModeGroups groups = ModeGroups::choose(x, 16);
  ASSERT_EQ(groups.modes, (Groups{{0, 1}, {2}, {3, 4}}));
  EXPECT_EQ(groups.dims, (std::vector<std::uint64_t>{72, 500, 42}));
  for (int m = 0; m < 5; ++m) {
    EXPECT_EQ(groups.of_mode(m), (std::vector<int>{0, 0, 1, 2, 2}[static_cast<std::size_t>(m)]));
    EXPECT_EQ(groups.position(m), (std::vector<int>{0, 1, 0, 0, 1}[static_cast<std::size_t>(m)]));
  }
  const CooTensor merged = merge_modes(x, groups, {});
  for (std::uint64_t k = 0; k < x.nnz(); ++k) {
    ASSERT_EQ(merged.index(0, k), x.index(0, k) * 9 + x.index(1, k));
    ASSERT_EQ(merged.index(1, k), x.index(2, k));
    ASSERT_EQ(merged.index(2, k), x.index(3, k) * 7 + x.index(4, k));
    ASSERT_EQ(merged.value(k), x.value(k));
  }
}

TEST(Merged, GivesTheCoordinatesBack) {
  for (const auto& dims : dims_to_merge())
    for (const bool wide : {false, true}) {
      CooTensor x = integer_tensor(dims, 5000, wide ? Precision::f32 : Precision::f64);
      if (wide) {  // indices of 64 bits
        x.dims.push_back(std::uint64_t{1} << 33U);
        std::vector<IndexBuffer> indices;
        for (int m = 0; m < x.order(); ++m) {
          Buffer<std::uint64_t> b(Context{}, x.nnz(), "a test");
          for (std::uint64_t k = 0; k < x.nnz(); ++k)
            b[k] = m + 1 < x.order() ? x.index(m, k) : k * 1000003 % x.dims.back();
          indices.emplace_back(std::move(b));
        }
        x.indices = std::move(indices);
        x.sorted_by.clear();
      }
      std::vector<int> order(x.dims.size());
      std::iota(order.begin(), order.end(), 0);
      const Tensor t = build(x, "merged");
      CooTensor back = t.to_coo();
      sort_nonzeros(back, order);
      sort_nonzeros(x, order);
      EXPECT_TRUE(same_nonzeros(x, back)) << "first mode " << dims[0] << ", order " << dims.size();
      EXPECT_EQ(get_if<Merged>(t.body(0))->groups.modes, ModeGroups::choose(x, 16).modes);
    }
}

template <class T>
FactorMatrix<T> integer_matrix(std::uint64_t rows, std::uint64_t rank, std::uint64_t salt) {
  FactorMatrix<T> f(Context{}, rows, rank);
  for (std::uint64_t i = 0; i < rows; ++i)
    for (std::uint64_t r = 0; r < rank; ++r) f(i, r) = static_cast<T>((i * 31 + r * 17 + salt * 7) % 3) - 1;
  return f;
}

/// Modes in turn as in CP-ALS: sums are kept for a group, factors change after every mode.
template <class T>
void expect_merged_sweeps(const std::vector<std::uint64_t>& dims, std::uint64_t rank, int threads, bool keep) {
  const CooTensor x = integer_tensor(dims, 6000, sizeof(T) == 4 ? Precision::f32 : Precision::f64);
  Context context;
  context.threads = threads;
  Tensor merged = build(x, "merged", {.rank = rank}, context);
  std::vector<FactorMatrix<T>> factors;
  std::vector<FactorMatrix<double>> doubles;  // the same, for the oracle
  for (std::size_t m = 0; m < dims.size(); ++m) {
    factors.push_back(integer_matrix<T>(dims[m], rank, m));
    doubles.push_back(integer_matrix<double>(dims[m], rank, m));
  }
  Workspace workspace;
  if (keep) workspace.keep_products();
  for (std::uint64_t sweep = 0; sweep < 2; ++sweep)
    for (int mode = 0; mode < x.order(); ++mode) {
      const auto m = static_cast<std::size_t>(mode);
      FactorMatrix<T> found(context, dims[m], rank);
      std::fill_n(found.data(), found.rows() * found.stride(), T{9});  // what was there must not matter
      (void)mttkrp<T>(merged, factors, mode, found, workspace, context, "mttkrp/merged/groups");
      const oracle::Dense want = oracle::mttkrp(x, doubles, mode);
      for (std::uint64_t i = 0; i < want.rows; ++i)
        for (std::uint64_t r = 0; r < rank; ++r)
          ASSERT_EQ(found(i, r), want(i, r)) << "mode " << mode + 1 << ", row " << i << ", sweep " << sweep;
      factors[m] = integer_matrix<T>(dims[m], rank, m + 10 * sweep + 3);
      doubles[m] = integer_matrix<double>(dims[m], rank, m + 10 * sweep + 3);
      workspace.changed(mode);
    }
}

TEST(Merged, GivesTheMttkrpWhileFactorsChange) {
  for (const auto& dims : dims_to_merge())
    for (const bool keep : {false, true}) {
      expect_merged_sweeps<double>(dims, 16, 2, keep);
      expect_merged_sweeps<float>(dims, 5, 3, keep);
    }
  expect_merged_sweeps<float>(dims_to_merge()[0], 64, 1, true);
  expect_merged_sweeps<double>(dims_to_merge()[3], 33, 7, true);
}

TEST(Merged, SumsOfAGroupAreMadeOnce) {
  // What is kept serves the second mode of the group even if a factor was changed behind the caller's back.
  const CooTensor x = integer_tensor({12, 9, 300, 400}, 6000);
  Tensor merged = build(x, "merged");
  std::vector<FactorMatrix<double>> factors;
  for (std::size_t m = 0; m < 4; ++m) factors.push_back(integer_matrix<double>(x.dims[m], 16, m));
  const oracle::Dense want = oracle::mttkrp(x, factors, 1);
  Workspace workspace;
  workspace.keep_products();
  FactorMatrix<double> first(Context{}, 12, 16);
  FactorMatrix<double> second(Context{}, 9, 16);
  (void)mttkrp<double>(merged, factors, 0, first, workspace);
  const auto differs = [&] {
    (void)mttkrp<double>(merged, factors, 1, second, workspace);
    for (std::uint64_t i = 0; i < 9; ++i)
      if (!std::equal(second.row(i), second.row(i) + 16, want.values.data() + i * 16)) return true;
    return false;
  };
  std::fill_n(factors[2].data(), factors[2].rows() * factors[2].stride(), 1.0);
  EXPECT_FALSE(differs());
  workspace.changed(2);
  EXPECT_TRUE(differs());
}

TEST(Merged, RowsThatNoNonzeroUsesDoNotMatter) {
  CooTensor x = integer_tensor({12, 9, 300, 400}, 6000);
  auto& first = std::get<Buffer<std::uint32_t>>(x.indices[0]);
  for (std::uint64_t k = 0; k < x.nnz(); ++k) first[k] = first[k] == 5 ? 6 : first[k];
  std::vector<FactorMatrix<double>> factors;
  for (std::size_t m = 0; m < 4; ++m) factors.push_back(integer_matrix<double>(x.dims[m], 16, m));
  std::vector<oracle::Dense> want;
  for (int mode = 0; mode < 4; ++mode) want.push_back(oracle::mttkrp(x, factors, mode));
  std::fill_n(factors[0].row(5), 16, std::numeric_limits<double>::infinity());
  Tensor merged = build(x, "merged");
  ASSERT_TRUE(get_if<Merged>(merged.body(0))->groups.merges());
  Workspace workspace;
  for (int mode = 1; mode < 4; ++mode) {
    FactorMatrix<double> found(Context{}, x.dims[static_cast<std::size_t>(mode)], 16);
    (void)mttkrp<double>(merged, factors, mode, found, workspace);
    for (std::uint64_t i = 0; i < found.rows(); ++i)
      ASSERT_TRUE(
          std::equal(found.row(i), found.row(i) + 16, want[static_cast<std::size_t>(mode)].values.data() + i * 16))
          << "mode " << mode + 1 << ", row " << i;
  }
}

TEST(Merged, IsNotAFormatOfItsOwnWhereNothingIsMerged) {
  const CooTensor x = integer_tensor({5000, 6000, 7000}, 20000);
  const FormatEstimate merged = estimate_format(x, "merged", 16);
  EXPECT_TRUE(merged.repeats);
  EXPECT_EQ(merged.why, "no modes to merge: the same as tiles");
  const CooTensor short_modes = integer_tensor({12, 9, 300, 400}, 20000);
  EXPECT_FALSE(estimate_format(short_modes, "merged", 16).repeats);
  EXPECT_NE(estimate_format(short_modes, "merged", 16).why.find("modes 1+2 merged"), std::string::npos);
}

TEST(Merged, WithoutRoomForItsTablesRowsAreAddedToByTheirOwners) {
  const CooTensor x = integer_tensor({8, 9, 500, 6, 7}, 6000);
  Context context;
  context.memory = std::make_shared<MemoryBudget>(std::uint64_t{64} << 20U);
  Tensor merged = build(x, "merged", {}, context);
  std::vector<FactorMatrix<double>> factors;
  for (std::size_t m = 0; m < 5; ++m) factors.push_back(integer_matrix<double>(x.dims[m], 16, m));
  const oracle::Dense want = oracle::mttkrp(x, factors, 0);
  FactorMatrix<double> found(Context{}, 8, 16);
  // Sums of 72 rows and a table of 42: room for each of them, not for both.
  const std::uint64_t left = 10000;
  context.memory->take(context.memory->limit() - context.memory->used() - left, "a test");
  Workspace workspace;
  (void)mttkrp<double>(merged, factors, 0, found, workspace, context);
  for (std::uint64_t i = 0; i < 8; ++i)
    EXPECT_TRUE(std::equal(found.row(i), found.row(i) + 16, want.values.data() + i * 16)) << "row " << i;
  context.deterministic = true;  // then it does not depend on what is left how sums are made
  EXPECT_THROW((void)mttkrp<double>(merged, factors, 0, found, workspace, context), Error);
}

TEST(Merged, IndicesThatAreStoredWiderThanTheyNeedBe) {
  const CooTensor x = integer_tensor({12, 9, 3000, 4000}, 60000);
  CooTensor wide = make_coo(x.dims, x.nnz(), Precision::f64, IndexWidth::u64, Context{});
  for (int m = 0; m < 4; ++m)
    for (std::uint64_t k = 0; k < x.nnz(); ++k)
      std::get<Buffer<std::uint64_t>>(wide.indices[static_cast<std::size_t>(m)])[k] = x.index(m, k);
  for (std::uint64_t k = 0; k < x.nnz(); ++k) std::get<Buffer<double>>(wide.values)[k] = x.value(k);
  for (const char* format : {"merged", "tiles", "copies", "sweep-two"}) {
    const FormatOptions options{.tile_bytes = 30000};  // cut
    const Tensor from_wide = build(wide, format, options);
    const Tensor from_narrow = build(x, format, options);
    EXPECT_TRUE(same_nonzeros(from_wide.to_coo(), from_narrow.to_coo())) << format;
  }
}

TEST(Merged, TheEstimateKeepsTheMemoryLimit) {
  const CooTensor x = integer_tensor({12, 9, 300, 400}, 200000);
  Context context;
  context.memory = std::make_shared<MemoryBudget>(100000);
  EXPECT_EQ(estimate_format(x, "merged", 16, context).repeats, true);
}

}  // namespace
}  // namespace polyad
