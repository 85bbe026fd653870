// SPDX-License-Identifier: MIT
#include "polyad/registry.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <array>

#include "polyad/context.hpp"

namespace polyad {

#define POLYAD_FORMAT(name) extern const FormatEntry name##_format;
#include "lists/formats.list"
#undef POLYAD_FORMAT

std::span<const FormatEntry> formats() {
  static const std::vector<FormatEntry> all = {
#define POLYAD_FORMAT(name) name##_format,
#include "lists/formats.list"
#undef POLYAD_FORMAT
  };
  return all;
}

std::span<const Entry> kernels() {
  static const std::vector<Entry> all = {
#define POLYAD_KERNEL(name, summary) {#name, summary},
#include "lists/kernels.list"
#undef POLYAD_KERNEL
  };
  return all;
}

std::span<const Entry> solvers() {
  static const std::vector<Entry> all = {
#define POLYAD_SOLVER(name, summary) {#name, summary},
#include "lists/solvers.list"
#undef POLYAD_SOLVER
  };
  return all;
}

std::span<const Entry> backends() {
  static constexpr auto all = std::to_array<Entry>({
#define POLYAD_BACKEND(name, summary) {#name, summary},
#include "lists/backends.list"
#undef POLYAD_BACKEND
  });
  return all;
}

std::vector<DeviceEntry> devices() {
  utsname machine = {};
  uname(&machine);
  return {{"cpu", "cpu", fmt::format("{}, {} threads by default", machine.machine, default_threads())}};
}

}  // namespace polyad
