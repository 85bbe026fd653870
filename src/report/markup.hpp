// SPDX-License-Identifier: MIT
/// \file Text and numbers of users inside a page: nothing that they contain can end an element or run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace polyad::report {

/// Valid UTF-8 in one line: bytes that are not UTF-8 and characters that reorder text become U+FFFD, runs of white
/// space and control characters (line and paragraph separators among them) one blank, none at either end. At most
/// `limit` characters, and an ellipsis if there were more.
[[nodiscard]] std::string clean_text(std::string_view text, std::size_t limit = 2000);

/// Clean text in at most `limit` characters: words lose their end, an address or a path (no blanks) its middle, because
/// these differ at their ends.
[[nodiscard]] std::string shortened(const std::string& clean, std::size_t limit);

/// Appends clean text to HTML, between tags or inside a quoted attribute.
void append_html(std::string& out, std::string_view clean);
[[nodiscard]] std::string html(std::string_view clean);

/// Appends clean text as a JSON string that may stand in a script element.
void append_json(std::string& out, std::string_view clean);

/// Appends a number with 6 significant digits; null when it is not finite.
void append_json(std::string& out, double value);

/// A number for people: 4 significant digits, thousands grouped.
[[nodiscard]] std::string shown(double value);
/// 12,762
[[nodiscard]] std::string grouped(std::uint64_t value);
/// 0.1234 -> "12.3 %"
[[nodiscard]] std::string percent(double share);
/// "4.2 ms", "0.44 s", "12.3 s", "5 min 03 s", "2 h 05 min"
[[nodiscard]] std::string duration(double seconds);

}  // namespace polyad::report
