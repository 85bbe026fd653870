// SPDX-License-Identifier: MIT
/// \file Every device kernel of the registry on PoCL against the oracle. The number of MTTKRPs is printed, and a
/// minimum is demanded: a machine without an OpenCL device fails here rather than pass by doing nothing.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <tuple>

#include "backends/gpu/device.hpp"
#include "device/device_cases.hpp"
#include "kernels/mttkrp/gpu/cutters.hpp"

namespace polyad {
namespace {

using device_cases::device_context;
using device_cases::shared_context;

using device_cases::Count;

/// Every rank of the list at every order and in both precisions; the largest case with one that fills no block of
/// columns.
std::vector<std::uint64_t> ranks_for(const cases::Case& c) {
  if (c.nnz > 20000) return {17};
  return {1, 3, 8, 10, 16, 17, 33, 64};
}

/// Order and precision: each compiles programs of its own, and they run side by side in processes of their own.
class DeviceBattery : public testing::TestWithParam<std::tuple<std::size_t, Precision>> {};

TEST_P(DeviceBattery, MttkrpIsExact) {
  const auto [order, precision] = GetParam();
  Count count;
  std::set<std::uint64_t> ranks;
  for (const cases::Case& c : cases::all()) {
    if (c.dims.size() != order || c.dims[0] > 100000) continue;
    SCOPED_TRACE(c.name);
    const CooTensor x = cases::make(c, precision);
    for (const std::uint64_t rank : ranks_for(c)) {
      ranks.insert(rank);
      if (precision == Precision::f32) {
        device_cases::run_all<float>(x, rank, shared_context(), count);
      } else {
        device_cases::run_all<double>(x, rank, shared_context(), count);
      }
    }
    if (HasFailure()) break;
  }
  fmt::print("order {}, {}: {} MTTKRPs on {}\n", order, name_of(precision), count.runs,
             shared_context().devices[0]->facts().description);
  EXPECT_EQ(count.kernels.size(), device_cases::device_mttkrps().size());
  EXPECT_EQ(ranks.size(), 8U);
  constexpr std::array least = {200, 3000, 800, 490, 590};  // 10,160 in both precisions
  EXPECT_GE(count.runs, least.at(order - 2));
}

INSTANTIATE_TEST_SUITE_P(Orders, DeviceBattery,
                         testing::Combine(testing::Values(2, 3, 4, 5, 6),
                                          testing::Values(Precision::f32, Precision::f64)),
                         [](const auto& one) {
                           return fmt::format("order_{}_{}", std::get<0>(one.param), name_of(std::get<1>(one.param)));
                         });

TEST(DeviceRuns, DeterministicKernelsGiveTheSameBits) {
  Count count;
  for (const char* name : {"matrix", "order 3", "one giant slice", "one giant fibre", "power law", "order 4"}) {
    SCOPED_TRACE(name);
    const CooTensor x = device_cases::uneven(name);
    Context context = shared_context();
    context.deterministic = true;
    const std::vector<FactorMatrix<double>> factors = random_factors<double>(x.dims, 17, context);
    // The tensor on the device, the same through slots: memory for the factors, the output and a part of the tensor, or
    // so little that large slices are cut.
    std::uint64_t rows = 0;
    for (const std::uint64_t d : x.dims) rows += 2 * d;
    std::array<Context, 2> small = {context, context};
    small[0].devices = open_devices("opencl:0", {rows * 24 * sizeof(double) + x.bytes() + 40000, {}});
    small[1].devices = open_devices("opencl:0", {rows * 24 * sizeof(double) + 120000, {}});
    Workspace workspace;
    std::array<Workspace, 2> small_workspace;
    device_cases::for_each_run(x, 17, context, [&](Tensor& t, int mode, const KernelEntry& kernel) {
      FactorMatrix<double> first(context, x.dims[static_cast<std::size_t>(mode)], 17);
      FactorMatrix<double> again(context, x.dims[static_cast<std::size_t>(mode)], 17);
      const std::span<const FactorMatrix<double>> all(factors);
      mttkrp<double>(t, all, mode, first, workspace, context, kernel.name);
      for (std::size_t repeat = 0; repeat < 4; ++repeat) {
        if (repeat < 2) {
          mttkrp<double>(t, all, mode, again, workspace, context, kernel.name);
        } else if (t.format().name != "coo-perm") {
          mttkrp<double>(t, all, mode, again, small_workspace.at(repeat - 2), small.at(repeat - 2), kernel.name);
        }
        EXPECT_TRUE(std::equal(first.data(), first.data() + first.rows() * first.stride(), again.data()))
            << kernel.name << ", mode " << mode + 1 << (repeat >= 2 ? ", through slots" : "");
        ++count.runs;
      }
    });
  }
  EXPECT_GE(count.runs, 200);
}

TEST(DeviceRuns, TensorsLargerThanTheDevice) {
  Count count;
  for (const char* name : {"one giant slice", "power law", "order 4", "larger"}) {
    SCOPED_TRACE(name);
    const CooTensor x = cases::make(device_cases::named(name), Precision::f32);
    std::uint64_t rows = 0;
    for (const std::uint64_t d : x.dims) rows += 2 * d;
    Context context = device_context(rows * 16 * sizeof(float) + x.bytes() / 2 + 40000);
    Timeline timeline;
    context.devices = timeline.watch(context.devices);
    device_cases::run_all<float>(x, 10, context, count);
    EXPECT_EQ(timeline.conflicts(), std::vector<std::string>{});
    const std::vector<TimelineSpan> spans = timeline.spans();
    const auto copies = std::ranges::count(spans, "copy in", &TimelineSpan::label);
    EXPECT_GT(copies, 2 * count.runs / 4) << "everything fitted";
  }
  EXPECT_GE(count.runs, 60);
}

TEST(DeviceRuns, TwoDevicesShareATensor) {
  const char* devices = std::getenv("POCL_DEVICES");
  ASSERT_TRUE(devices != nullptr && std::string_view(devices) == "pthread pthread") << "set by tests/run";
  Count count;
  Context context = device_context(0, "opencl:0,opencl:1");
  ASSERT_EQ(context.devices.size(), 2U);
  for (const char* name : {"one nonzero", "power law", "order 4", "larger"}) {
    SCOPED_TRACE(name);
    for (const bool deterministic : {false, true}) {
      context.deterministic = deterministic;
      device_cases::run_all<float>(cases::make(device_cases::named(name), Precision::f32), 10, context, count);
    }
  }
  EXPECT_GE(count.runs, 100);
}

/// The work of groups before and after splitting, on tensors like the field's most skewed ones: some group has ten
/// times the mean with a group per slice, and at most a fifth more than it with bins.
TEST(DeviceRuns, SplittingBalancesTheWork) {
  int checked = 0;
  for (const Preset& preset : presets()) {
    if (preset.name != "darpa" && preset.name != "nell2") continue;
    GenerateOptions options = preset.options;
    options.nnz = 300000;
    options.precision = Precision::f32;
    const CooTensor x = generate(options);
    const Tensor csf = build(x, "csf-all");
    const Tensor b_csf = build(x, "b-csf");
    const Tensor hb_csf = build(x, "hb-csf");
    for (int mode = 0; mode < x.order(); ++mode) {
      const std::vector<GroupBalance> before = mttkrp_balance(csf, mode, "mttkrp/gpu/csf/root");
      const std::vector<GroupBalance> bins = mttkrp_balance(b_csf, mode, "mttkrp/gpu/b-csf/bins");
      const std::vector<GroupBalance> three = mttkrp_balance(hb_csf, mode, "mttkrp/gpu/hb-csf/three");
      ASSERT_EQ(before.size(), 1U);
      ASSERT_EQ(bins.size(), 1U);
      fmt::print("{}, mode {}: {:.1f} with a group per slice, {:.2f} with bins\n", preset.name, mode + 1,
                 before[0].ratio(), bins[0].ratio());
      EXPECT_LE(bins[0].ratio(), 1.2) << preset.name << ", mode " << mode + 1;
      for (const GroupBalance& b : three) {
        // A few groups are no statistics: the last one is as small as it happens to be.
        if (b.groups <= 10) continue;
        EXPECT_LE(b.ratio(), 1.2) << preset.name << ", mode " << mode + 1;
      }
      checked += before[0].ratio() > 10;
    }
    EXPECT_THROW(static_cast<void>(mttkrp_balance(csf, 0, "mttkrp/gpu/b-csf/bins")), Error);
  }
  EXPECT_GE(checked, 4) << "the tensors are not skewed";
}

}  // namespace
}  // namespace polyad
