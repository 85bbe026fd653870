// SPDX-License-Identifier: MIT
/// \file A small run of every device kernel, for test_oclgrind.py: enough nonzeros that two groups share rows, few
/// enough for an interpreter that looks at every byte.
#include <gtest/gtest.h>

#include <cmath>

#include "backends/gpu/device.hpp"
#include "device/device_cases.hpp"
#include "device/whole_writes.hpp"

namespace polyad {
namespace {

/// A heavy slice, slices of single fibres, slices of single nonzeros: all three groups of HB-CSF. Outputs of 4 columns
/// fill their memory to the last byte, and the last row of each mode is there.
cases::Case three_kinds(std::uint64_t nnz = 2600) {
  cases::Case c;
  c.name = "three kinds of slices";
  c.dims = {96, 40, 48};
  c.nnz = nnz;
  c.draw = [](cases::Dice& d, std::uint64_t k, auto& at) {
    if (k < 36) {
      at = {60 + k, k, k};
    } else if (k < 36 + 84) {
      at = {32 + (k - 36) / 3, k % 40, k % 48};
    } else {
      at = {d.below(10) < 8 ? 7 : d.below(32), d.below(40), d.below(48)};
    }
    if (k == 35) at = {95, 39, 47};
  };
  return c;
}

template <class T>
void run(const CooTensor& x, std::string_view format, int modes, const Context& context, device_cases::Count& count) {
  const std::vector<oracle::Dense> dense = cases::whole_number_factors(x.dims, 3);
  const std::vector<FactorMatrix<T>> factors = cases::as_factors<T>(dense);
  Tensor t = build(x, format, {}, context);
  Workspace workspace;
  for (int mode = 0; mode < modes; ++mode)
    for (const KernelEntry& kernel : device_cases::device_mttkrps()) {
      try {
        static_cast<void>(mttkrp_choice(t, mode, 3, context, kernel.name));
      } catch (const Error&) {
        continue;
      }
      FactorMatrix<T> out(Context{}, x.dims[static_cast<std::size_t>(mode)], 3);
      mttkrp<T>(t, std::span<const FactorMatrix<T>>(factors), mode, out, workspace, context, kernel.name);
      const oracle::Dense want = oracle::mttkrp(x, dense, mode);
      std::uint64_t wrong = 0;
      for (std::uint64_t i = 0; i < want.rows; ++i)
        for (std::uint64_t r = 0; r < 3; ++r) wrong += static_cast<double>(out(i, r)) != want(i, r);
      EXPECT_EQ(wrong, 0U) << kernel.name << ", mode " << mode + 1;
      ++count.runs;
      count.kernels.emplace(kernel.name);
    }
}

Context watched_context(bool deterministic) {
  Context context;
  context.threads = 1;
  context.devices = open_devices("opencl:0");
  context.deterministic = deterministic;
  return context;
}

/// \param whole for Oclgrind's record of what was written
void run_every_kernel(std::uint64_t nnz, bool whole) {
  device_cases::Count count;
  const CooTensor x = cases::make(three_kinds(nnz), Precision::f32);
  for (const bool deterministic : {false, true}) {
    Context context = watched_context(deterministic);
    if (whole) context.devices[0] = std::make_shared<test::WholeWrites>(context.devices[0]);
    for (const char* format : {"coo-perm", "b-csf", "hb-csf", "f-coo", "csf-all"})
      run<float>(x, format, 1, context, count);
    if (deterministic) continue;
    for (const char* format : {"coo", "hicoo", "stream"}) run<float>(x, format, 1, context, count);
    run<float>(x, "csf-one", 3, context, count);
    const CooTensor doubles = cases::make(three_kinds(nnz), Precision::f64);
    for (const char* format : {"coo", "f-coo"}) run<double>(doubles, format, 1, context, count);
    const cases::Case four{"order 4", {8, 8, 8, 8}, nnz};
    run<float>(cases::make(four, Precision::f32), "csf-one", 4, context, count);
  }
  fmt::print("{} MTTKRPs of {} kernels on {}\n", count.runs, count.kernels.size(),
             watched_context(false).devices[0]->facts().description);
  EXPECT_EQ(count.kernels.size(), device_cases::device_mttkrps().size());
  EXPECT_GE(count.runs, 20);
}

/// The dense part of CP-ALS: several groups of rows, a rank that fills a tile and one of two tiles.
void run_dense_rows(bool whole) {
  Context context = watched_context(false);
  if (whole) context.devices[0] = std::make_shared<test::WholeWrites>(context.devices[0]);
  Tensor t = build(cases::make(cases::Case{"rows", {130, 5, 3}, 150}, Precision::f32), "f-coo", {}, context);
  int runs = 0;
  for (const std::uint64_t rank : {3, 20}) {
    CpAlsOptions options;
    options.rank = rank;
    options.iterations = 1;
    options.dense = "device";
    const CpAlsResult result = cp_als(t, options, context);
    EXPECT_TRUE(std::isfinite(result.fit));
    EXPECT_EQ(result.dense, std::vector<std::string_view>(3, "device"));
    ++runs;
  }
  fmt::print("{} decompositions of 3 kernels on {}\n", runs, context.devices[0]->facts().description);
}

TEST(Watched, DenseRows) { run_dense_rows(false); }

TEST(Watched, UninitialisedRows) { run_dense_rows(true); }

TEST(Watched, EveryKernel) { run_every_kernel(2600, false); }

TEST(Watched, Uninitialised) { run_every_kernel(200, true); }

/// Where faults are planted: the seams.
void run_seams(std::uint64_t nnz, bool whole) {
  device_cases::Count count;
  Context context = watched_context(false);
  if (whole) context.devices[0] = std::make_shared<test::WholeWrites>(context.devices[0]);
  run<float>(cases::make(three_kinds(nnz), Precision::f32), "b-csf", 1, context, count);
  EXPECT_EQ(count.runs, 1);
}

TEST(Watched, Seams) { run_seams(2600, false); }

TEST(Watched, SeamsWhole) { run_seams(200, true); }

}  // namespace
}  // namespace polyad
