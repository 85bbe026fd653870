// SPDX-License-Identifier: MIT
/// \file The bandwidths of the devices at hand, for estimates.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "backends/gpu/device.hpp"
#include "polyad/device_model.hpp"
#include "polyad/error.hpp"

namespace polyad {

namespace {

constexpr std::uint64_t most_copied_bytes = std::uint64_t{128} << 20U;
constexpr std::uint64_t most_pinned_bytes = std::uint64_t{32} << 20U;

/// GB/s of a command, the best of a few after one that warms up.
template <class Command>
double gbs_of(std::uint64_t bytes, const Command& command) {
  double best = std::numeric_limits<double>::infinity();
  for (int run = 0; run < 4; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    command()->wait();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    if (run > 0) best = std::min(best, seconds.count());
  }
  return static_cast<double>(bytes) / 1e9 / best;
}

/// Adds the bandwidths and the memory of a device.
void add(DeviceModel& all, gpu::Device& device) {
  const gpu::Facts& f = device.facts();
  std::uint64_t bytes = std::min({most_copied_bytes, f.memory_bytes / 2, f.largest_allocation});
  gpu::MemoryPtr memory = device.allocate(bytes);
  while (memory == nullptr && bytes > 4096) memory = device.allocate(bytes /= 2);
  if (memory == nullptr) throw Error(ErrorKind::limit, fmt::format("{} has no room to measure its bandwidth", f.name));
  const std::unique_ptr<gpu::PinnedMemory> pinned = device.pin(std::min(bytes, most_pinned_bytes));
  const std::unique_ptr<gpu::Queue> queue = device.make_queue();
  const std::span<const std::byte> host(pinned->data(), pinned->bytes());
  all.memory_gbs += gbs_of(bytes, [&] { return queue->clear({memory, 0}, bytes); });
  all.copy_gbs += gbs_of(host.size(), [&] { return queue->write({memory, 0}, host); });
  all.memory_gb += static_cast<double>(f.memory_bytes) / 1e9;
  all.cache_mb += static_cast<double>(f.cache_bytes) / 1e6;
}

}  // namespace

DeviceModel model_of_devices(const Context& context) {
  if (context.devices.empty()) throw usage_error("bandwidths are those of devices: name one with --device");
  const gpu::Facts& first = context.devices[0]->facts();
  DeviceModel all;
  all.name = first.name;
  all.description = first.description;
  all.f32_tflops = all.f64_tflops = std::numeric_limits<double>::infinity();
  for (const auto& device : context.devices) add(all, *device);
  return all;
}

}  // namespace polyad
