// SPDX-License-Identifier: MIT
/// \file Devices that ask for more than PoCL does, and that fail in the middle.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <polyad/polyad.hpp>

#include "device/device_cases.hpp"
#include "device/forwarding_device.hpp"

namespace polyad {
namespace {

/// Wants what a kernel is given to begin at multiples of 512 bytes, as GPUs of NVIDIA do, and fails at a launch.
class StrictDevice final : public test::ForwardingDevice {
 public:
  explicit StrictDevice(gpu::DevicePtr to) : ForwardingDevice(std::move(to)), facts_(ForwardingDevice::facts()) {
    facts_.offset_alignment = 512;
  }
  [[nodiscard]] const gpu::Facts& facts() const override { return facts_; }
  [[nodiscard]] std::unique_ptr<gpu::Queue> make_queue() override {
    return std::make_unique<StrictQueue>(ForwardingDevice::make_queue(), *this);
  }

  int launches = 0;
  int fails_at = -1;
  int misaligned = 0;
  std::uint64_t array_bytes = 0;  // copied to it, factors apart

 private:
  class StrictQueue final : public test::ForwardingQueue {
   public:
    StrictQueue(std::unique_ptr<gpu::Queue> to, StrictDevice& device)
        : ForwardingQueue(std::move(to)), device_(device) {}
    gpu::Event launch(gpu::Kernel& kernel, const gpu::Grid& grid, std::span<const gpu::Argument> arguments,
                      std::span<const gpu::Event> after, std::string_view label) override {
      if (device_.launches++ == device_.fails_at) throw Error(ErrorKind::limit, "the device is out of resources");
      for (const gpu::Argument& a : arguments)
        if (const auto* view = std::get_if<gpu::View>(&a)) device_.misaligned += view->offset % 512 == 0 ? 0 : 1;
      return ForwardingQueue::launch(kernel, grid, arguments, after, label);
    }

    gpu::Event write(const gpu::View& to, std::span<const std::byte> from, std::span<const gpu::Event> after,
                     std::string_view label) override {
      if (label != "factor in") device_.array_bytes += from.size();
      return ForwardingQueue::write(to, from, after, label);
    }

   private:
    StrictDevice& device_;
  };
  gpu::Facts facts_;
};

/// \param bytes 0: the tensor fits; else it passes through the device
Context strict_context(std::uint64_t bytes) {
  Context context;
  context.threads = 2;
  context.devices = open_devices("opencl:0", {bytes, {}});
  context.devices[0] = std::make_shared<StrictDevice>(context.devices[0]);
  return context;
}

StrictDevice& device_of(const Context& context) { return dynamic_cast<StrictDevice&>(*context.devices[0]); }

std::uint64_t small_memory(const CooTensor& x) {
  std::uint64_t rows = 0;
  for (const std::uint64_t d : x.dims) rows += 2 * d;
  return rows * 16 * sizeof(float) + x.bytes() / 2 + 80000;
}

TEST(StrictDevices, WhatKernelsAreGivenIsAligned) {
  const CooTensor x = cases::make(device_cases::named("power law"), Precision::f32);
  for (const std::uint64_t bytes : {std::uint64_t{0}, small_memory(x)})
    for (const bool deterministic : {false, true}) {
      if (deterministic && bytes != 0) continue;  // coo-perm says that it does not fit
      Context context = strict_context(bytes);
      context.deterministic = deterministic;
      device_cases::Count count;
      device_cases::run_all<float>(x, 10, context, count);
      EXPECT_GT(device_of(context).launches, 10);
      EXPECT_EQ(device_of(context).misaligned, 0) << bytes << " bytes";
    }
  Context context = strict_context(0);
  CpAlsOptions options;
  options.rank = 5;
  options.iterations = 4;
  options.dense = "device";
  const double fit = cp_als(x, options, context).fit;
  options.dense = "auto";
  EXPECT_NEAR(fit, cp_als(x, options).fit, 1e-5);
  EXPECT_EQ(device_of(context).misaligned, 0) << "rows solved on the device";
}

/// Arrays that serve all modes are copied once, and there is room for all modes where there is room for one.
TEST(StrictDevices, OneCopyServesAllModes) {
  const CooTensor x = cases::make(device_cases::named("larger"), Precision::f32);
  std::uint64_t rows = 0;
  for (const std::uint64_t d : x.dims) rows += 2 * d;
  for (const char* format : {"coo", "hicoo", "csf-one", "csf-two", "coo-perm"}) {
    SCOPED_TRACE(format);
    Tensor tensor = build(x, format);
    Context context = strict_context(rows * 16 * sizeof(float) + tensor.bytes() + 40000);
    const auto dense = cases::whole_number_factors(x.dims, 10);
    const auto factors = cases::as_factors<float>(dense);
    Workspace workspace;
    std::uint64_t wrong = 0;
    const auto sweep = [&] {
      for (int mode = 0; mode < 3; ++mode) {
        const oracle::Dense want = oracle::mttkrp(x, dense, mode);
        FactorMatrix<float> out(Context{}, want.rows, 10);
        (void)mttkrp<float>(tensor, std::span<const FactorMatrix<float>>(factors), mode, out, workspace, context);
        for (std::uint64_t i = 0; i < want.rows; ++i)
          for (std::uint64_t r = 0; r < 10; ++r) wrong += static_cast<double>(out(i, r)) != want(i, r);
      }
    };
    sweep();
    EXPECT_LT(device_of(context).array_bytes, tensor.bytes() + 20000) << "more than once";
    EXPECT_GT(device_of(context).array_bytes, tensor.bytes() / 2);
    device_of(context).array_bytes = 0;
    sweep();
    EXPECT_EQ(device_of(context).array_bytes, 0U) << "it did not stay";
    EXPECT_EQ(wrong, 0U);
  }
}

/// A Workspace that is idle gives up its tensor for another one, and has it copied again.
TEST(StrictDevices, IdleWorkspacesMakeRoom) {
  const CooTensor x = cases::make(device_cases::named("larger"), Precision::f32);
  std::uint64_t rows = 0;
  for (const std::uint64_t d : x.dims) rows += 2 * d;
  Context context = strict_context(2 * rows * 16 * sizeof(float) + x.bytes() + 40000);  // one tensor, two times factors
  const auto dense = cases::whole_number_factors(x.dims, 10);
  const auto factors = cases::as_factors<float>(dense);
  const oracle::Dense want = oracle::mttkrp(x, dense, 0);
  Tensor first = build(x, "coo");
  Tensor second = build(x, "coo");
  Workspace of_first;
  Workspace of_second;
  for (int round = 0; round < 3; ++round)
    for (const bool is_first : {true, false}) {
      device_of(context).array_bytes = 0;
      std::uint64_t wrong = 0;
      for (int repeat = 0; repeat < 2; ++repeat) {
        FactorMatrix<float> out(Context{}, want.rows, 10);
        (void)mttkrp<float>(is_first ? first : second, std::span<const FactorMatrix<float>>(factors), 0, out,
                            is_first ? of_first : of_second, context);
        for (std::uint64_t i = 0; i < want.rows; ++i)
          for (std::uint64_t r = 0; r < 10; ++r) wrong += static_cast<double>(out(i, r)) != want(i, r);
      }
      EXPECT_EQ(wrong, 0U) << round;
      // Copied once, and there the second time: it did not have to pass through the device.
      EXPECT_GE(device_of(context).array_bytes, x.bytes()) << round;
      EXPECT_LT(device_of(context).array_bytes, x.bytes() + 4000) << round;
    }
}

TEST(StrictDevices, AFailureLeavesNothingBehind) {
  const CooTensor x = cases::make(device_cases::named("larger"), Precision::f32);
  for (const std::uint64_t bytes : {std::uint64_t{0}, small_memory(x)}) {
    Context context = strict_context(bytes);
    Tensor tensor = build(x, "b-csf", {}, context);
    const std::vector<FactorMatrix<float>> factors = random_factors<float>(x.dims, 10, context);
    FactorMatrix<float> want(context, x.dims[0], 10);
    Workspace workspace;
    workspace.keep_products();
    const auto run = [&](FactorMatrix<float>& out) {
      (void)mttkrp<float>(tensor, std::span<const FactorMatrix<float>>(factors), 0, out, workspace, context);
    };
    run(want);  // also measures rates
    device_of(context).launches = 0;
    run(want);
    const int all = device_of(context).launches;
    ASSERT_GT(all, 0);
    for (int k = 0; k < std::min(all, 12); ++k) {
      device_of(context).launches = 0;
      device_of(context).fails_at = k;
      FactorMatrix<float> out(context, x.dims[0], 10);
      EXPECT_THROW(run(out), Error) << k;
      device_of(context).fails_at = -1;
      run(out);
      double worst = 0;
      for (std::uint64_t i = 0; i < out.rows(); ++i)
        for (std::uint64_t r = 0; r < 10; ++r)
          worst = std::max(worst, std::abs(static_cast<double>(out(i, r)) - static_cast<double>(want(i, r))));
      EXPECT_LT(worst, 1e-3) << k;
    }
  }
}

}  // namespace
}  // namespace polyad
