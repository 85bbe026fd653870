// SPDX-License-Identifier: MIT
/// \file Which devices there are, and how they are opened by name.
#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "backends/gpu/driver.hpp"
#include "polyad/context.hpp"
#include "polyad/device.hpp"
#include "polyad/error.hpp"
#include "polyad/registry.hpp"

namespace polyad {

namespace gpu {

std::string place_on_bus(std::uint32_t domain, std::uint32_t bus, std::uint32_t device) {
  return bus == 0 && device == 0 ? std::string() : fmt::format("{:04x}:{:02x}:{:02x}", domain, bus, device);
}

bool is_same_device(const Facts& a, const Facts& b) {
  return a.name == b.name || (!a.place.empty() && a.place == b.place && a.backend != b.backend);
}

}  // namespace gpu

namespace {

struct DriverEntry {
  std::string_view backend;
  gpu::Found (*find)();
  gpu::DevicePtr (*open)(std::uint32_t number, const DeviceOptions& options);
};

// The vendor's own first: of two ways to the same GPU it is the better one.
constexpr auto drivers = std::to_array<DriverEntry>({
    {"cuda", gpu::cuda::find, gpu::cuda::open},
    {"opencl", gpu::opencl::find, gpu::opencl::open},
});

DeviceEntry entry_of(const gpu::Facts& f) {
  return {.name = f.name,
          .backend = f.backend,
          .description = f.description,
          .available = true,
          .is_gpu = f.is_gpu,
          .has_f64 = f.has_f64,
          .compute_units = f.compute_units,
          .largest_group = f.largest_group,
          .local_bytes = f.local_bytes,
          .memory_bytes = f.memory_bytes,
          .native_atomics = f.atomics_f32 == gpu::Atomics::native};
}

/// The one of `found` that is the same device; null when there is none.
const gpu::Facts* same_in(const std::vector<gpu::Facts>& found, const gpu::Facts& f) {
  const auto same = std::ranges::find_if(found, [&](const gpu::Facts& other) { return is_same_device(other, f); });
  return same == found.end() ? nullptr : &*same;
}

/// How good a device is likely to be; compared part by part. Compute units of different makers cannot be compared, and
/// a GPU on the processor's chip counts the host's memory as its own.
std::array<double, 3> merit(const gpu::Facts& f) {
  return {f.is_gpu ? 1.0 : 0.0, f.shares_memory ? 0.0 : 1.0, static_cast<double>(f.memory_bytes)};
}

gpu::DevicePtr open_best(const DeviceOptions& options) {
  std::array<double, 3> best = {-1, 0, 0};
  std::vector<gpu::Facts> seen;
  const DriverEntry* driver = nullptr;
  std::uint32_t number = 0;
  std::string reasons;
  for (const DriverEntry& d : drivers) {
    const gpu::Found found = d.find();
    for (const gpu::Facts& f : found.devices) {
      if (same_in(seen, f) == nullptr && merit(f) > best) {
        best = merit(f);
        driver = &d;
        number = f.number;
      }
      seen.push_back(f);
    }
    if (found.devices.empty()) reasons += (reasons.empty() ? "" : "; ") + found.why_none;
  }
  if (driver == nullptr) throw Error(ErrorKind::input, fmt::format("there is no GPU to run on: {}", reasons));
  return driver->open(number, options);
}

gpu::DevicePtr open_named(std::string_view name, const DeviceOptions& options) {
  const std::size_t colon = std::min(name.find(':'), name.size());
  for (const DriverEntry& d : drivers) {
    if (d.backend != name.substr(0, colon)) continue;
    const gpu::Found found = d.find();
    if (found.devices.empty()) throw Error(ErrorKind::input, found.why_none);
    std::uint32_t number = found.devices[0].number;
    if (colon < name.size()) {
      const char* end = name.data() + name.size();
      const auto [stopped, code] = std::from_chars(name.data() + colon + 1, end, number);
      if (code != std::errc() || stopped != end) break;
    }
    if (std::ranges::none_of(found.devices, [&](const gpu::Facts& f) { return f.number == number; })) break;
    return d.open(number, options);
  }
  std::string known = "cpu";
  for (const DeviceEntry& d : devices())
    if (d.available && d.name != "cpu") known += ", " + d.name;
  throw usage_error(fmt::format("there is no device '{}' on this machine; there are {}", name, known));
}

}  // namespace

std::vector<DeviceEntry> devices_of(const std::vector<std::shared_ptr<gpu::Device>>& devices) {
  std::vector<DeviceEntry> all;
  for (const gpu::DevicePtr& d : devices) all.push_back(entry_of(d->facts()));
  return all;
}

std::vector<DeviceEntry> devices() {
  utsname machine = {};
  uname(&machine);
  DeviceEntry processor;
  processor.name = processor.backend = "cpu";
  processor.description = fmt::format("{}, {} threads by default", machine.machine, default_threads());
  std::vector<DeviceEntry> all = {std::move(processor)};
  std::vector<gpu::Facts> seen;
  for (const DriverEntry& d : drivers) {
    const gpu::Found found = d.find();
    for (const gpu::Facts& f : found.devices) {
      all.push_back(entry_of(f));
      if (const gpu::Facts* other = same_in(seen, f))
        all.back().description += fmt::format(", which is {}", other->name);
      seen.push_back(f);
    }
    if (!found.devices.empty()) continue;
    DeviceEntry none;
    none.name = none.backend = d.backend;
    none.description = found.why_none;
    none.available = none.has_f64 = false;
    all.push_back(std::move(none));
  }
  return all;
}

std::vector<std::shared_ptr<gpu::Device>> open_devices(std::string_view names, const DeviceOptions& options) {
  std::vector<std::shared_ptr<gpu::Device>> opened;
  std::vector<gpu::Facts> named;
  if (names == "cpu") return opened;
  for (std::size_t begin = 0; begin <= names.size();) {
    const std::size_t end = std::min(names.find(',', begin), names.size());
    const std::string_view name = names.substr(begin, end - begin);
    if (name == "cpu") throw usage_error("the processor does not share work with devices: cpu stands alone");
    opened.push_back(name == "gpu" ? open_best(options) : open_named(name, options));
    const gpu::Facts& last = opened.back()->facts();
    if (const gpu::Facts* other = same_in(named, last))
      throw usage_error(last.name == other->name
                            ? fmt::format("{} is named twice: a device does not share work with itself", last.name)
                            : fmt::format("{} and {} are the same GPU: name one of them", other->name, last.name));
    named.push_back(last);
    begin = end + 1;
  }
  return opened;
}

}  // namespace polyad
