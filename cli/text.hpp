// SPDX-License-Identifier: MIT
/// \file Text of users on a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace polyad::cli {

/// Characters of UTF-8: what a terminal shows one column for, near enough.
[[nodiscard]] std::size_t width_of(std::string_view text);

/// Without control characters, and at most `most` characters: longer text ends in `ending`, which counts.
[[nodiscard]] std::string shown(std::string_view text, std::size_t most, std::string_view ending = "");

}  // namespace polyad::cli
