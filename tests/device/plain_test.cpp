// SPDX-License-Identifier: MIT
/// \file The kernel texts through the C++ door. Under ASan, UBSan and TSan this is where their mistakes show.
#include <gtest/gtest.h>

#include "device/device_cases.hpp"
#include "device/forwarding_device.hpp"
#include "device/plain_device.hpp"

namespace polyad {
namespace {

using device_cases::Count;

Context plain_context(const plain::Options& options = {}) {
  Context context;
  context.threads = 2;
  context.devices = {plain::make_device(options)};
  return context;
}

/// The tests of this door are the only ones that sanitizers see; between them they run every kernel of every text.
TEST(PlainDoor, NoTextIsLeftOut) {
  std::set<std::string> here;
  for (const char* texts : {"mttkrp_", "add_seams", "ttv_", "solve_rows"})
    for (const std::string& k : plain::kernels_of(texts)) EXPECT_TRUE(here.insert(k).second) << k;
  EXPECT_EQ(here, plain::kernels_of(""));
  EXPECT_GE(here.size(), 17U);
}

TEST(PlainDoor, EveryKernelIsExact) {
  Count count;
  static_cast<void>(plain::launched());
#ifdef POLYAD_SANITIZED  // a thread per work-item takes long there
  const std::vector<const char*> names = {"empty",           "one nonzero", "order 3",
                                          "one giant slice", "duplicates",  "order 5"};
#else
  const std::vector<const char*> names = {"empty",           "one nonzero",     "matrix",     "order 3",
                                          "one giant slice", "one giant fibre", "duplicates", "diagonal",
                                          "order 4",         "order 5",         "order 6"};
#endif
  for (const char* name : names) {
    SCOPED_TRACE(name);
    const cases::Case c = device_cases::named(name);
    device_cases::run_all<float>(cases::make(c, Precision::f32), 3, plain_context(), count);
    if (c.nnz < 1500) device_cases::run_all<double>(cases::make(c, Precision::f64), 17, plain_context(), count);
    if (HasFailure()) return;
  }
  EXPECT_EQ(count.kernels.size(), device_cases::device_mttkrps().size());
  EXPECT_EQ(plain::launched(), plain::kernels_of("mttkrp_"));
  fmt::print("{} MTTKRPs of {} kernels through the C++ door\n", count.runs, count.kernels.size());
}

TEST(PlainDoor, DeterministicVariantsAreExact) {
  Count count;
  Context context = plain_context();
  context.deterministic = true;
  static_cast<void>(plain::launched());
  for (const char* name : {"matrix", "order 3", "one giant slice", "power law", "order 4"}) {
    SCOPED_TRACE(name);
    device_cases::run_all<float>(cases::make(device_cases::named(name), Precision::f32), 8, context, count);
  }
  EXPECT_TRUE(plain::launched().contains("add_seams"));
  EXPECT_GT(count.runs, 20);
}

/// Counts what goes to the device.
class CountingDevice final : public test::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  [[nodiscard]] std::unique_ptr<gpu::Queue> make_queue() override {
    return std::make_unique<CountingQueue>(ForwardingDevice::make_queue(), log_);
  }
  /// Copies of arrays and of factors since the last call.
  [[nodiscard]] std::pair<std::ptrdiff_t, std::ptrdiff_t> copies() {
    const std::pair<std::ptrdiff_t, std::ptrdiff_t> n = {std::ranges::count(log_, "copy in"),
                                                         std::ranges::count(log_, "factor in")};
    log_.clear();
    return n;
  }

 private:
  class CountingQueue final : public test::ForwardingQueue {
   public:
    CountingQueue(std::unique_ptr<gpu::Queue> to, std::vector<std::string>& log)
        : ForwardingQueue(std::move(to)), log_(log) {}
    gpu::Event write(const gpu::View& to, std::span<const std::byte> from, std::span<const gpu::Event> after,
                     std::string_view label) override {
      log_.emplace_back(label);
      return ForwardingQueue::write(to, from, after, label);
    }

   private:
    std::vector<std::string>& log_;
  };
  std::vector<std::string> log_;
};

TEST(PlainDoor, PartsPassThroughSlots) {
  Count count;
  for (const char* name : {"one giant slice", "power law", "order 4"}) {
    SCOPED_TRACE(name);
    const CooTensor x = cases::make(device_cases::named(name), Precision::f32);
    std::uint64_t rows = 0;
    for (const std::uint64_t d : x.dims) rows += d + d;
    plain::Options options;
    options.memory_bytes = rows * 4 * sizeof(float) + x.bytes() * 7 / 10 + 30000;  // two thirds of the coordinates
    for (const bool deterministic : {false, true}) {
      Context context = plain_context(options);
      auto device = std::make_shared<CountingDevice>(context.devices[0]);
      context.devices = {device};
      context.deterministic = deterministic;
      const std::vector<oracle::Dense> dense = cases::whole_number_factors(x.dims, 3);
      const std::vector<FactorMatrix<float>> factors = cases::as_factors<float>(dense);
      Workspace workspace;
      device_cases::for_each_run(x, 3, context, [&](Tensor& t, int mode, const KernelEntry& kernel) {
        if (deterministic && t.format().name == "coo-perm") return;  // needs all of it on the device
        const oracle::Dense want = oracle::mttkrp(x, dense, mode);
        FactorMatrix<float> out(Context{}, want.rows, 3);
        mttkrp<float>(t, std::span<const FactorMatrix<float>>(factors), mode, out, workspace, context, kernel.name);
        std::uint64_t wrong = 0;
        for (std::uint64_t i = 0; i < want.rows; ++i)
          for (std::uint64_t r = 0; r < 3; ++r) wrong += static_cast<double>(out(i, r)) != want(i, r);
        EXPECT_EQ(wrong, 0U) << kernel.name << ", mode " << mode + 1;
        ++count.runs;
        if (t.bytes() > options.memory_bytes) {
          EXPECT_GT(device->copies().first, 0) << kernel.name << " kept a tensor larger than the device";
        }
      });
    }
  }
  EXPECT_GT(count.runs, 40);
}

TEST(PlainDoor, TwoDevicesShareATensor) {
  Count count;
  Context context = plain_context();
  context.devices.push_back(plain::make_device());
  for (const char* name : {"empty", "one nonzero", "power law", "order 4"}) {
    SCOPED_TRACE(name);
    device_cases::run_all<float>(cases::make(device_cases::named(name), Precision::f32), 3, context, count);
  }
  EXPECT_GT(count.runs, 40);
}

TEST(PlainDoor, SaysThatADeviceHasNoDoubles) {
  plain::Options options;
  options.has_f64 = false;
  const Context context = plain_context(options);
  const CooTensor x = cases::make(device_cases::named("order 3"), Precision::f64);
  Tensor t = build(x, "coo", {}, context);
  const std::vector<FactorMatrix<double>> factors = random_factors<double>(x.dims, 4, context);
  FactorMatrix<double> out(context, x.dims[0], 4);
  Workspace workspace;
  try {
    mttkrp<double>(t, std::span<const FactorMatrix<double>>(factors), 0, out, workspace, context);
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("has no double precision"), std::string::npos) << e.what();
  }
}

TEST(PlainDoor, SaysWhatDoesNotFit) {
  plain::Options options;
  options.memory_bytes = 3000;
  const Context context = plain_context(options);
  const CooTensor x = cases::make(device_cases::named("order 3"), Precision::f32);
  Tensor t = build(x, "coo", {}, context);
  const std::vector<FactorMatrix<float>> factors = random_factors<float>(x.dims, 4, context);
  FactorMatrix<float> out(context, x.dims[0], 4);
  for (const std::uint64_t memory : {std::uint64_t{1000}, std::uint64_t{8000}}) {
    plain::Options small;
    small.memory_bytes = memory;
    Workspace workspace;
    try {
      mttkrp<float>(t, std::span<const FactorMatrix<float>>(factors), 0, out, workspace, plain_context(small));
      FAIL() << "no error with " << memory;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::limit);
      EXPECT_NE(std::string(e.what()).find("has no room for"), std::string::npos) << e.what();
    }
  }
}

TEST(PlainDoor, WhatDidNotChangeIsNotCopiedAgain) {
  Context context;
  auto device = std::make_shared<CountingDevice>(plain::make_device());
  context.devices = {device};
  const CooTensor x = cases::make(device_cases::named("order 3"), Precision::f32);
  Tensor t = build(x, "f-coo", {}, context);
  std::vector<FactorMatrix<float>> factors = random_factors<float>(x.dims, 4, context);
  FactorMatrix<float> out(context, x.dims[0], 4);
  Workspace workspace;
  const auto run = [&] {
    mttkrp<float>(t, std::span<const FactorMatrix<float>>(factors), 0, out, workspace, context);
    return device->copies();
  };
  EXPECT_EQ(run(), std::make_pair(7L, 2L));  // head, two indices, values, flags, chunk rows, rows; two factors
  EXPECT_EQ(run(), std::make_pair(0L, 2L));
  workspace.keep_products();
  EXPECT_EQ(run(), std::make_pair(0L, 2L));
  EXPECT_EQ(run(), std::make_pair(0L, 0L));
  factors[1](0, 0) = 3;
  workspace.changed(1);
  EXPECT_EQ(run(), std::make_pair(0L, 1L));
  Tensor other = build(x, "f-coo", {}, context);  // equal, but not the same
  std::swap(t, other);
  EXPECT_EQ(run(), std::make_pair(7L, 0L));
}

}  // namespace
}  // namespace polyad
