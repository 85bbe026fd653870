// SPDX-License-Identifier: MIT
// The recorder, on a device whose commands take the times that the test says.
#include <memory>

#include "backends/device_fixture.hpp"

namespace polyad::test {
namespace {

struct FakeMemory final : gpu::Memory {
  [[nodiscard]] std::uint64_t bytes() const override { return 1000; }
};
struct FakeEvent final : gpu::EventBody {
  explicit FakeEvent(gpu::EventTimes t) : when(t) {}
  void wait() override { waited = true; }
  [[nodiscard]] gpu::EventTimes times() override { return waited ? when : gpu::EventTimes{}; }
  gpu::EventTimes when;
  bool waited = false;
};
struct FakeKernel final : gpu::Kernel {};
/// The next command's times, in nanoseconds.
struct Script {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};
class FakeQueue final : public gpu::Queue {
 public:
  explicit FakeQueue(Script& script) : script_(script) {}
  gpu::Event write(const gpu::View&, std::span<const std::byte>, std::span<const gpu::Event>,
                   std::string_view) override {
    return next();
  }
  gpu::Event read(std::span<std::byte>, const gpu::View&, std::span<const gpu::Event>, std::string_view) override {
    return next();
  }
  gpu::Event clear(const gpu::View&, std::uint64_t, std::span<const gpu::Event>) override { return next(); }
  gpu::Event launch(gpu::Kernel&, const gpu::Grid&, std::span<const gpu::Argument>, std::span<const gpu::Event>,
                    std::string_view) override {
    return next();
  }
  void flush() override {}
  void finish() override {}

 private:
  gpu::Event next() { return std::make_shared<FakeEvent>(gpu::EventTimes{script_.begin, script_.begin, script_.end}); }
  Script& script_;
};
class FakeDevice final : public gpu::Device {
 public:
  explicit FakeDevice(Script& script) : script_(script) { facts_.name = "fake:0"; }
  [[nodiscard]] const gpu::Facts& facts() const override { return facts_; }
  [[nodiscard]] gpu::MemoryPtr allocate(std::uint64_t) override { return std::make_shared<FakeMemory>(); }
  [[nodiscard]] std::unique_ptr<gpu::PinnedMemory> pin(std::uint64_t) override { return nullptr; }
  [[nodiscard]] std::unique_ptr<gpu::Queue> make_queue() override { return std::make_unique<FakeQueue>(script_); }
  [[nodiscard]] gpu::KernelPtr kernel(std::string_view, std::string_view, std::span<const gpu::Define>) override {
    return std::make_shared<FakeKernel>();
  }

 private:
  Script& script_;
  gpu::Facts facts_;
};

class TimelineTest : public testing::Test {
 protected:
  Script script_;
  Timeline timeline_;
  gpu::DevicePtr device_ = timeline_.watch({std::make_shared<FakeDevice>(script_)})[0];
  std::unique_ptr<gpu::Queue> copies_ = device_->make_queue();
  std::unique_ptr<gpu::Queue> kernels_ = device_->make_queue();
  gpu::KernelPtr kernel_ = device_->kernel("", "", {});
  gpu::MemoryPtr slot_ = device_->allocate(1000);
  gpu::MemoryPtr other_ = device_->allocate(1000);
  std::vector<std::uint8_t> host_ = std::vector<std::uint8_t>(100);

  void at(std::uint64_t begin, std::uint64_t end) { script_ = {begin, end}; }
  void copy_in(const gpu::View& to) { (void)copies_->write(to, bytes_of(std::as_const(host_))); }
  void copy_out(const gpu::View& from) { (void)copies_->read(bytes_of(host_), from); }
  void run(std::vector<gpu::Argument> arguments) { (void)kernels_->launch(*kernel_, {}, arguments, {}, "work"); }
};

TEST_F(TimelineTest, SpansHaveLanesLabelsAndSeconds) {
  at(5000, 6000);
  copy_in({slot_});
  at(6000, 9000);
  run({gpu::View{slot_}});
  at(5500, 5600);
  (void)kernels_->clear({other_}, 10);
  const auto spans = timeline_.spans();
  ASSERT_EQ(spans.size(), 3U);
  EXPECT_EQ(spans[0].lane, "fake:0 queue 1");
  EXPECT_EQ(spans[0].label, "copy in");
  EXPECT_DOUBLE_EQ(spans[0].begin, 0);
  EXPECT_DOUBLE_EQ(spans[0].end, 1e-6);
  EXPECT_EQ(spans[1].lane, "fake:0 queue 2");
  EXPECT_EQ(spans[1].label, "clear");
  EXPECT_DOUBLE_EQ(spans[1].begin, 0.5e-6);
  EXPECT_EQ(spans[2].label, "work");
  EXPECT_DOUBLE_EQ(spans[2].end, 4e-6);
  EXPECT_TRUE(timeline_.conflicts().empty());
  timeline_.clear();
  EXPECT_TRUE(timeline_.spans().empty());
}

TEST_F(TimelineTest, ACopyIntoASlotInUseIsAConflict) {
  at(1000, 3000);
  run({gpu::View{slot_}, std::uint64_t{7}});
  at(2900, 3500);
  copy_in({slot_});
  const auto conflicts = timeline_.conflicts();
  ASSERT_EQ(conflicts.size(), 1U);
  EXPECT_EQ(conflicts[0],
            "'work' of queue 2 and 'copy in' of queue 1 of fake:0 used the same memory at the same time (100 ns)");
}

TEST_F(TimelineTest, WhatIsNoConflict) {
  at(1000, 3000);
  run({gpu::View{slot_, 0}, gpu::View{slot_, 500}, gpu::View{}});
  at(3000, 3500);  // afterwards
  copy_in({slot_});
  at(1000, 3000);  // other memory
  copy_in({other_});
  copy_out({other_});  // of the same queue
  std::unique_ptr<gpu::Queue> third = device_->make_queue();
  (void)third->launch(*kernel_, {}, std::vector<gpu::Argument>{gpu::View{slot_}}, {}, "reads it too");
  EXPECT_TRUE(timeline_.conflicts().empty());
}

TEST_F(TimelineTest, BytesBesideEachOtherAreNoConflict) {
  at(1000, 3000);
  run({gpu::View{slot_, 200}});
  copy_in({slot_, 100});  // bytes 100 to 199
  EXPECT_TRUE(timeline_.conflicts().empty());
  copy_out({slot_, 101});  // bytes 101 to 200: the kernel may be writing them
  EXPECT_EQ(timeline_.conflicts().size(), 1U);
}

TEST_F(TimelineTest, MemoryThatCameLaterIsOtherMemory) {
  for (int i = 0; i < 20; ++i) {  // allocators give the same address again
    gpu::MemoryPtr brief = device_->allocate(1000);
    at(1000, 2000);
    if (i % 2 == 0) {
      run({gpu::View{brief}});
    } else {
      copy_in({brief});
    }
  }
  EXPECT_TRUE(timeline_.conflicts().empty());
}

TEST_F(TimelineTest, ADeviceThatIsWatchedTwiceHasTwoNames) {
  Timeline both;
  const auto device = std::make_shared<FakeDevice>(script_);
  const auto watched = both.watch({device, device});
  at(1, 2);
  for (const auto& d : watched) (void)d->make_queue()->clear({slot_}, 1);
  const auto spans = both.spans();
  ASSERT_EQ(spans.size(), 2U);
  EXPECT_EQ(spans[0].lane, "fake:0 queue 1");
  EXPECT_EQ(spans[1].lane, "fake:0 (2) queue 1");
}

TEST(TimelineOnOpenCl, RecordsWhatRan) {
  const gpu::Found found = gpu::opencl::find();
  if (found.devices.empty()) GTEST_SKIP() << found.why_none;
  const SmallTexts texts;
  Timeline timeline;
  const auto device = timeline.watch(open_devices("opencl:0"))[0];
  const auto kernel = device->kernel("small", "turn_round", defines_for<float>());
  const auto in = device->make_queue();
  const auto work = device->make_queue();
  std::vector<std::uint32_t> data(6400, 1);
  const gpu::View slot = {device->allocate(data.size() * 4), 0};
  gpu::Event last;
  for (int i = 0; i < 5; ++i) {
    const gpu::Event worked[] = {last};
    const gpu::Event copied[] = {in->write(slot, bytes_of(std::as_const(data)), worked)};
    const gpu::Argument arguments[] = {slot};
    last = work->launch(*kernel, {{100, 1}, {64, 1}}, arguments, copied, "turn");
  }
  const auto spans = timeline.spans();
  EXPECT_EQ(spans.size(), 10U);
  for (const auto& s : spans) {
    EXPECT_GE(s.begin, 0);
    EXPECT_GE(s.end, s.begin);
  }
  EXPECT_EQ(timeline.conflicts(), std::vector<std::string>());
}

}  // namespace
}  // namespace polyad::test
