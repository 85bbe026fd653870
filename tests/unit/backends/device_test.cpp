// SPDX-License-Identifier: MIT
// The device interface over OpenCL, on whatever is there (PoCL where there is no GPU), and over CUDA, on the test
// double.
#include <fmt/format.h>
#include <polyad/error.hpp>
#include <polyad/registry.hpp>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>

#include "backends/device_fixture.hpp"
#include "backends/gpu/program.hpp"

namespace polyad::test {
namespace {

class DeviceTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (is_cuda()) double_.emplace();
    const gpu::Found found = is_cuda() ? gpu::cuda::find() : gpu::opencl::find();
    if (found.devices.empty()) GTEST_SKIP() << found.why_none;
  }
  void TearDown() override {
    if (double_) {
      EXPECT_EQ(double_->faults(), "");
    }
  }
  [[nodiscard]] static bool is_cuda() { return GetParam() == std::string_view("cuda"); }
  static gpu::DevicePtr open(DeviceOptions options = {}) {
    // Tests share what they compile, unless they are about that.
    static const Scratch cache;
    if (options.cache.empty()) options.cache = cache.path("");
    return is_cuda() ? gpu::cuda::open(0, options) : gpu::opencl::open(0, options);
  }

  std::optional<CudaDouble> double_;
  SmallTexts texts_;
};

TEST_P(DeviceTest, FactsStayWithinWhatEveryDeviceHas) {
  const auto device = open();
  const gpu::Facts& f = device->facts();
  EXPECT_EQ(f.name, fmt::format("{}:0", GetParam()));
  EXPECT_EQ(f.backend, GetParam());
  EXPECT_FALSE(f.description.empty());
  EXPECT_GE(f.compute_units, 1U);
  EXPECT_LE(f.largest_group, 256U);
  EXPECT_LE(f.local_bytes, 32768U);
  EXPECT_GT(f.memory_bytes, 1U << 20U);
  EXPECT_LE(f.largest_allocation, f.memory_bytes);
  EXPECT_LE(f.offset_alignment, 128U);
}

TEST_P(DeviceTest, MemoryComesBackAsItWent) {
  const auto device = open();
  const auto queue = device->make_queue();
  for (const std::size_t n : {1, 3, 1000, 1 << 20}) {
    std::vector<std::uint8_t> in(n);
    for (std::size_t i = 0; i < n; ++i) in[i] = static_cast<std::uint8_t>(i * 31 + 7);
    const gpu::MemoryPtr memory = device->allocate(n);
    ASSERT_TRUE(memory);
    EXPECT_EQ(memory->bytes(), n);
    std::vector<std::uint8_t> out(n);
    (void)queue->write({memory}, bytes_of(in));
    queue->read(bytes_of(out), {memory})->wait();
    EXPECT_EQ(in, out) << n;
  }
}

TEST_P(DeviceTest, CopiesBeginAtAnyByte) {
  const auto device = open();
  const auto queue = device->make_queue();
  const gpu::MemoryPtr memory = device->allocate(100);
  std::vector<std::uint8_t> all(100, 9);
  const std::vector<std::uint8_t> piece = {1, 2, 3, 4, 5};
  (void)queue->write({memory}, bytes_of(all));
  (void)queue->write({memory, 13}, bytes_of(piece));
  (void)queue->clear({memory, 17}, 3, {});
  std::vector<std::uint8_t> out(9);
  queue->read(bytes_of(out), {memory, 12})->wait();
  EXPECT_EQ(out, (std::vector<std::uint8_t>{9, 1, 2, 3, 4, 0, 0, 0, 9}));
}

TEST_P(DeviceTest, ClearsAnyRange) {
  const auto device = open();
  const auto queue = device->make_queue();
  const gpu::MemoryPtr memory = device->allocate(64);
  for (std::uint64_t begin = 0; begin < 20; ++begin)
    for (std::uint64_t bytes = 0; bytes < 36; bytes += 5) {
      std::vector<std::uint8_t> all(64, 255);
      (void)queue->write({memory}, bytes_of(all));
      (void)queue->clear({memory, begin}, bytes, {});
      std::vector<std::uint8_t> out(64);
      queue->read(bytes_of(out), {memory})->wait();
      std::fill_n(all.begin() + static_cast<std::ptrdiff_t>(begin), bytes, std::uint8_t{0});
      EXPECT_EQ(out, all) << begin << " " << bytes;
    }
}

TEST_P(DeviceTest, RangesOutsideAreRefused) {
  const auto device = open();
  const auto queue = device->make_queue();
  const gpu::MemoryPtr memory = device->allocate(10);
  std::vector<std::uint8_t> eleven(11);
  EXPECT_THROW((void)queue->write({memory}, bytes_of(eleven)), Error);
  EXPECT_THROW((void)queue->read(bytes_of(eleven), {memory}), Error);
  EXPECT_THROW((void)queue->clear({memory, 8}, 3, {}), Error);
  EXPECT_THROW((void)queue->clear({memory, ~std::uint64_t{0}}, 2, {}), Error);
}

TEST_P(DeviceTest, EmptyCommandsAreOverInTurn) {
  const auto device = open();
  const auto queue = device->make_queue();
  const gpu::MemoryPtr memory = device->allocate(0);
  ASSERT_TRUE(memory);
  queue->write({memory}, {})->wait();
  queue->read({}, {memory})->wait();
  const auto kernel = device->kernel("small", "turn_round", defines_for<float>());
  const gpu::Argument nothing[] = {gpu::View{}};
  queue->launch(*kernel, {{0, 1}, {64, 1}}, nothing)->wait();
}

template <class T>
void scale_and_add(gpu::Device& device, std::uint64_t offset) {
  const auto queue = device.make_queue();
  const std::uint64_t n = 10000;
  std::vector<T> x(n);
  std::vector<T> y(n);
  std::iota(x.begin(), x.end(), T{1});
  std::iota(y.begin(), y.end(), T{-500});
  const gpu::View on_x = {device.allocate(n * sizeof(T) + offset), offset};
  const gpu::View on_y = {device.allocate(n * sizeof(T)), 0};
  const gpu::View on_out = {device.allocate(n * sizeof(T) + 2 * offset), 2 * offset};
  (void)queue->write(on_x, bytes_of(x));
  (void)queue->write(on_y, bytes_of(y));
  const auto kernel = device.kernel("small", "scale_add", defines_for<T>());
  const gpu::Argument arguments[] = {on_x, on_y, on_out, n, T{0.5}};
  const gpu::Event done = queue->launch(*kernel, {{7, 1}, {64, 1}}, arguments, {}, "scale");
  std::vector<T> out(n);
  queue->read(bytes_of(out), on_out)->wait();
  for (std::uint64_t i = 0; i < n; ++i) ASSERT_EQ(out[i], x[i] * T{0.5} + y[i]) << i;
  const gpu::EventTimes times = done->times();
  EXPECT_LE(times.queued, times.start);
  EXPECT_LE(times.start, times.end);
  EXPECT_GT(times.end, 0U);
}

TEST_P(DeviceTest, KernelsRunInF32) { scale_and_add<float>(*open(), 0); }

TEST_P(DeviceTest, KernelsRunInF64) {
  const auto device = open();
  if (!device->facts().has_f64) GTEST_SKIP() << "the device has no doubles";
  scale_and_add<double>(*device, 0);
}

TEST_P(DeviceTest, KernelsTakeMemoryFromAByteOn) {
  const auto device = open();
  scale_and_add<float>(*device, device->facts().offset_alignment);
  scale_and_add<float>(*device, device->facts().offset_alignment * 5);
  const auto kernel = device->kernel("small", "turn_round", defines_for<float>());
  const gpu::Argument crooked[] = {gpu::View{device->allocate(4096), 4}};
  if (device->facts().offset_alignment > 4) {
    EXPECT_THROW((void)device->make_queue()->launch(*kernel, {{1, 1}, {64, 1}}, crooked), Error);
  }
}

template <class T>
void add_atomically(gpu::Device& device) {
  const auto queue = device.make_queue();
  const gpu::View out = {device.allocate(65 * sizeof(T)), 0};
  (void)queue->clear(out, 65 * sizeof(T), {});
  const auto kernel = device.kernel("small", "add_all", defines_for<T>());
  const gpu::Argument arguments[] = {out};
  (void)queue->launch(*kernel, {{10, 4}, {64, 1}}, arguments);
  std::vector<T> sums(65);
  queue->read(bytes_of(sums), out)->wait();
  EXPECT_EQ(sums[0], T{2560 * 2559 / 2});
  for (int i = 1; i < 65; ++i) EXPECT_EQ(sums[static_cast<std::size_t>(i)], T{40});
}

TEST_P(DeviceTest, AtomicSumsLoseNothing) {
  const auto device = open();
  add_atomically<float>(*device);
  if (device->facts().has_f64) add_atomically<double>(*device);
}

TEST_P(DeviceTest, GroupsShareLocalMemory) {
  const auto device = open();
  const auto queue = device->make_queue();
  std::vector<std::uint32_t> data(640);
  std::iota(data.begin(), data.end(), 0U);
  const gpu::View on = {device->allocate(data.size() * 4), 0};
  (void)queue->write(on, bytes_of(data));
  auto defines = defines_for<float>();
  defines.insert(defines.end(), {{"PD_ITEMS_0", "64"}, {"PD_ITEMS_1", "1"}});
  const auto kernel = device->kernel("small", "turn_round", defines);
  const gpu::Argument arguments[] = {on};
  (void)queue->launch(*kernel, {{10, 1}, {64, 1}}, arguments);
  std::vector<std::uint32_t> out(640);
  queue->read(bytes_of(out), on)->wait();
  for (std::uint32_t i = 0; i < 640; ++i) ASSERT_EQ(out[i], i / 64 * 64 + 63 - i % 64);
}

TEST_P(DeviceTest, QueuesWaitForEventsOfOthers) {
  const auto device = open();
  const auto kernel = device->kernel("small", "slow_next", defines_for<float>());
  std::vector<std::unique_ptr<gpu::Queue>> queues;
  for (int q = 0; q < 3; ++q) queues.push_back(device->make_queue());
  const gpu::View cell[2] = {{device->allocate(8), 0}, {device->allocate(8), 0}};
  std::vector<std::uint64_t> start = {5};
  gpu::Event last = queues[0]->write(cell[0], bytes_of(start));
  const int steps = 30;
  for (int s = 0; s < steps; ++s) {
    // The earlier a step is, the longer it takes: without the wait the next one would read what is not there yet.
    const gpu::Argument arguments[] = {cell[s % 2], cell[(s + 1) % 2],
                                       std::uint64_t{static_cast<std::uint64_t>(steps - s) * 10000}};
    const gpu::Event after[] = {last, nullptr};
    last = queues[static_cast<std::size_t>(s) % 3]->launch(*kernel, {{1, 1}, {1, 1}}, arguments, after);
  }
  std::vector<std::uint64_t> out(1);
  const gpu::Event after[] = {last};
  queues[1]->read(bytes_of(out), cell[steps % 2], after)->wait();
  EXPECT_EQ(out[0], 5U + steps);
}

TEST_P(DeviceTest, PinnedMemoryIsCopiedFromAndTo) {
  const auto device = open();
  const auto queue = device->make_queue();
  const auto in = device->pin(5000);
  const auto out = device->pin(5000);
  ASSERT_EQ(in->bytes(), 5000U);
  for (int i = 0; i < 5000; ++i) in->data()[i] = static_cast<std::byte>(i * 7);
  std::memset(out->data(), 1, 5000);
  const gpu::MemoryPtr memory = device->allocate(5000);
  (void)queue->write({memory}, {in->data(), 5000});
  queue->read({out->data(), 5000}, {memory})->wait();
  EXPECT_EQ(std::memcmp(in->data(), out->data(), 5000), 0);
}

TEST_P(DeviceTest, MemoryLimitIsKept) {
  const auto device = open({.memory = 1 << 20, .cache = {}});
  EXPECT_EQ(device->facts().memory_bytes, 1U << 20U);
  EXPECT_EQ(device->allocate((1 << 20) + 1), nullptr);
  gpu::MemoryPtr half = device->allocate(1 << 19);
  ASSERT_TRUE(half);
  gpu::MemoryPtr rest = device->allocate(1 << 19);
  ASSERT_TRUE(rest);
  EXPECT_EQ(device->allocate(1), nullptr);
  half.reset();
  EXPECT_TRUE(device->allocate(1 << 19));
}

TEST_P(DeviceTest, MoreThanTheDeviceHasIsNull) { EXPECT_EQ(open()->allocate(std::uint64_t{1} << 60U), nullptr); }

TEST_P(DeviceTest, CompiledKernelsAreKept) {
  const Scratch cache;
  const DeviceOptions options = {.memory = 0, .cache = cache.path("")};
  {
    const auto device = open(options);
    (void)device->kernel("small", "turn_round", defines_for<float>());
    (void)device->kernel("small", "add_all", defines_for<float>());
    EXPECT_EQ(device->compilations(), 1U);
    (void)device->kernel("small", "add_all", defines_for<float>(32));
    EXPECT_EQ(device->compilations(), 2U);
  }
  const auto device = open(options);
  add_atomically<float>(*device);
  EXPECT_EQ(device->compilations(), 0U);
  // Another text is another program.
  const std::string changed = texts_.folder.file("small.h", std::string(small_kernels) + "\n");
  (void)open(options)->kernel("small", "add_all", defines_for<float>());
  const auto third = open(options);
  (void)third->kernel("small", "add_all", defines_for<float>(16));
  EXPECT_EQ(third->compilations(), 1U);
}

TEST_P(DeviceTest, DamagedFilesOfTheCacheAreMadeAgain) {
  const Scratch cache;
  const DeviceOptions options = {.memory = 0, .cache = cache.path("")};
  (void)open(options)->kernel("small", "add_all", defines_for<float>());
  namespace fs = std::filesystem;
  ASSERT_EQ(std::distance(fs::directory_iterator(cache.path("kernels")), {}), 1);
  const std::string file = fs::directory_iterator(cache.path("kernels"))->path().string();
  const std::string good = cache.content("kernels/" + fs::path(file).filename().string());
  std::string flipped = good;
  flipped[good.size() / 2] ^= 1;
  for (const std::string& bad : {flipped, good.substr(0, good.size() / 2), std::string(), std::string("junk")}) {
    std::ofstream(file, std::ios::binary) << bad;
    const auto device = open(options);
    add_atomically<float>(*device);
    EXPECT_EQ(device->compilations(), 1U);
    const auto next = open(options);
    (void)next->kernel("small", "add_all", defines_for<float>());
    EXPECT_EQ(next->compilations(), 0U);
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(cache.path("kernels")), {}), 1);
}

TEST(ProgramCache, KeepsProgramsByTheirKeys) {
  const Scratch folder;
  const gpu::ProgramCache cache(folder.path(""));
  cache.store("one", "program 1");
  cache.store("two", "program 2");
  EXPECT_EQ(cache.load("one"), "program 1");
  EXPECT_EQ(cache.load("three"), "");
  // A file under another's name is not that program.
  std::filesystem::copy_file(cache.path("one"), cache.path("two"), std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(cache.load("two"), "");
  cache.store("two", "program 2");
  EXPECT_EQ(cache.load("two"), "program 2");
}

TEST(ProgramCache, WhatWasLeftHalfWrittenGoes) {
  namespace fs = std::filesystem;
  const Scratch folder;
  const gpu::ProgramCache cache(folder.path(""));
  cache.store("one", "program");
  const std::string old = cache.path("one") + ".abcdef";
  const std::string young = cache.path("one") + ".ghijkl";
  for (const std::string& file : {old, young}) std::ofstream(file) << "half";
  const auto yesterday = fs::file_time_type::clock::now() - std::chrono::hours(24);
  fs::last_write_time(old, yesterday);
  fs::last_write_time(cache.path("one"), yesterday);
  cache.store("two", "program");
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(young)) << "somebody may be writing it";
  EXPECT_EQ(cache.load("one"), "program");
}

TEST_P(DeviceTest, AFolderThatCannotBeWrittenIsNoError) {
  const auto device = open({.memory = 0, .cache = "/dev/null/nowhere"});
  (void)device->kernel("small", "add_all", defines_for<float>());
  EXPECT_EQ(device->compilations(), 1U);
}

std::string message(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST_P(DeviceTest, TheCompilersWordsArrive) {
  const std::string bad = texts_.folder.file("bad.h", "PD_KERNEL void f(PD_GLOBAL real* x) {\n  x[0] = nowhere;\n}\n");
  const auto device = open();
  const std::string words = message([&] { (void)device->kernel("bad", "f", defines_for<float>()); });
  EXPECT_NE(words.find("bad.h"), std::string::npos) << words;
  EXPECT_NE(words.find("nowhere"), std::string::npos) << words;
  EXPECT_NE(words.find("bad.h:2"), std::string::npos) << words;
}

TEST_P(DeviceTest, WhatIsNotThereIsASentence) {
  const auto device = open();
  EXPECT_EQ(message([&] { (void)device->kernel("nothing", "f", {}); }), "there is no kernel text 'nothing'");
  EXPECT_EQ(message([&] { (void)device->kernel("small", "f", defines_for<float>()); }),
            "there is no kernel 'f' in small.h");
  const auto kernel = device->kernel("small", "add_all", defines_for<float>());
  const gpu::Argument out[] = {gpu::View{device->allocate(4096), 0}};
  EXPECT_NE(message([&] {
              (void)device->make_queue()->launch(*kernel, {{1, 1}, {512, 1}}, out);
            }).find("work-items"),
            std::string::npos);
}

TEST_P(DeviceTest, TwoDevicesWorkSideBySide) {
  const std::array both = {open(), open()};  // to drivers it is the same whether there are two of them
  // An event of one makes a queue of the other wait.
  const auto kernel = both[0]->kernel("small", "slow_next", defines_for<float>());
  const auto first = both[0]->make_queue();
  const auto second = both[1]->make_queue();
  std::vector<std::uint64_t> value = {41};
  const gpu::View a = {both[0]->allocate(8), 0};
  const gpu::View b = {both[0]->allocate(8), 0};
  (void)first->write(a, bytes_of(value));
  const gpu::Argument arguments[] = {a, b, std::uint64_t{1000000}};
  (void)first->launch(*kernel, {{1, 1}, {1, 1}}, arguments);
  std::vector<std::uint64_t> between(1);
  const gpu::Event after[] = {first->read(bytes_of(between), b)};
  const gpu::View c = {both[1]->allocate(8), 0};
  (void)second->write(c, bytes_of(between), after);
  std::vector<std::uint64_t> out(1);
  second->read(bytes_of(out), c)->wait();
  EXPECT_EQ(out[0], 42U);
}

// What only OpenCL can be asked.
TEST(OpenCl, LocalMemoryAndArgumentsAreChecked) {
  const gpu::Found found = gpu::opencl::find();
  if (found.devices.empty()) GTEST_SKIP() << found.why_none;
  const SmallTexts texts;
  const auto device = gpu::opencl::open(0, {});
  const std::string greedy = texts.folder.file("greedy.h",
                                               "PD_KERNEL void f(PD_GLOBAL u32* x) {\n  PD_LOCAL(u32, big, 10000);\n"
                                               "  big[x[0]] = x[1];\n  PD_BARRIER();\n  x[0] = big[x[2]];\n}\n");
  const std::string much = message([&] { (void)device->kernel("greedy", "f", defines_for<float>()); });
  EXPECT_NE(much.find("40000 bytes of local memory"), std::string::npos) << much;
  const auto kernel = device->kernel("small", "add_all", defines_for<float>());
  const std::string few = message([&] { (void)device->make_queue()->launch(*kernel, {{1, 1}, {64, 1}}, {}); });
  EXPECT_NE(few.find("has 1 parameters, 0 arguments"), std::string::npos) << few;
}

INSTANTIATE_TEST_SUITE_P(Doors, DeviceTest, testing::Values("opencl", "cuda"),
                         [](const auto& door) { return std::string(door.param); });

}  // namespace
}  // namespace polyad::test
