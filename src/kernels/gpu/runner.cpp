// SPDX-License-Identifier: MIT
#include "kernels/gpu/runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <exception>

#include "polyad/error.hpp"
#include "polyad/sizes.hpp"

namespace polyad::gpu {

std::string resident_name(std::uint64_t tensor, const Part& part) {
  std::string name = fmt::format("{} ", tensor);
  for (const auto& a : part.arrays) name += fmt::format("{}+{} ", fmt::ptr(a.data()), a.size());
  return name;
}

std::array<std::uint32_t, 2> group_items(std::uint64_t stride, const Facts& facts) {
  const std::uint32_t most = std::bit_floor(std::clamp<std::uint32_t>(facts.largest_group, 1, 256));
  const auto lanes = std::min<std::uint32_t>(
      {static_cast<std::uint32_t>(std::bit_ceil(std::min<std::uint64_t>(stride, 32))), 32, most});
  return {lanes, most / lanes};
}

DeviceState::DeviceState(DevicePtr device)
    : device_(std::move(device)), copies_(device_->make_queue()), compute_(device_->make_queue()) {
  device_->tenants().add(*this);
}

DeviceState::~DeviceState() { device_->tenants().remove(*this); }

bool DeviceState::give_up() {
  const std::unique_lock idle(in_use, std::try_to_lock);
  if (!idle.owns_lock() || (residents.empty() && !pipeline)) return false;
  residents.clear();
  pipeline.reset();
  return true;
}

KernelPtr DeviceState::kernel(std::string_view unit, std::string_view function, std::span<const Define> defines) {
  std::string key = fmt::format("{} {}", unit, function);
  for (const Define& d : defines) key += fmt::format(" {}={}", d.first, d.second);
  KernelPtr& found = kernels_[key];
  if (!found) found = device_->kernel(unit, function, defines);
  return found;
}

MemoryPtr DeviceState::try_allocate(std::uint64_t bytes, bool may_evict, const std::string& kept) {
  bytes = std::max(aligned(bytes), slot_alignment);
  for (;;) {
    if (bytes <= facts().largest_allocation)
      if (MemoryPtr memory = device_->allocate(bytes)) return memory;
    if (!may_evict) return nullptr;
    auto oldest = residents.end();
    for (auto r = residents.begin(); r != residents.end(); ++r) {
      const bool stays = !kept.empty() && r->first.starts_with(kept);
      if (!stays && (oldest == residents.end() || r->second.used < oldest->second.used)) oldest = r;
    }
    if (oldest != residents.end()) {
      residents.erase(oldest);
    } else if (!device_->tenants().others_give_up(*this)) {
      return nullptr;
    }
  }
}

bool DeviceState::try_room(const std::string& purpose, std::uint64_t bytes) {
  const auto found = rooms_.find(purpose);
  if (found != rooms_.end() && found->second->bytes() >= bytes) return true;
  if (found != rooms_.end()) rooms_.erase(found);
  MemoryPtr memory = try_allocate(bytes, false);
  if (!memory && pipeline) {
    pipeline.reset();
    memory = try_allocate(bytes, false);
  }
  if (!memory) memory = try_allocate(bytes, true);
  if (!memory) return false;
  rooms_[purpose] = std::move(memory);
  return true;
}

View DeviceState::room(const std::string& purpose, std::uint64_t bytes) {
  if (try_room(purpose, bytes)) return {rooms_[purpose], 0};
  throw Error(
      ErrorKind::limit,
      fmt::format("{} has no room for {}: {} beside {} that this computation has there; {} may be used, at most {} at "
                  "once",
                  facts().name, purpose, readable_bytes(bytes), readable_bytes(room_bytes()),
                  readable_bytes(facts().memory_bytes), readable_bytes(facts().largest_allocation)));
}

std::uint64_t DeviceState::room_bytes() const {
  std::uint64_t sum = 0;
  for (const auto& [purpose, memory] : rooms_) sum += memory->bytes();
  return sum;
}

void DeviceState::fill(Resident& resident, const Part& part) {
  std::uint64_t at = 0;
  for (std::size_t k = 0; k < part.arrays.size(); ++k) {
    const std::uint64_t bit = std::uint64_t{1} << k;
    const auto& a = part.arrays[k];
    if (!a.empty() && ((resident.filled | part.unread) & bit) == 0) {
      resident.written = copies_->write({resident.memory, at}, a);
      resident.filled |= bit;
    }
    at += aligned(a.size());
  }
  copies_->flush();
  if (!part.copied || !resident.written) return;
  resident.written->wait();
  part.copied();
}

bool DeviceState::put_heads(Heads& to, std::span<const Part* const> parts, std::span<const std::uint64_t> factor_rows,
                            std::uint64_t stride, const std::string& kept) {
  std::vector<std::uint64_t> numbers;
  const auto pad = [&] { numbers.resize(aligned(numbers.size() * sizeof(std::uint64_t), alignment()) / 8); };
  for (const Part* part : parts) {
    to.begins.push_back(numbers.size() * sizeof(std::uint64_t));
    const std::vector<std::uint64_t> head = head_of(*part, factor_rows);
    numbers.insert(numbers.end(), head.begin(), head.end());
    pad();
    numbers.insert(numbers.end(), {part->chunks, stride});
    pad();
  }
  to.begins.push_back(numbers.size() * sizeof(std::uint64_t));
  to.memory = try_allocate(to.begins.back(), true, kept);
  if (!to.memory) return false;
  leaving_.push_back(std::move(numbers));
  to.written = copies_->write({to.memory, 0}, std::as_bytes(std::span(leaving_.back())));
  copies_->flush();
  return true;
}

namespace {

/// Launches the kernel of a job, and the one that adds its side rows; the event of the last.
Event launch(Queue& queue, const Job& job, const Target& target, const View& arrays, const View& head,
             const View& seams_head, std::span<const Event> after) {
  const std::array<Argument, 5> arguments = {arrays, head, target.factors, target.out, target.seams};
  Event last = queue.launch(*job.kernel, job.grid, arguments, after, job.name);
  if (job.seam_bytes == 0) return last;
  const std::array<Argument, 5> seam_arguments = {arrays, seams_head, target.factors, target.out, target.seams};
  const std::uint64_t sides = 2 * job.part->chunks;
  const Grid grid{{(sides + target.items[1] - 1) / target.items[1], target.column_groups}, target.items};
  return queue.launch(*target.add_seams, grid, seam_arguments, {}, "add_seams");
}

}  // namespace

void DeviceState::run(std::span<const Job> jobs, std::span<const Stage> stages, const Target& target,
                      std::span<const Event> after) {
  for (std::size_t k = 0; k < jobs.size(); ++k) {
    const Stage& stage = stages[k];
    launch(*compute_, jobs[k], target, stage.slot, stage.head, stage.second_head,
           k == 0 ? after : std::span<const Event>());
    compute_->flush();
  }
}

std::vector<Collection> DeviceState::collections(std::span<const Job> jobs, std::span<const std::uint64_t> factor_rows,
                                                 const Target& target) {
  std::vector<Collection> all;
  for (const Job& job : jobs) {
    Collection& c = all.emplace_back();
    c.part = job.part;
    c.factor_begins = factor_rows;
    c.second_head = {job.part->chunks, target.stride};
    c.compute = [&job, &target](Queue& queue, const Stage& stage, std::span<const Event> after) {
      return launch(queue, job, target, stage.slot, stage.head, stage.second_head, after);
    };
  }
  return all;
}

void DeviceState::finish() {
  // Both, whatever happens: memory of the host goes away after this.
  std::exception_ptr failure;
  for (Queue* queue : {copies_.get(), compute_.get()}) {
    try {
      queue->finish();
    } catch (...) {
      if (!failure) failure = std::current_exception();
    }
  }
  leaving_.clear();
  if (failure) std::rethrow_exception(failure);
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
