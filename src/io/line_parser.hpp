// SPDX-License-Identifier: MIT
/// \file One line of text to indices and a value: a fast way for lines as programs write them, a careful way that takes
/// everything people write and says what is wrong with the rest.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "io/text_numbers.hpp"
#include "io/text_reader.hpp"

namespace polyad::io {

/// Separates numbers.
[[nodiscard]] constexpr bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\v' || c == '\f'; }

/// What a line turned out to be.
enum class LineKind : std::uint8_t { nothing, nonzero, wrong };

struct LineResult {
  LineKind kind = LineKind::nothing;
  std::string sentence;  ///< when wrong: what was found, what was expected
};

/// Parses `line` (without its end). Fills row[order] with the indices as written and `value`.
template <class Value>
LineResult careful_line(const TextLayout& layout, std::string_view line, std::uint64_t* row, Value& value);

/// "found index 9 in mode 2, expected at most 5, its dimension".
[[nodiscard]] std::string range_sentence(const TextLayout& layout, int mode, std::uint64_t index, std::uint64_t lowest,
                                         std::uint64_t highest);

/// The common case: digits, one separator, ..., value, line end. Returns the beginning of the next line, or null when
/// the line is anything else. Reads a little past the line: the text is padded.
template <class Value>
inline const char* fast_line(const TextLayout& layout, const char* p, const char* end, std::uint64_t* row,
                             Value& value) {
  const int order = layout.order;
  const char separator = layout.separator;
  for (int m = 0; m < order; ++m) {
    p = parse_index(p, row[m]);
    if (p == nullptr) return nullptr;
    if (m + 1 < order || layout.has_values) {
      if (*p != separator) {
        if (*p != '\t' || separator != ' ') return nullptr;
      }
      ++p;
    }
  }
  if (layout.has_values) {
    p = parse_value(p, end, value);
    if (p == nullptr) return nullptr;
  }
  if (*p == '\r') ++p;
  if (*p != '\n') return nullptr;
  return p + 1;
}

}  // namespace polyad::io
