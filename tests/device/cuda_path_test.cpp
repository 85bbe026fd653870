// SPDX-License-Identifier: MIT
/// \file Every device kernel by the CUDA door, on the test double of NVIDIA's driver: the texts with CUDA's prelude,
/// the host code with its copies, events and queues, in any order that the delays make of it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "backends/device_fixture.hpp"
#include "device/device_cases.hpp"

namespace polyad {
namespace {

using device_cases::Count;

/// The double and a folder for what it compiles: the host's compiler takes its time.
struct CudaPath : testing::Test {
  test::CudaDouble cuda;

  static Context context(std::uint64_t memory = 0, const char* names = "cuda:0") {
    static const test::Scratch cache;
    Context made;
    made.threads = 1;
    made.devices = open_devices(names, {memory, cache.path("")});
    return made;
  }
};

CooTensor small(Precision precision) { return cases::make(cases::Case{"small", {30, 20, 25}, 600}, precision); }

TEST_F(CudaPath, EveryMttkrpIsExact) {
  Count count;
  for (const bool deterministic : {false, true}) {
    Context on_device = context();
    on_device.deterministic = deterministic;
    device_cases::run_all<float>(small(Precision::f32), 5, on_device, count);
    if (!deterministic) device_cases::run_all<double>(small(Precision::f64), 5, on_device, count);
  }
  EXPECT_EQ(count.kernels.size(), device_cases::device_mttkrps().size());
  EXPECT_GE(count.runs, 50);
  EXPECT_EQ(cuda.faults(), "");
  EXPECT_GE(cuda.launches(), 50U);
  fmt::print("{} MTTKRPs of {} kernels, {} launches on the double\n", count.runs, count.kernels.size(),
             cuda.launches());
}

TEST_F(CudaPath, EveryTtvIsExact) {
  const CooTensor x = small(Precision::f64);
  const Context on_device = context();
  std::set<std::string_view> ran;
  for (const KernelEntry& kernel : kernels()) {
    if (kernel.operation != "ttv" || kernel.backend != "gpu") continue;
    for (const std::string_view format : device_cases::formats_of(kernel)) {
      const Tensor t = build(x, format, {}, Context{});
      for (int mode = 0; mode < 3; ++mode) {
        std::vector<double> vector(x.dims[static_cast<std::size_t>(mode)]);
        for (std::size_t i = 0; i < vector.size(); ++i) vector[i] = static_cast<double>(i % 7) - 3;
        CooTensor got;
        try {
          got = ttv(t, mode, vector, on_device, kernel.name);
        } catch (const Error& e) {
          ASSERT_EQ(e.kind(), ErrorKind::usage) << e.what();
          continue;  // a format for another mode
        }
        const CooTensor want = ttv(t, mode, vector, Context{});
        ASSERT_EQ(got.nnz(), want.nnz()) << kernel.name;
        for (std::uint64_t k = 0; k < want.nnz(); ++k) ASSERT_EQ(got.value(k), want.value(k)) << kernel.name;
        ran.insert(kernel.name);
      }
    }
  }
  EXPECT_GE(ran.size(), 5U);
  EXPECT_EQ(cuda.faults(), "");
}

/// Memory for the factors and the output, and for a part of the tensor.
std::uint64_t little(const CooTensor& x) { return 75 * 8 * 4 * 3 + x.bytes() / 2 + 8000; }

/// MTTKRPs in mode 1 of a tensor that does not fit, the second with the first one's plan; whether both were exact.
bool streamed(const CooTensor& x, const Context& on_device) {
  const auto dense = cases::whole_number_factors(x.dims, 5);
  const auto factors = cases::as_factors<float>(dense);
  Tensor t = build(x, "f-coo", {}, Context{});
  Workspace workspace;
  FactorMatrix<float> out(Context{}, x.dims[0], 5);
  const oracle::Dense want = oracle::mttkrp(x, dense, 0);
  bool exact = true;
  for (int run = 0; run < 2; ++run) {
    (void)mttkrp<float>(t, std::span<const FactorMatrix<float>>(factors), 0, out, workspace, on_device);
    for (std::uint64_t i = 0; i < want.rows; ++i)
      for (std::uint64_t r = 0; r < 5; ++r) exact = exact && static_cast<double>(out(i, r)) == want(i, r);
  }
  return exact;
}

CooTensor large() { return cases::make(cases::Case{"large", {30, 20, 25}, 6000}, Precision::f32); }

TEST_F(CudaPath, PartsThatStreamAreInOrderWithAnyDelays) {
  const CooTensor x = large();
  for (unsigned seed = 1; seed <= 5; ++seed) {
    const test::CudaDouble delays(seed);
    const Context on_device = context(little(x));
    EXPECT_TRUE(streamed(x, on_device)) << seed;
    EXPECT_EQ(delays.faults(), "") << seed;
    EXPECT_GT(delays.launches(), 2U);  // so it was cut
    EXPECT_GT(delays.waits(), 2U);
  }
}

TEST_F(CudaPath, AForgottenWaitIsFound) {
  const CooTensor x = large();
  EXPECT_TRUE(streamed(x, context(little(x))));
  const auto waits = static_cast<std::int64_t>(cuda.waits());
  EXPECT_GE(waits, 8);
  int wrong = 0;
  for (const unsigned seed : {1U, 2U, 3U})
    for (std::int64_t dropped = 0; dropped < waits; ++dropped) {
      const test::CudaDouble delays(seed);
      const Context on_device = context(little(x));
      delays.reset(dropped);
      const bool exact = streamed(x, on_device);
      // The books do not depend on the delays: there is no wait that another one makes needless.
      EXPECT_NE(delays.faults(), "") << "wait " << dropped << " was forgotten, seed " << seed;
      wrong += !exact;
    }
  fmt::print("each of {} waits is noticed when it is forgotten; {} results of {} were wrong\n", waits, wrong,
             3 * waits);
}

TEST_F(CudaPath, TwoDevicesShareAJob) {
  const test::Variable two("FAKE_CUDA_DEVICES", "2");
  const CooTensor x = large();
  EXPECT_TRUE(streamed(x, context(0, "cuda:0,cuda:1")));
  EXPECT_EQ(cuda.faults(), "");
}

TEST_F(CudaPath, DecompositionsHaveTheSameFit) {
  const CooTensor x = small(Precision::f64);
  CpAlsOptions options;
  options.rank = 4;
  options.iterations = 3;
  const Context on_device = context();
  Tensor here = build(x, "f-coo", {}, Context{});
  Tensor there = build(x, "f-coo", {}, Context{});
  const double fit = cp_als(here, options, Context{}).fit;
  EXPECT_NEAR(cp_als(there, options, on_device).fit, fit, 1e-10);
  EXPECT_GT(cuda.launches(), 8U);
  EXPECT_EQ(cuda.faults(), "");
}

}  // namespace
}  // namespace polyad
