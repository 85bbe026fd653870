// SPDX-License-Identifier: MIT
#include "device/plain_device.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <regex>
#include <thread>
#include <utility>

#include "backends/gpu/memory_count.hpp"
#include "backends/gpu/program.hpp"
#include "device/plain_item.hpp"
#include "polyad/error.hpp"

namespace polyad::plain {

namespace f32 {
Function find(const std::string& function);
}
namespace f64 {
Function find(const std::string& function);
}

namespace {

constexpr int groups_at_a_time = 2;

class PlainMemory final : public gpu::Memory {
 public:
  PlainMemory(std::shared_ptr<gpu::MemoryCount> count, std::uint64_t size)
      : taken_(std::move(count), size), bytes_(new std::byte[size]) {
    std::fill_n(bytes_.get(), size, std::byte{0xCD});
  }
  [[nodiscard]] std::uint64_t bytes() const override { return taken_.bytes(); }
  [[nodiscard]] std::byte* data() const { return bytes_.get(); }

 private:
  gpu::Taken taken_;
  std::unique_ptr<std::byte[]> bytes_;
};

std::byte* place(const gpu::View& view) { return dynamic_cast<PlainMemory&>(*view.memory).data() + view.offset; }

class PlainPinned final : public gpu::PinnedMemory {
 public:
  explicit PlainPinned(std::uint64_t size) : bytes_(size) {}
  [[nodiscard]] std::byte* data() const override { return const_cast<std::byte*>(bytes_.data()); }
  [[nodiscard]] std::uint64_t bytes() const override { return bytes_.size(); }

 private:
  std::vector<std::byte> bytes_;
};

/// All is over when a call returns.
class PlainEvent final : public gpu::EventBody {
 public:
  explicit PlainEvent(gpu::EventTimes times) : times_(times) {}
  void wait() override {}
  [[nodiscard]] gpu::EventTimes times() override { return times_; }

 private:
  gpu::EventTimes times_;
};

class PlainKernel final : public gpu::Kernel {
 public:
  PlainKernel(std::string_view of_name, Function f, const Numbers& n) : name(of_name), function(f), numbers(n) {}

  std::string name;
  Function function;
  Numbers numbers;
};

std::mutex launches_mutex;
std::set<std::string> launches;

class PlainQueue final : public gpu::Queue {
 public:
  gpu::Event write(const gpu::View& to, std::span<const std::byte> from, std::span<const gpu::Event>,
                   std::string_view) override {
    return timed([&] {
      gpu::check_range(to, from.size(), "write");
      std::memcpy(place(to), from.data(), from.size());
    });
  }
  gpu::Event read(std::span<std::byte> to, const gpu::View& from, std::span<const gpu::Event>,
                  std::string_view) override {
    return timed([&] {
      gpu::check_range(from, to.size(), "read");
      std::memcpy(to.data(), place(from), to.size());
    });
  }
  gpu::Event clear(const gpu::View& to, std::uint64_t bytes, std::span<const gpu::Event>) override {
    return timed([&] {
      gpu::check_range(to, bytes, "clear");
      std::memset(place(to), 0, bytes);
    });
  }
  gpu::Event launch(gpu::Kernel& kernel, const gpu::Grid& grid, std::span<const gpu::Argument> arguments,
                    std::span<const gpu::Event>, std::string_view) override {
    const auto& mine = dynamic_cast<PlainKernel&>(kernel);
    {
      const std::scoped_lock lock(launches_mutex);
      launches.insert(mine.name);
    }
    return timed([&] { run(mine, grid, arguments); });
  }
  void flush() override {}
  void finish() override {}

 private:
  template <class F>
  static gpu::Event timed(const F& f) {
    const auto now = [] {
      return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                                        std::chrono::nanoseconds(1));
    };
    gpu::EventTimes t;
    t.queued = t.start = now();
    f();
    t.end = now();
    return std::make_shared<PlainEvent>(t);
  }

  static void run(const PlainKernel& kernel, const gpu::Grid& grid, std::span<const gpu::Argument> arguments) {
    std::array<std::byte*, 5> at = {};
    for (std::size_t k = 0; k < at.size(); ++k) at[k] = place(std::get<gpu::View>(arguments[k]));
    const std::uint64_t groups = grid.groups[0] * grid.groups[1];
    std::vector<std::thread> threads;
    std::vector<std::unique_ptr<Group>> teams;
    for (std::uint64_t team = 0; team < std::min<std::uint64_t>(groups, groups_at_a_time); ++team) {
      Group* group = teams.emplace_back(std::make_unique<Group>(grid.items, kernel.numbers)).get();
      for (std::uint32_t y = 0; y < grid.items[1]; ++y)
        for (std::uint32_t x = 0; x < grid.items[0]; ++x)
          threads.emplace_back([=, &kernel, &grid] {
            Item item{group, {}, grid.groups, {x, y}, 0};
            pd_item = &item;
            for (std::uint64_t g = team; g < groups; g += groups_at_a_time) {
              item.group_id = {g % grid.groups[0], g / grid.groups[0]};
              item.local_arrays = 0;
              kernel.function(at[0], at[1], at[2], at[3], at[4]);
              group->barrier.arrive_and_wait();  // local memory serves the next group
            }
            pd_item = nullptr;
          });
    }
    for (std::thread& t : threads) t.join();
  }
};

class PlainDevice final : public gpu::Device {
 public:
  explicit PlainDevice(const Options& options) : count_(std::make_shared<gpu::MemoryCount>(options.memory_bytes)) {
    facts_.name = "plain:0";
    facts_.backend = "plain";
    facts_.description = "kernel texts as C++";
    facts_.has_f64 = options.has_f64;
    facts_.largest_group = options.largest_group;
    facts_.memory_bytes = options.memory_bytes;
    facts_.largest_allocation = options.memory_bytes;
  }
  [[nodiscard]] const gpu::Facts& facts() const override { return facts_; }
  [[nodiscard]] gpu::MemoryPtr allocate(std::uint64_t bytes) override {
    if (!count_->take(bytes)) return nullptr;
    return std::make_shared<PlainMemory>(count_, bytes);
  }
  [[nodiscard]] std::unique_ptr<gpu::PinnedMemory> pin(std::uint64_t bytes) override {
    return std::make_unique<PlainPinned>(bytes);
  }
  [[nodiscard]] std::unique_ptr<gpu::Queue> make_queue() override { return std::make_unique<PlainQueue>(); }
  [[nodiscard]] gpu::KernelPtr kernel(std::string_view, std::string_view function,
                                      std::span<const gpu::Define> defines) override {
    Numbers n;
    int bits = 32;
    const std::array<std::pair<std::string_view, std::uint64_t*>, 8> numbers = {{{"PD_ORDER", &n.order},
                                                                                 {"PD_LEVEL", &n.level},
                                                                                 {"PD_RUNS", &n.runs},
                                                                                 {"PD_BINS", &n.bins},
                                                                                 {"PD_CHUNK", &n.chunk},
                                                                                 {"PD_COLUMNS", &n.columns},
                                                                                 {"PD_INTERLEAVED", &n.interleaved},
                                                                                 {"PD_SEAMS", &n.seams}}};
    for (const auto& [name, value] : defines) {
      if (name == "PD_REAL_BITS") bits = std::stoi(value);
      if ((name == "PD_INDEX" || name == "PD_OFFSET" || name == "PD_SLICE_OFFSET") && value != "u32")
        throw usage_error("the C++ door has 32-bit indices only");
      for (const auto& [known, to] : numbers)
        if (name == known) *to = std::stoull(value);
    }
    const Function found = bits == 32 ? f32::find(std::string(function)) : f64::find(std::string(function));
    if (found == nullptr) throw usage_error(fmt::format("the C++ door has no kernel {}", function));
    return std::make_shared<PlainKernel>(function, found, n);
  }

 private:
  gpu::Facts facts_;
  std::shared_ptr<gpu::MemoryCount> count_;
};

}  // namespace

gpu::DevicePtr make_device(const Options& options) { return std::make_shared<PlainDevice>(options); }

std::set<std::string> launched() {
  const std::scoped_lock lock(launches_mutex);
  return std::exchange(launches, {});
}

std::set<std::string> kernels_of(std::string_view texts) {
  static const std::regex kernel("PD_KERNEL void (\\w+)\\(");
  std::set<std::string> names;
  for (const gpu::Text& t : gpu::texts()) {
    if (!t.name.starts_with(texts)) continue;
    const std::string text(*t.text);
    for (std::sregex_iterator k(text.begin(), text.end(), kernel), end; k != end; ++k) names.insert((*k)[1]);
  }
  return names;
}

}  // namespace polyad::plain
