// SPDX-License-Identifier: MIT
/// \file A small run of every device kernel, for test_oclgrind.py: enough nonzeros that groups share rows.
#include <gtest/gtest.h>

#include <cmath>

#include "backends/gpu/device.hpp"
#include "device/device_cases.hpp"

namespace polyad {
namespace {

TEST(Watched, EveryKernel) {
  Context context;
  context.threads = 1;
  context.devices = open_devices("opencl:0");
  device_cases::Count count;
  // 1500 nonzeros are two groups; the dimensions make outputs of rank 10 fill their memory to the last byte.
  const CooTensor x = cases::make(device_cases::named("order 3"), Precision::f32);
  for (const bool deterministic : {false, true}) {
    context.deterministic = deterministic;
    device_cases::run_all<float>(x, 10, context, count);
  }
  // HB-CSF's three kernels, a giant slice in two groups.
  context.deterministic = false;
  device_cases::run_all<double>(cases::make(device_cases::named("one giant slice"), Precision::f64), 3, context, count);
  device_cases::run_all<float>(cases::make(device_cases::named("order 5"), Precision::f32), 3, context, count);
  // The dense part of CP-ALS: several groups of rows, a rank that fills a tile and one of two tiles.
  for (const std::uint64_t rank : {3, 20}) {
    Tensor t = build(x, "f-coo", {}, context);
    CpAlsOptions options;
    options.rank = rank;
    options.iterations = 1;
    options.dense = "device";
    EXPECT_TRUE(std::isfinite(cp_als(t, options, context).fit));
  }
  fmt::print("{} MTTKRPs of {} kernels on {}\n", count.runs, count.kernels.size(),
             context.devices[0]->facts().description);
  EXPECT_EQ(count.kernels.size(), device_cases::device_mttkrps().size());
  EXPECT_GE(count.runs, 100);
}

}  // namespace
}  // namespace polyad
