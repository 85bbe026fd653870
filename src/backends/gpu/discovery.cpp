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
#include "polyad/sizes.hpp"

namespace polyad {

namespace {

struct DriverEntry {
  std::string_view backend;
  gpu::Found (*find)();
  gpu::DevicePtr (*open)(std::uint32_t number, const DeviceOptions& options);
};

// The vendor's own first: of two ways to the same GPU it is the better one.
constexpr auto drivers = std::to_array<DriverEntry>({
    {"opencl", gpu::opencl::find, gpu::opencl::open},
});

/// "4 compute units, 15.6 GiB, groups of 256, f64".
std::string summary(const gpu::Facts& f) {
  return fmt::format("{} ({}, {} compute units, {}, groups of {}, {} local, {}{})", f.description,
                     f.is_gpu ? "GPU" : "no GPU", f.compute_units, readable_bytes(f.memory_bytes), f.largest_group,
                     readable_bytes(f.local_bytes), f.has_f64 ? "f32 and f64" : "f32 only",
                     f.atomics_f32 == gpu::Atomics::native ? ", native atomics" : "");
}

/// How good a device is likely to be; compared part by part.
std::array<double, 2> merit(const gpu::Facts& f) {
  return {f.is_gpu ? 1.0 : 0.0, static_cast<double>(f.compute_units) * static_cast<double>(f.memory_bytes)};
}

gpu::DevicePtr open_best(const DeviceOptions& options) {
  std::array<double, 2> best = {-1, 0};
  const DriverEntry* driver = nullptr;
  std::uint32_t number = 0;
  std::string reasons;
  for (const DriverEntry& d : drivers) {
    const gpu::Found found = d.find();
    for (std::uint32_t i = 0; i < found.devices.size(); ++i)
      if (merit(found.devices[i]) > best) {
        best = merit(found.devices[i]);
        driver = &d;
        number = i;
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
    if (found.devices.empty()) throw Error(ErrorKind::input, fmt::format("device {}: {}", name, found.why_none));
    std::uint32_t number = 0;
    if (colon < name.size()) {
      const char* end = name.data() + name.size();
      const auto [stopped, code] = std::from_chars(name.data() + colon + 1, end, number);
      if (code != std::errc() || stopped != end) break;
    }
    if (number >= found.devices.size()) break;
    return d.open(number, options);
  }
  std::string known = "cpu";
  for (const DeviceEntry& d : devices())
    if (d.available && d.name != "cpu") known += ", " + d.name;
  throw Error(ErrorKind::input, fmt::format("there is no device '{}' on this machine; there are {}", name, known));
}

}  // namespace

std::vector<DeviceEntry> devices() {
  utsname machine = {};
  uname(&machine);
  std::vector<DeviceEntry> all = {
      {"cpu", "cpu", fmt::format("{}, {} threads by default", machine.machine, default_threads()), true}};
  for (const DriverEntry& d : drivers) {
    const gpu::Found found = d.find();
    for (const gpu::Facts& f : found.devices) all.push_back({f.name, f.backend, summary(f), true});
    if (found.devices.empty()) all.push_back({std::string(d.backend), std::string(d.backend), found.why_none, false});
  }
  return all;
}

std::vector<std::shared_ptr<gpu::Device>> open_devices(std::string_view names, const DeviceOptions& options) {
  std::vector<std::shared_ptr<gpu::Device>> opened;
  if (names == "cpu") return opened;
  for (std::size_t begin = 0; begin <= names.size();) {
    const std::size_t end = std::min(names.find(',', begin), names.size());
    const std::string_view name = names.substr(begin, end - begin);
    opened.push_back(name == "gpu" ? open_best(options) : open_named(name, options));
    begin = end + 1;
  }
  return opened;
}

}  // namespace polyad
