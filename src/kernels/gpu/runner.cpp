// SPDX-License-Identifier: MIT
#include "kernels/gpu/runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "polyad/error.hpp"

namespace polyad::gpu {

namespace {

constexpr std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + slot_alignment - 1) / slot_alignment * slot_alignment;
}

/// Numbers of the head without what add_seams reads.
std::uint64_t first_head_bytes(const Part& part, std::size_t factors) {
  return aligned((part.numbers.size() + part.arrays.size() + factors) * sizeof(std::uint64_t));
}

/// The head as it lies in a slot: that of the kernel, then that of add_seams.
std::vector<std::uint64_t> whole_head(const Part& part, std::span<const std::uint64_t> factor_rows,
                                      std::uint64_t stride) {
  std::vector<std::uint64_t> head = head_of(part, factor_rows);
  head.resize(first_head_bytes(part, factor_rows.size()) / sizeof(std::uint64_t));
  head.push_back(part.chunks);
  head.push_back(stride);
  head.resize(head_bytes(part, factor_rows.size()) / sizeof(std::uint64_t));
  return head;
}

}  // namespace

std::uint64_t head_bytes(const Part& part, std::size_t factors) {
  return first_head_bytes(part, factors) + slot_alignment;
}

std::array<std::uint32_t, 2> group_items(std::uint64_t stride, const Facts& facts) {
  const std::uint32_t most = std::bit_floor(std::clamp<std::uint32_t>(facts.largest_group, 1, 256));
  const auto lanes = std::min<std::uint32_t>(
      {static_cast<std::uint32_t>(std::bit_ceil(std::min<std::uint64_t>(stride, 32))), 32, most});
  return {lanes, most / lanes};
}

DeviceState::DeviceState(DevicePtr device)
    : device_(std::move(device)), copies_(device_->make_queue()), compute_(device_->make_queue()) {}

KernelPtr DeviceState::kernel(std::string_view unit, std::string_view function, std::span<const Define> defines) {
  std::string key = fmt::format("{} {}", unit, function);
  for (const Define& d : defines) key += fmt::format(" {}={}", d.first, d.second);
  KernelPtr& found = kernels_[key];
  if (!found) found = device_->kernel(unit, function, defines);
  return found;
}

MemoryPtr DeviceState::try_allocate(std::uint64_t bytes, bool may_evict) {
  bytes = std::max(aligned(bytes), slot_alignment);
  for (;;) {
    if (bytes <= facts().largest_allocation)
      if (MemoryPtr memory = device_->allocate(bytes)) return memory;
    if (!may_evict || residents.empty()) return nullptr;
    residents.erase(std::min_element(residents.begin(), residents.end(),
                                     [](const auto& a, const auto& b) { return a.second.used < b.second.used; }));
  }
}

bool DeviceState::try_room(const std::string& purpose, std::uint64_t bytes) {
  const auto found = rooms_.find(purpose);
  if (found != rooms_.end() && found->second->bytes() >= bytes) return true;
  if (found != rooms_.end()) rooms_.erase(found);
  MemoryPtr memory = try_allocate(bytes, false);
  if (!memory && !passing.empty()) {
    passing.clear();
    memory = try_allocate(bytes, false);
  }
  if (!memory) memory = try_allocate(bytes, true);
  if (!memory) return false;
  rooms_[purpose] = std::move(memory);
  return true;
}

View DeviceState::room(const std::string& purpose, std::uint64_t bytes) {
  if (try_room(purpose, bytes)) return {rooms_[purpose], 0};
  throw Error(ErrorKind::limit,
              fmt::format("{} has no room for {}: {:.2f} MB, of {:.2f} MB that may be used, at most {:.2f} MB at once",
                          facts().name, purpose, static_cast<double>(bytes) / 1e6,
                          static_cast<double>(facts().memory_bytes) / 1e6,
                          static_cast<double>(facts().largest_allocation) / 1e6));
}

std::uint64_t DeviceState::room_bytes() const {
  std::uint64_t sum = 0;
  for (const auto& [purpose, memory] : rooms_) sum += memory->bytes();
  return sum;
}

void DeviceState::fill(Slot& slot, const Part& part, std::span<const std::uint64_t> factor_rows, std::uint64_t stride) {
  std::vector<std::uint64_t> head = whole_head(part, factor_rows, stride);
  const std::uint64_t in_front = head.size() * sizeof(std::uint64_t);
  const Event before = slot.used;
  const std::span<const Event> after(&before, before ? 1 : 0);
  if (slot.staging) {
    // The copy before must have left the staging memory; the kernel that reads the slot need not be over yet.
    if (slot.written) slot.written->wait();
    std::byte* to = slot.staging->data();
    std::memcpy(to, head.data(), in_front);
    std::uint64_t at = in_front;
    for (const auto& a : part.arrays) {
      std::memcpy(to + at, a.data(), a.size());
      at += aligned(a.size());
    }
    slot.written = copies_->write({slot.memory, 0}, {to, static_cast<std::size_t>(at)}, after);
  } else {
    heads_.push_back(std::move(head));
    slot.written = copies_->write({slot.memory, 0}, std::as_bytes(std::span(heads_.back())), after);
    std::uint64_t at = in_front;
    for (const auto& a : part.arrays) {
      if (!a.empty()) slot.written = copies_->write({slot.memory, at}, a);
      at += aligned(a.size());
    }
  }
  copies_->flush();
}

void DeviceState::run(std::span<const Job> jobs, std::span<Slot> slots, bool filled,
                      std::span<const std::uint64_t> factor_rows, const Target& target, std::span<const Event> after) {
  std::vector<Event> waits(after.begin(), after.end());
  for (std::size_t k = 0; k < jobs.size(); ++k) {
    const Job& job = jobs[k];
    const std::size_t number = filled ? k : k % slots.size();
    Slot& slot = slots[number];
    if (!filled) fill(slot, *job.part, factor_rows, target.stride);
    if (slot.written) waits.push_back(slot.written);
    const std::uint64_t seams_head = first_head_bytes(*job.part, factor_rows.size());
    const View head{slot.memory, 0};
    const View arrays{slot.memory, head_bytes(*job.part, factor_rows.size())};
    const std::array<Argument, 5> arguments = {arrays, head, target.factors, target.out, target.seams};
    slot.used = compute_->launch(*job.kernel, job.grid, arguments, waits, job.name);
    if (job.seam_bytes > 0) {
      const std::array<Argument, 5> seam_arguments = {arrays, View{slot.memory, seams_head}, target.factors, target.out,
                                                      target.seams};
      const std::uint64_t sides = 2 * job.part->chunks;
      const Grid grid{{(sides + target.items[1] - 1) / target.items[1], target.column_groups}, target.items};
      slot.used = compute_->launch(*target.add_seams, grid, seam_arguments, {}, "add_seams");
    }
    compute_->flush();
    waits.clear();
  }
}

void DeviceState::finish() {
  copies_->finish();
  compute_->finish();
  heads_.clear();
}

DeviceStates& states_of(Workspace& workspace, const Context& context) {
  std::shared_ptr<void>& kept = workspace.on_devices();
  auto* states = static_cast<DeviceStates*>(kept.get());
  const auto same = [&] {
    return std::equal(states->all.begin(), states->all.end(), context.devices.begin(), context.devices.end(),
                      [](const auto& state, const auto& device) { return &state->device() == device.get(); });
  };
  if (states == nullptr || !same()) {
    auto fresh = std::make_shared<DeviceStates>();
    for (const auto& device : context.devices) fresh->all.push_back(std::make_unique<DeviceState>(device));
    kept = fresh;
    states = fresh.get();
  }
  return *states;
}

}  // namespace polyad::gpu
