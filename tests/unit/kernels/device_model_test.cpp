// SPDX-License-Identifier: MIT
/// \file Estimates for devices that are not here: they follow the counts and the published figures.
#include <gtest/gtest.h>

#include <map>
#include <polyad/polyad.hpp>
#include <set>

#include "kernels/gpu/estimate.hpp"
#include "matrix/cases.hpp"

namespace polyad {
namespace {

CooTensor tensor_of(std::uint64_t nnz, Precision precision = Precision::f32) {
  const cases::Case c = {"random", {3000, 4000, 5000}, nnz};
  return cases::make(c, precision);
}

/// One MTTKRP by hand: 1000 nonzeros, rows of 64 bytes, a cache for half of the rows.
TEST(DeviceModels, MovedBytesByHand) {
  DeviceModel d;
  d.cache_mb = 0.0064;  // 100 rows
  gpu::MttkrpWork w;
  w.array_bytes = 16000;
  w.row_bytes = 64;
  w.output_rows = 10;
  w.rows = {{1000, 200, 1}};
  EXPECT_DOUBLE_EQ(w.hit(d), 0.5);
  EXPECT_DOUBLE_EQ(w.moved_bytes(d), 16000 + 640 + 64 * (200 + 800 * 0.5));
  w.rows[0].times = 2;
  EXPECT_DOUBLE_EQ(w.moved_bytes(d), 16000 + 640 + 2 * 64 * (200 + 800 * 0.5));
  d.cache_mb = 1;  // all of it
  EXPECT_DOUBLE_EQ(w.moved_bytes(d), 16000 + 640 + 2 * 64 * 200);
}

TEST(DeviceModels, EveryFormatWithADeviceKernelIsEstimated) {
  std::set<std::string> with_kernel;
  for (const KernelEntry& k : kernels()) {
    if (k.backend != "gpu" || k.operation != "mttkrp") continue;
    std::string names(k.formats);
    for (std::size_t at = 0; (at = names.find(',')) != std::string::npos;) {
      with_kernel.insert(names.substr(0, at));
      names.erase(0, at + 1);
    }
    with_kernel.insert(names);
  }
  std::set<std::string> estimated;
  for (const DeviceEstimate& e : estimate_on_device(tensor_of(1000), 16, device_model("p100"))) {
    estimated.emplace(e.format);
    EXPECT_GT(e.seconds, 0);
    EXPECT_GT(e.tensor_bytes, 0);
    EXPECT_GE(e.moved_bytes, e.tensor_bytes) << e.format;
    EXPECT_TRUE(e.fits);
  }
  EXPECT_EQ(estimated, with_kernel);
}

TEST(DeviceModels, TwiceTheNonzerosTakeAboutTwiceAsLong) {
  const CooTensor once = tensor_of(100000);
  const CooTensor twice = tensor_of(200000);
  DeviceModel d = device_model("p100");
  d.cache_mb = 0.01;  // rows come from memory
  const auto estimated = [&](const CooTensor& x) {
    std::map<std::string_view, double> seconds;
    for (const DeviceEstimate& e : estimate_on_device(x, 32, d)) seconds[e.format] = e.seconds;
    return seconds;
  };
  std::map<std::string_view, double> of_once = estimated(once);
  std::map<std::string_view, double> of_twice = estimated(twice);
  for (const char* format : {"coo", "coo-perm", "f-coo", "csf-all", "b-csf", "hb-csf", "hicoo"}) {
    const double ratio = of_twice[format] / of_once[format];
    EXPECT_GT(ratio, 1.6) << format;
    EXPECT_LT(ratio, 2.2) << format;
  }
}

TEST(DeviceModels, FollowTheFigures) {
  const CooTensor x = tensor_of(50000);
  const auto best = [&](const DeviceModel& d, const CooTensor& t) { return estimate_on_device(t, 16, d)[0]; };
  const DeviceModel a100 = device_model("a100");
  EXPECT_GT(best(device_model("p100"), x).seconds, best(a100, x).seconds);
  EXPECT_GT(best(a100, x).seconds, best(device_model("h100"), x).seconds);
  EXPECT_GT(best(a100, tensor_of(50000, Precision::f64)).seconds, best(a100, x).seconds);
  EXPECT_EQ(best(a100, x).bound, "memory");
  DeviceModel slow = a100;
  slow.f32_tflops = 1e-3;
  EXPECT_EQ(best(slow, x).bound, "arithmetic");
  DeviceModel small = a100;
  small.memory_gb = 1e-4;
  small.copy_gbs = 0.1;
  const DeviceEstimate passing = best(small, x);
  EXPECT_FALSE(passing.fits);
  EXPECT_EQ(passing.bound, "copies");
  EXPECT_GT(passing.seconds, best(a100, x).seconds);
  EXPECT_THROW(static_cast<void>(device_model("k20")), Error);
}

}  // namespace
}  // namespace polyad
