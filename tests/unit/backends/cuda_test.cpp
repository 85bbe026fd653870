// SPDX-License-Identifier: MIT
// What is special about the CUDA door: order on the test double, and the real NVRTC when it is there.
#include <fmt/format.h>
#include <polyad/error.hpp>

#include "backends/device_fixture.hpp"
#include "backends/gpu/cuda/api.hpp"
#include "backends/gpu/program.hpp"

namespace polyad::test {
namespace {

/// A pipeline of 12 parts through 2 slots on three queues: copy in, next(), copy out. Returns what came out.
std::vector<std::uint64_t> pipeline(gpu::Device& device) {
  const auto kernel = device.kernel("small", "slow_next", defines_for<float>());
  const auto in = device.make_queue();
  const auto work = device.make_queue();
  const auto out = device.make_queue();
  const std::size_t parts = 12;
  gpu::View slots[2];
  gpu::View results[2];
  for (int i = 0; i < 2; ++i) {
    slots[i] = {device.allocate(8), 0};
    results[i] = {device.allocate(8), 0};
  }
  std::vector<std::uint64_t> from(parts);
  std::vector<std::uint64_t> to(parts);
  std::vector<gpu::Event> worked(parts);
  std::vector<gpu::Event> copied(parts);
  for (std::size_t p = 0; p < parts; ++p) {
    from[p] = 100 * p;
    const std::size_t s = p % 2;
    const gpu::Event free_slot[] = {p < 2 ? nullptr : worked[p - 2]};
    const gpu::Event filled[] = {in->write(slots[s], bytes_of(from).subspan(p * 8, 8), free_slot),
                                 p < 2 ? nullptr : copied[p - 2]};
    const gpu::Argument arguments[] = {slots[s], results[s], std::uint64_t{100}};
    worked[p] = work->launch(*kernel, {{1, 1}, {4, 1}}, arguments, filled);
    const gpu::Event done[] = {worked[p]};
    copied[p] = out->read(bytes_of(to).subspan(p * 8, 8), results[s], done);
  }
  for (const gpu::Event& e : copied) e->wait();
  return to;
}

const std::vector<std::uint64_t> expected = {1, 101, 201, 301, 401, 501, 601, 701, 801, 901, 1001, 1101};

TEST(CudaOrder, APipelineIsInOrderWithAnyDelays) {
  const SmallTexts texts;
  const Scratch cache;
  for (unsigned seed = 1; seed <= 8; ++seed) {
    const CudaDouble cuda(seed);
    const auto device = gpu::cuda::open(0, {.memory = 0, .cache = cache.path("")});
    EXPECT_EQ(pipeline(*device), expected) << seed;
    EXPECT_EQ(cuda.faults(), "") << seed;
    EXPECT_EQ(cuda.launches(), 12U);
    EXPECT_EQ(cuda.waits(), 10U + 12 + 10 + 12);
  }
}

TEST(CudaOrder, EveryForgottenWaitIsFound) {
  const SmallTexts texts;
  const Scratch cache;
  int wrong = 0;
  for (unsigned seed = 1; seed <= 3; ++seed)
    for (std::int64_t dropped = 0; dropped < 44; ++dropped) {
      const CudaDouble cuda(seed);
      const auto device = gpu::cuda::open(0, {.memory = 0, .cache = cache.path("")});
      cuda.reset(dropped);
      wrong += pipeline(*device) != expected;
      EXPECT_NE(cuda.faults(), "") << "wait " << dropped << " was forgotten, seed " << seed;
    }
  EXPECT_GT(wrong, 0);  // the delays alone show some of them, too
}

TEST(CudaOrder, MemoryGoesBackAndWaitsForKernels) {
  const SmallTexts texts;
  const CudaDouble cuda;
  {
    const auto device = gpu::cuda::open(0, {});
    const std::uint64_t before = cuda.used_bytes();
    const auto kernel = device->kernel("small", "slow_next", defines_for<float>());
    const auto queue = device->make_queue();
    for (int i = 0; i < 10; ++i) {
      const gpu::View a = {device->allocate(1000), 0};
      const gpu::View b = {device->allocate(1000), 0};
      (void)queue->clear(a, 8, {});
      const gpu::Argument arguments[] = {a, b, std::uint64_t{100000}};
      (void)queue->launch(*kernel, {{1, 1}, {1, 1}}, arguments);
    }  // memory is given back while the kernels still run
    EXPECT_EQ(cuda.used_bytes(), before);
  }
  EXPECT_EQ(cuda.faults(), "");
  EXPECT_EQ(cuda.used_bytes(), 0U);
}

TEST(CudaDiscovery, SaysWhatIsMissing) {
  {
    const CudaDouble cuda;
    const Variable broken("FAKE_CUDA_INIT", "1");
    EXPECT_NE(gpu::cuda::find().why_none.find("does not start: CUDA_ERROR_NO_DEVICE"), std::string::npos);
  }
  {
    const CudaDouble cuda;
    const Variable none("FAKE_CUDA_DEVICES", "0");
    EXPECT_EQ(gpu::cuda::find().why_none, "the NVIDIA driver knows no device");
  }
  {
    const CudaDouble cuda;
    const Variable compiler("POLYAD_NVRTC_LIBRARY", "/nowhere/libnvrtc.so");
    const std::string why = gpu::cuda::find().why_none;
    EXPECT_NE(why.find("no compiler of kernels: /nowhere/libnvrtc.so was not found; install"), std::string::npos)
        << why;
    EXPECT_THROW((void)gpu::cuda::open(0, {}), Error);
  }
  {
    const CudaDouble cuda;
    const Variable old("FAKE_CUDA_ARCHITECTURE", "61");
    const std::string why = gpu::cuda::find().why_none;
    EXPECT_NE(why.find("begins with sm_75, the device is sm_61"), std::string::npos) << why;
  }
}

TEST(CudaDiscovery, SeveralDevicesAndOneThatIsNewerThanTheCompiler) {
  const CudaDouble cuda;
  const SmallTexts texts;
  const Variable two("FAKE_CUDA_DEVICES", "2");
  const Variable newer("FAKE_CUDA_ARCHITECTURE", "130");
  ASSERT_EQ(gpu::cuda::find().devices.size(), 2U);
  const auto both = open_devices("cuda:0,cuda:1");
  ASSERT_EQ(both.size(), 2U);
  for (const auto& device : both) EXPECT_EQ(pipeline(*device), expected);
  EXPECT_EQ(both[1]->facts().name, "cuda:1");
  // A GPU that is real comes before a processor that pretends.
  EXPECT_EQ(open_devices("gpu")[0]->facts().backend, "cuda");
  EXPECT_EQ(cuda.faults(), "");
}

TEST(CudaDiscovery, TheCompilerMatchesTheDriver) {
  using gpu::cuda::Product;
  using gpu::cuda::product_of;
  const std::vector<int> of_13 = {75, 80, 86, 89, 90, 100, 120};
  const std::vector<int> of_12 = {50, 60, 61, 70, 75, 80, 86, 89, 90};
  std::string why;
  // Compiler, device, driver. Cubins of any minor version are loaded; PTX must not be newer than the driver.
  EXPECT_EQ(product_of(13000, of_13, 90, 13000, why), Product::cubin);
  EXPECT_EQ(product_of(13020, of_13, 90, 13000, why), Product::cubin);
  EXPECT_EQ(product_of(12040, of_12, 90, 13000, why), Product::cubin);
  EXPECT_EQ(product_of(12040, of_12, 61, 12020, why), Product::cubin);
  EXPECT_EQ(product_of(12040, of_12, 120, 13000, why), Product::ptx);
  EXPECT_EQ(product_of(12040, of_12, 120, 12040, why), Product::ptx);
  EXPECT_EQ(why, "");
  EXPECT_EQ(product_of(13000, of_13, 61, 13000, why), Product::nothing);
  EXPECT_EQ(why, "NVRTC 13.0 begins with sm_75, the device is sm_61");
  EXPECT_EQ(product_of(13000, of_13, 90, 12040, why), Product::nothing);
  EXPECT_EQ(why, "NVRTC 13.0 is newer than the driver, which is for CUDA 12.4; install libnvrtc 12 or a newer driver");
  EXPECT_EQ(product_of(12080, of_12, 100, 12040, why), Product::nothing);
  EXPECT_NE(why.find("must translate what it makes"), std::string::npos) << why;
}

TEST(CudaDiscovery, ADriverOlderThanTheCompiler) {
  const CudaDouble cuda;
  const SmallTexts texts;
  {
    const Variable driver("FAKE_CUDA_DRIVER", "12040");
    const gpu::Found found = gpu::cuda::find();
    EXPECT_TRUE(found.devices.empty());
    EXPECT_NE(found.why_none.find("NVRTC 13.0 is newer than the driver"), std::string::npos) << found.why_none;
    EXPECT_THROW((void)gpu::cuda::open(0, {}), Error);
    const Variable older("FAKE_NVRTC", "12080");
    EXPECT_EQ(pipeline(*gpu::cuda::open(0, {})), expected);  // a cubin
    const Variable newer("FAKE_CUDA_ARCHITECTURE", "130");
    EXPECT_NE(gpu::cuda::find().why_none.find("must translate"), std::string::npos);
  }
  const Variable older("FAKE_NVRTC", "12080");
  const Variable newer("FAKE_CUDA_ARCHITECTURE", "130");
  EXPECT_EQ(pipeline(*gpu::cuda::open(0, {})), expected);  // PTX
}

/// The real NVRTC needs neither a driver nor a GPU.
class NvrtcTest : public testing::Test {
 protected:
  void SetUp() override {
    compiler_ = gpu::cuda::Compiler::find(90, 99000, why_not_);
    if (!compiler_) GTEST_SKIP() << why_not_;
  }
  std::string why_not_;
  std::shared_ptr<const gpu::cuda::Compiler> compiler_;
  SmallTexts texts_;
};

TEST_F(NvrtcTest, CompilesForEveryArchitecture) {
  constexpr std::string_view elf("\x7f\x45\x4c\x46", 4);
  for (const int architecture : compiler_->architectures())
    for (const auto& defines : {defines_for<float>(), defines_for<double>()}) {
      const auto compiled =
          compiler_->compile(gpu::cuda::cuda_source("small", defines, architecture), "small", architecture);
      EXPECT_FALSE(compiled.is_ptx) << architecture;
      EXPECT_TRUE(compiled.binary.starts_with(elf)) << architecture;
    }
}

TEST_F(NvrtcTest, GivesPtxForWhatIsNewerAndItsWordsForMistakes) {
  const auto compiled = compiler_->compile(gpu::cuda::cuda_source("small", defines_for<float>(), 999), "small", 999);
  EXPECT_TRUE(compiled.is_ptx);
  EXPECT_NE(compiled.binary.find(".entry slow_next"), std::string::npos);
  const std::string bad = texts_.folder.file("bad.h", "PD_KERNEL void f(PD_GLOBAL real* x) {\n  x[0] = nowhere;\n}\n");
  try {
    (void)compiler_->compile(gpu::cuda::cuda_source("bad", defines_for<float>(), 90), "bad", 90);
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("bad.h(2): error"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("nowhere"), std::string::npos) << e.what();
  }
}

TEST_F(NvrtcTest, ItsProgramsAreLoadedAndKept) {
  const Scratch cache;
  const std::string real = getenv("POLYAD_NVRTC_LIBRARY") == nullptr ? "" : getenv("POLYAD_NVRTC_LIBRARY");
  for (const std::uint64_t compilations : {1U, 0U}) {
    const CudaDouble cuda;
    const Variable compiler("POLYAD_NVRTC_LIBRARY", real);
    const auto device = gpu::cuda::open(0, {.memory = 0, .cache = cache.path("")});
    const auto kernel = device->kernel("small", "turn_round", defines_for<float>());
    EXPECT_EQ(device->compilations(), compilations);
    const gpu::Argument arguments[] = {gpu::View{device->allocate(4096), 0}};
    device->make_queue()->launch(*kernel, {{1, 1}, {64, 1}}, arguments)->wait();
    EXPECT_EQ(cuda.launches(), 1U);
  }
}

}  // namespace
}  // namespace polyad::test
