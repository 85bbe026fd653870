// SPDX-License-Identifier: MIT
#include "polyad/registry.hpp"

#include <fmt/format.h>

#include <array>

#include "core/format.hpp"
#include "polyad/error.hpp"

namespace polyad {

#define POLYAD_FORMAT(name) extern const FormatClass name##_format;
#include "lists/formats.list"
#undef POLYAD_FORMAT

std::span<const FormatClass* const> format_classes() {
  static constexpr auto all = std::to_array<const FormatClass*>({
#define POLYAD_FORMAT(name) &name##_format,
#include "lists/formats.list"
#undef POLYAD_FORMAT
  });
  return all;
}

std::span<const FormatEntry> formats() {
  static const std::vector<FormatEntry> all = [] {
    std::vector<FormatEntry> entries;
    for (const FormatClass* f : format_classes()) entries.push_back(f->entry);
    return entries;
  }();
  return all;
}

const FormatEntry& format_named(std::string_view name) {
  // "csf" alone means a tree per mode: what SPLATT calls ALLMODE and what is fastest of the three.
  const std::string_view full = name == "csf" ? "csf-all" : name;
  for (const FormatEntry& f : formats())
    if (f.name == full) return f;
  std::string known;
  for (const FormatEntry& f : formats()) known += fmt::format("{}{}", known.empty() ? "" : ", ", f.name);
  throw usage_error(fmt::format("there is no format '{}'; there are {}", name, known));
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

}  // namespace polyad
