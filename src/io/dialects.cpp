// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string>

#include "io/dialect.hpp"
#include "polyad/error.hpp"
#include "polyad/registry.hpp"

namespace polyad::io {

namespace {

std::string extension_of(std::string_view path) {
  std::string e = std::filesystem::path(without_compression(path)).extension().string();
  std::ranges::transform(e, e.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return e;
}

std::string names() {
  std::vector<std::string_view> all;
  for (const Dialect* d : all_dialects()) all.push_back(d->name);
  return fmt::format("{}", fmt::join(all, ", "));
}

}  // namespace

std::span<const Dialect* const> all_dialects() {
  static constexpr const Dialect* all[] = {
#define POLYAD_DIALECT(name) &name##_dialect,
#include "lists/dialects.list"
#undef POLYAD_DIALECT
  };
  return all;
}

const Dialect& dialect_by_name(std::string_view name) {
  for (const Dialect* d : all_dialects())
    if (d->name == name) return *d;
  throw usage_error(fmt::format("there is no dialect '{}'; there are {}", name, names()));
}

const Dialect& dialect_for_writing(std::string_view path) {
  const std::string extension = extension_of(path);
  // FROSTT owns `.tns` and is what standard output gets.
  if (path == "-" || std::ranges::find(frostt_dialect.extensions, extension) != frostt_dialect.extensions.end())
    return frostt_dialect;
  for (const Dialect* d : all_dialects())
    if (d->write != nullptr && std::ranges::find(d->extensions, extension) != d->extensions.end()) return *d;
  throw usage_error(
      fmt::format("{}: no dialect is known for the ending '{}'; name one of {}", path, extension, names()));
}

const Dialect& detect_dialect(InputStream& input) {
  const std::string_view head = head_of(input).text;
  const std::string extension = extension_of(input.path());
  for (const Dialect* d : all_dialects())
    if (d->detect(head, extension)) return *d;
  return frostt_dialect;
}

}  // namespace polyad::io

namespace polyad {

std::span<const DialectEntry> dialects() {
  static const std::vector<DialectEntry> all = [] {
    std::vector<DialectEntry> entries;
    for (const io::Dialect* d : io::all_dialects())
      entries.push_back({{d->name, d->summary}, d->extensions, d->is_text, d->write != nullptr});
    return entries;
  }();
  return all;
}

}  // namespace polyad
