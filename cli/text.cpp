// SPDX-License-Identifier: MIT
#include "text.hpp"

#include <algorithm>

namespace polyad::cli {

namespace {

/// Not one of the later bytes of a character of UTF-8.
bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }

}  // namespace

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, begins_character));
}

std::string shown(std::string_view text, std::size_t most, std::string_view ending) {
  std::size_t end = text.size();
  if (width_of(text) > most) {
    std::size_t characters = 0;
    for (end = 0; end < text.size(); ++end)
      if (begins_character(text[end]) && ++characters > most - width_of(ending)) break;
  }
  std::string result(text.substr(0, end));
  std::ranges::replace_if(
      result, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }, ' ');
  if (end < text.size()) result += ending;
  return result;
}

}  // namespace polyad::cli
