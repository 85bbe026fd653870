// SPDX-License-Identifier: MIT
/// \file Rows that the caller takes while an MTTKRP is under way: each once, complete, and what becomes of them serves
/// the modes after.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <polyad/polyad.hpp>

#include "oracle/kernel_oracle.hpp"

namespace polyad {
namespace {

/// Small whole numbers: sums are exact in any order.
FactorMatrix<double> small_numbers(std::uint64_t rows, std::uint64_t rank, std::uint64_t salt) {
  FactorMatrix<double> factor(Context{}, rows, rank);
  for (std::uint64_t i = 0; i < rows; ++i)
    for (std::uint64_t r = 0; r < rank; ++r) factor(i, r) = static_cast<double>((i * 7 + r * 3 + salt * 5) % 5) - 2;
  return factor;
}

CooTensor whole_tensor(const std::vector<std::uint64_t>& dims, std::uint64_t nnz, double burst) {
  GenerateOptions options;
  options.dims = dims;
  options.nnz = nnz;
  options.burst = burst;
  options.widths.assign(dims.size(), 3);
  CooTensor x = generate(options);
  auto& values = std::get<Buffer<double>>(x.values);
  for (std::uint64_t k = 0; k < x.nnz(); ++k) values[k] = static_cast<double>(k % 5) - 2;
  return x;
}

/// Remembers what came, and puts other rows in the place of the factor's.
class Replacing final : public RowUpdate<double> {
 public:
  Replacing(FactorMatrix<double>& factor, FactorMatrix<double> replacement, int next)
      : factor_(factor),
        replacement_(std::move(replacement)),
        found_(Context{}, factor.rows(), factor.cols()),
        times_(factor.rows()) {
    next_mode = next;
  }

  [[nodiscard]] std::uint64_t most_parts() const override { return 1000; }
  void begin(std::uint64_t parts) override { busy_ = std::vector<std::atomic<int>>(parts); }
  void take(std::uint64_t part, std::uint64_t begin, std::uint64_t end, double* rows) override {
    EXPECT_EQ(busy_.at(part).fetch_add(1), 0) << "one call of a part at a time";
    for (std::uint64_t i = begin; i < end; ++i) {
      ++times_.at(i);
      const double* from = rows + (i - begin) * found_.stride();
      std::copy(from, from + found_.stride(), found_.row(i));
      std::copy(replacement_.row(i), replacement_.row(i) + found_.stride(), factor_.row(i));
    }
    busy_.at(part).fetch_sub(1);
  }
  [[nodiscard]] const FactorMatrix<double>& factor() const override { return factor_; }

  [[nodiscard]] const FactorMatrix<double>& found() const { return found_; }
  [[nodiscard]] const std::vector<int>& times() const { return times_; }

 private:
  FactorMatrix<double>& factor_;
  FactorMatrix<double> replacement_;
  FactorMatrix<double> found_;
  std::vector<int> times_;  // per row
  std::vector<std::atomic<int>> busy_;
};

/// Sweeps over the modes; every factor is replaced while its MTTKRP is under way.
void expect_right(const CooTensor& x, std::string_view format, std::uint64_t rank, int threads, bool in_place,
                  std::uint64_t sweeps = 2) {
  const std::string what = fmt::format("{} {} rank {}, {} threads", format, fmt::join(x.dims, "x"), rank, threads);
  Context context;
  context.threads = threads;
  // Tiles of a few rows: small tensors are cut too.
  Tensor tensor = build(x, format, {.tile_bytes = 16384}, context);
  std::vector<FactorMatrix<double>> factors;
  for (const std::uint64_t d : x.dims) factors.push_back(small_numbers(d, rank, 0));
  Workspace workspace;
  workspace.keep_products();
  for (std::uint64_t sweep = 0; sweep < sweeps; ++sweep)
    for (int mode = 0; mode < x.order(); ++mode) {
      const auto at = static_cast<std::size_t>(mode);
      const oracle::Dense want = oracle::mttkrp(x, factors, mode);
      FactorMatrix<double> out(context, x.dims[at], rank);
      FactorMatrix<double>& place = in_place ? out : factors[at];
      Replacing update(place, small_numbers(x.dims[at], rank, sweep * 10 + at + 1), (mode + 1) % x.order());
      (void)mttkrp<double>(tensor, factors, mode, out, workspace, context, {}, &update);
      workspace.changed(mode);
      if (in_place) factors[at] = std::move(out);
      for (std::uint64_t i = 0; i < want.rows; ++i) {
        const double* row = update.found().row(i);
        if (update.times()[i] != 1 || !std::equal(row, row + rank, want.values.data() + i * rank))
          FAIL() << what << ", mode " << mode + 1 << ", row " << i << " came " << update.times()[i] << " times";
      }
    }
}

class RowsOfAnMttkrp : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Formats, RowsOfAnMttkrp,
                         testing::Values("coo", "copies", "tiles", "merged", "sweep", "sweep-two", "csf-all", "alto",
                                         "hicoo"),
                         [](const auto& given) {
                           std::string name = given.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST_P(RowsOfAnMttkrp, ComeOnceAndServeTheModesAfter) {
  for (const int threads : {1, 3}) {
    expect_right(whole_tensor({60, 70, 500}, 20000, 20), GetParam(), 5, threads, true);
    expect_right(whole_tensor({500, 70, 60}, 20000, 20), GetParam(), 16, threads, false);
    expect_right(whole_tensor({70, 500, 60}, 20000, 20), GetParam(), 8, threads, true);
    expect_right(whole_tensor({3, 400, 500}, 60000, 1), GetParam(), 4, threads, true);  // roots cut in pieces
    expect_right(whole_tensor({40, 50, 60, 70}, 20000, 1), GetParam(), 4, threads, true);
    expect_right(whole_tensor({20, 900}, 5000, 4), GetParam(), 4, threads, true);
    if (HasFatalFailure()) return;
  }
}

TEST(RowUpdate, SumsPerFibreAreNotKeptForOneSweep) {
  // The two modes of the fibres share a gather as soon as the caller names the next mode; in CP-ALS' first sweep it
  // does not, and then the nonzeros are gathered twice.
  const CooTensor x = whole_tensor({300, 200, 5000}, 60000, 20);
  const std::uint64_t rank = 16;
  const auto bytes_after_first_two_modes = [&](bool takes_rows, bool fixed_leaves = false) {
    const Context context;
    Tensor tensor = build(x, "sweep", {.leaf_modes = {2}}, context);
    std::vector<FactorMatrix<double>> factors;
    for (const std::uint64_t d : x.dims) factors.push_back(small_numbers(d, rank, 0));
    Workspace workspace;
    workspace.keep_products();
    if (fixed_leaves) workspace.set_fixed(2);
    for (int mode = 0; mode < 2; ++mode) {
      const auto at = static_cast<std::size_t>(mode);
      const oracle::Dense want = oracle::mttkrp(x, factors, mode);
      FactorMatrix<double> out(context, x.dims[at], rank);
      Replacing update(factors[at], small_numbers(x.dims[at], rank, at + 1), -1);
      (void)mttkrp<double>(tensor, factors, mode, out, workspace, context, {}, takes_rows ? &update : nullptr);
      workspace.changed(mode);
      for (std::uint64_t i = 0; i < want.rows; ++i) {
        const double* row = takes_rows ? update.found().row(i) : out.row(i);
        EXPECT_TRUE(std::equal(row, row + rank, want.values.data() + i * rank)) << "mode " << mode + 1 << ", row " << i;
      }
    }
    return workspace.bytes();
  };
  const std::uint64_t products = statistics(x).modes[2].fibres.count * rank * sizeof(double);
  EXPECT_GE(bytes_after_first_two_modes(false), products);
  EXPECT_LT(bytes_after_first_two_modes(true), products / 2);
  EXPECT_GE(bytes_after_first_two_modes(true, true), products);  // they serve all sweeps
}

TEST(RowUpdate, RowsOfLargeOutputsComeFromMemoryNearby) {
  // Outputs of 64 MB and more: rows of chunks are summed elsewhere, and empty ones are many.
  const CooTensor x = whole_tensor({140'000, 3, 4}, 30000, 1);
  for (const char* format : {"copies", "sweep"}) expect_right(x, format, 64, 2, true, 1);
}

TEST(RowUpdate, MeasuringLeavesFactorsAsTheyAre) {
  const CooTensor x = whole_tensor({60, 70, 500}, 20000, 20);
  Tensor tensor = build(x, "sweep");
  std::vector<FactorMatrix<double>> factors;
  for (const std::uint64_t d : x.dims) factors.push_back(small_numbers(d, 8, 1));
  Workspace workspace;
  workspace.keep_products();
  for (int round = 0; round < 2; ++round)
    for (int mode = 0; mode < 3; ++mode) {
      const auto at = static_cast<std::size_t>(mode);
      FactorMatrix<double> out(Context{}, x.dims[at], 8);
      FactorStays<double> stays(factors[at], (mode + 1) % 3);
      (void)mttkrp<double>(tensor, factors, mode, out, workspace, {}, {}, &stays);
      workspace.changed(mode);
      const oracle::Dense want = oracle::mttkrp(x, factors, mode);
      for (std::uint64_t i = 0; i < want.rows; ++i)
        for (std::uint64_t r = 0; r < 8; ++r) ASSERT_EQ(out(i, r), want(i, r)) << "mode " << mode + 1;
    }
}

TEST(RowUpdate, WhatWasBegunForTheNextModeIsNotTakenWhenMoreChanged) {
  const CooTensor x = whole_tensor({60, 70, 500}, 20000, 20);
  Tensor tensor = build(x, "sweep", {.leaf_modes = {2}});
  std::vector<FactorMatrix<double>> factors;
  for (const std::uint64_t d : x.dims) factors.push_back(small_numbers(d, 8, 1));
  Workspace workspace;
  workspace.keep_products();
  FactorMatrix<double> out(Context{}, x.dims[0], 8);
  FactorStays<double> stays(factors[0], 1);
  (void)mttkrp<double>(tensor, factors, 0, out, workspace, {}, {}, &stays);
  workspace.changed(0);
  factors[0] = small_numbers(x.dims[0], 8, 3);  // as when columns are normalised
  workspace.changed(0);
  FactorMatrix<double> next(Context{}, x.dims[1], 8);
  (void)mttkrp<double>(tensor, factors, 1, next, workspace);
  const oracle::Dense want = oracle::mttkrp(x, factors, 1);
  for (std::uint64_t i = 0; i < want.rows; ++i)
    for (std::uint64_t r = 0; r < 8; ++r) ASSERT_EQ(next(i, r), want(i, r));
}

}  // namespace
}  // namespace polyad
