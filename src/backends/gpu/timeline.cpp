// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <tuple>

#include "backends/gpu/device.hpp"
#include "polyad/device.hpp"

namespace polyad {

namespace {

using gpu::Argument;
using gpu::Event;
using gpu::View;

enum class Kind : std::uint8_t { copy, kernel };

/// Bytes of a device memory that a command uses. The weak pointer tells memory from memory that came later.
struct Use {
  std::weak_ptr<gpu::Memory> memory;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

struct Command {
  std::uint32_t device = 0;
  std::uint32_t queue = 0;
  std::string label;
  Kind kind = Kind::copy;
  bool writes = false;  // a copy in, a clear
  std::vector<Use> uses;
  Event event;
};

bool same_memory(const Use& a, const Use& b) {
  return !a.memory.owner_before(b.memory) && !b.memory.owner_before(a.memory);
}

bool share_bytes(const Command& a, const Command& b) {
  for (const Use& x : a.uses)
    for (const Use& y : b.uses)
      if (same_memory(x, y) && x.begin < y.end && y.begin < x.end) return true;
  return false;
}

/// Whether two commands may not run at the same time on the same bytes.
bool exclude_each_other(const Command& a, const Command& b) {
  if (a.kind == Kind::kernel && b.kind == Kind::kernel) return false;
  return a.writes || b.writes || a.kind != b.kind;
}

}  // namespace

/// What was recorded; shared by the timeline and the queues that it watches.
struct Timeline::Record {
  std::mutex mutex;
  std::vector<std::string> devices;   // names
  std::vector<std::uint32_t> queues;  // made so far, per device
  std::vector<Command> commands;

  void add(Command command) {
    const std::scoped_lock lock(mutex);
    commands.push_back(std::move(command));
  }

  /// The commands and their times, all over.
  [[nodiscard]] std::vector<std::pair<Command, gpu::EventTimes>> finished() {
    std::vector<Command> all;
    {
      const std::scoped_lock lock(mutex);
      all = commands;
    }
    std::vector<std::pair<Command, gpu::EventTimes>> timed;
    for (Command& c : all) {
      c.event->wait();
      const gpu::EventTimes times = c.event->times();
      timed.emplace_back(std::move(c), times);
    }
    return timed;
  }
};

namespace {

/// Hands everything on to a queue and records it.
template <class Record>
class WatchedQueue final : public gpu::Queue {
 public:
  WatchedQueue(std::unique_ptr<gpu::Queue> queue, std::shared_ptr<Record> record, std::uint32_t device,
               std::uint32_t number)
      : queue_(std::move(queue)), record_(std::move(record)), device_(device), number_(number) {}

  Event write(const View& to, std::span<const std::byte> from, std::span<const Event> after,
              std::string_view label) override {
    return note(queue_->write(to, from, after, label), label, Kind::copy, true, {use_of(to, from.size())});
  }
  Event read(std::span<std::byte> to, const View& from, std::span<const Event> after, std::string_view label) override {
    return note(queue_->read(to, from, after, label), label, Kind::copy, false, {use_of(from, to.size())});
  }
  Event clear(const View& to, std::uint64_t bytes, std::span<const Event> after) override {
    return note(queue_->clear(to, bytes, after), "clear", Kind::copy, true, {use_of(to, bytes)});
  }
  Event launch(gpu::Kernel& kernel, const gpu::Grid& grid, std::span<const Argument> arguments,
               std::span<const Event> after, std::string_view label) override {
    std::vector<Use> uses;
    for (const Argument& a : arguments) {
      const View* view = std::get_if<View>(&a);
      if (view == nullptr || !view->memory) continue;
      std::uint64_t end = view->memory->bytes();
      for (const Argument& b : arguments)
        if (const View* other = std::get_if<View>(&b);
            other != nullptr && other->memory == view->memory && other->offset > view->offset)
          end = std::min(end, other->offset);
      uses.push_back({view->memory, view->offset, end});
    }
    return note(queue_->launch(kernel, grid, arguments, after, label), label, Kind::kernel, true, std::move(uses));
  }
  void flush() override { queue_->flush(); }
  void finish() override { queue_->finish(); }

 private:
  static Use use_of(const View& view, std::uint64_t bytes) { return {view.memory, view.offset, view.offset + bytes}; }

  Event note(Event event, std::string_view label, Kind kind, bool writes, std::vector<Use> uses) {
    if (event)
      record_->add({device_, number_, std::string(label), kind, kind == Kind::copy && writes, std::move(uses), event});
    return event;
  }

  std::unique_ptr<gpu::Queue> queue_;
  std::shared_ptr<Record> record_;
  std::uint32_t device_;
  std::uint32_t number_;
};

/// A device whose queues are watched.
template <class Record>
class WatchedDevice final : public gpu::Device {
 public:
  WatchedDevice(gpu::DevicePtr device, std::shared_ptr<Record> record, std::uint32_t number)
      : device_(std::move(device)), record_(std::move(record)), number_(number) {}

  [[nodiscard]] const gpu::Facts& facts() const override { return device_->facts(); }
  [[nodiscard]] gpu::MemoryPtr allocate(std::uint64_t bytes) override { return device_->allocate(bytes); }
  [[nodiscard]] std::unique_ptr<gpu::PinnedMemory> pin(std::uint64_t bytes) override { return device_->pin(bytes); }
  [[nodiscard]] std::unique_ptr<gpu::Queue> make_queue() override {
    std::uint32_t queue = 0;
    {
      const std::scoped_lock lock(record_->mutex);
      queue = record_->queues[number_]++;
    }
    return std::make_unique<WatchedQueue<Record>>(device_->make_queue(), record_, number_, queue);
  }
  [[nodiscard]] gpu::KernelPtr kernel(std::string_view unit, std::string_view function,
                                      std::span<const gpu::Define> defines) override {
    return device_->kernel(unit, function, defines);
  }
  [[nodiscard]] std::uint64_t compilations() const override { return device_->compilations(); }

 private:
  gpu::DevicePtr device_;
  std::shared_ptr<Record> record_;
  std::uint32_t number_;
};

}  // namespace

Timeline::Timeline() : record_(std::make_shared<Record>()) {}
Timeline::~Timeline() = default;

std::vector<std::shared_ptr<gpu::Device>> Timeline::watch(const std::vector<std::shared_ptr<gpu::Device>>& devices) {
  std::vector<std::shared_ptr<gpu::Device>> watched;
  const std::scoped_lock lock(record_->mutex);
  for (const auto& d : devices) {
    const auto number = static_cast<std::uint32_t>(record_->devices.size());
    // A device that is listed twice is two lanes of queues.
    const auto same = std::count_if(record_->devices.begin(), record_->devices.end(), [&](const std::string& name) {
      return name == d->facts().name || name.starts_with(d->facts().name + " (");
    });
    record_->devices.push_back(same == 0 ? d->facts().name : fmt::format("{} ({})", d->facts().name, same + 1));
    record_->queues.push_back(0);
    watched.push_back(std::make_shared<WatchedDevice<Record>>(d, record_, number));
  }
  return watched;
}

std::vector<TimelineSpan> Timeline::spans() const {
  auto commands = record_->finished();
  std::vector<std::uint64_t> first(record_->devices.size(), std::numeric_limits<std::uint64_t>::max());
  for (const auto& [c, t] : commands) first[c.device] = std::min(first[c.device], t.start);
  std::stable_sort(commands.begin(), commands.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.first.device, a.first.queue, a.second.start) <
           std::tuple(b.first.device, b.first.queue, b.second.start);
  });
  std::vector<TimelineSpan> spans;
  for (const auto& [c, t] : commands) {
    const auto seconds = [&, start = first[c.device]](std::uint64_t ns) {
      return static_cast<double>(ns - std::min(ns, start)) * 1e-9;
    };
    spans.push_back({fmt::format("{} queue {}", record_->devices[c.device], c.queue + 1), c.label, seconds(t.start),
                     seconds(std::max(t.start, t.end))});
  }
  return spans;
}

std::vector<std::string> Timeline::conflicts() const {
  auto commands = record_->finished();
  std::stable_sort(commands.begin(), commands.end(),
                   [](const auto& a, const auto& b) { return a.second.start < b.second.start; });
  std::vector<std::string> sentences;
  // By their begins: a command is compared with those that began before it was over.
  for (std::size_t i = 0; i < commands.size(); ++i)
    for (std::size_t j = i + 1; j < commands.size(); ++j) {
      const auto& [a, when_a] = commands[i];
      const auto& [b, when_b] = commands[j];
      if (when_b.start >= when_a.end) break;
      if (when_b.start == when_b.end || a.device != b.device || a.queue == b.queue) continue;
      if (!exclude_each_other(a, b) || !share_bytes(a, b)) continue;
      sentences.push_back(
          fmt::format("'{}' of queue {} and '{}' of queue {} of {} used the same memory at the same time ({} ns)",
                      a.label, a.queue + 1, b.label, b.queue + 1, record_->devices[a.device],
                      std::min(when_a.end, when_b.end) - when_b.start));
    }
  return sentences;
}

void Timeline::clear() {
  const std::scoped_lock lock(record_->mutex);
  record_->commands.clear();
}

}  // namespace polyad
