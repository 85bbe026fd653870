// SPDX-License-Identifier: MIT
/// \file What the batteries share: the formats of the registry as test parameters, tensors in a format.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <polyad/polyad.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace polyad::registered {

/// POLYAD_BATTERY_FORMATS=a,b restricts the formats while one is being written.
inline bool wanted(std::string_view format) {
  const char* only = std::getenv("POLYAD_BATTERY_FORMATS");
  return only == nullptr || fmt::format(",{},", only).find(fmt::format(",{},", format)) != std::string::npos;
}

/// The tensor in a format, tiles small enough that there are several; nothing when the format says why it cannot hold
/// it.
inline std::optional<Tensor> built(const CooTensor& x, std::string_view format, const Context& context) {
  try {
    return build(x, format, {.tile_bytes = 8192}, context);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::limit) << format << ": " << e.what();
    return std::nullopt;
  }
}

/// Their names.
inline std::vector<std::string_view> formats() {
  std::vector<std::string_view> names;
  for (const FormatEntry& f : polyad::formats()) names.push_back(f.name);
  return names;
}

/// The name of a format as GoogleTest wants it.
inline std::string test_name(const testing::TestParamInfo<std::string_view>& one) {
  std::string name(one.param);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

}  // namespace polyad::registered
