// SPDX-License-Identifier: MIT
/// \file Pieces of a user's file inside a message.
#pragma once

#include <string>
#include <string_view>

namespace polyad::io {

/// A piece of text as a message can show it: at most 40 bytes, control characters as \xNN, so that a message stays a
/// line.
[[nodiscard]] std::string shown(std::string_view text);

}  // namespace polyad::io
