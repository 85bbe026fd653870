// SPDX-License-Identifier: MIT
/// \file Labels are bytes, mostly UTF-8. Here they become lines, characters and JSON strings, and the same bytes again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "io/input_stream.hpp"

namespace polyad::io {

/// Longer ones are not read: a file that is none of labels should not fill the memory first.
inline constexpr std::size_t longest_label = std::size_t{1} << 26U;

/// The character at text[at]; `at` moves behind it. A byte that is no UTF-8 becomes U+DC00 + byte, as Python does
/// (PEP 383: "surrogateescape").
[[nodiscard]] std::uint32_t next_character(std::string_view text, std::size_t& at);

/// Appends a character as UTF-8, U+DC00 to U+DCFF as the byte they stand for. False when it is none.
[[nodiscard]] bool append_character(std::string& text, std::uint32_t character);

/// Appends a label as part of a line: \\ for a backslash, \n and \r for line breaks.
void append_line(std::string& text, std::string_view label);

/// The label of such a line, nothing when a backslash is followed by something else.
[[nodiscard]] std::optional<std::string> label_of_line(std::string_view line);

/// Appends a label in quotation marks.
void append_json_string(std::string& text, std::string_view label);

/// Calls line(text) for every line of a stream, without its end: '\n', or '\r' and '\n'. After each block that was read
/// calls check(begun) with the line that has no end yet: it may be too long for any label.
void for_each_line(InputStream& input, const std::function<void(std::string_view)>& line,
                   const std::function<void(std::string_view)>& check);

}  // namespace polyad::io
