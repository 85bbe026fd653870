// SPDX-License-Identifier: MIT
#include "io/label_text.hpp"

#include <fmt/format.h>

#include <iterator>

namespace polyad::io {

namespace {

constexpr std::uint32_t surrogates_begin = 0xD800;
constexpr std::uint32_t surrogates_end = 0xE000;
constexpr std::uint32_t escaped_bytes = 0xDC00;
constexpr std::uint32_t last_character = 0x10FFFF;

}  // namespace

std::uint32_t next_character(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t k) -> std::uint32_t {
    return k < text.size() ? static_cast<unsigned char>(text[k]) : 0;
  };
  const std::uint32_t first = byte(at);
  const std::size_t length = first < 0x80   ? 1
                             : first < 0xC2 ? 0
                             : first < 0xE0 ? 2
                             : first < 0xF0 ? 3
                             : first < 0xF5 ? 4
                                            : 0;
  constexpr std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};  // of each length: no detours
  std::uint32_t character = length < 2 ? first : first & (0x7FU >> length);
  bool valid = length > 0;
  for (std::size_t k = 1; k < length; ++k) {
    valid = valid && (byte(at + k) & 0xC0U) == 0x80;
    character = character << 6U | (byte(at + k) & 0x3FU);
  }
  valid = valid && character >= least[length] && character <= last_character &&
          (character < surrogates_begin || character >= surrogates_end);
  at += valid ? length : 1;
  return valid ? character : escaped_bytes + first;
}

bool append_character(std::string& text, std::uint32_t character) {
  const auto put = [&](std::uint32_t byte) { text += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (character >= escaped_bytes && character <= escaped_bytes + 0xFF) {
    put(character - escaped_bytes);
    return true;
  }
  if (character > last_character || (character >= surrogates_begin && character < surrogates_end)) return false;
  if (character < 0x80) {
    put(character);
    return true;
  }
  if (character < 0x800) {
    put(0xC0U | character >> 6U);
  } else {
    if (character < 0x10000) {
      put(0xE0U | character >> 12U);
    } else {
      put(0xF0U | character >> 18U);
      put(0x80U | (character >> 12U & 0x3FU));
    }
    put(0x80U | (character >> 6U & 0x3FU));
  }
  put(0x80U | (character & 0x3FU));
  return true;
}

void append_line(std::string& text, std::string_view label) {
  for (const char c : label) {
    if (c == '\\') {
      text += "\\\\";
    } else if (c == '\n') {
      text += "\\n";
    } else if (c == '\r') {
      text += "\\r";
    } else {
      text += c;
    }
  }
}

std::optional<std::string> label_of_line(std::string_view line) {
  std::string label;
  for (std::size_t k = 0; k < line.size(); ++k) {
    if (line[k] != '\\') {
      label += line[k];
      continue;
    }
    const char escaped = k + 1 < line.size() ? line[++k] : '\0';
    if (escaped != '\\' && escaped != 'n' && escaped != 'r') return std::nullopt;
    label += escaped == 'n' ? '\n' : escaped == 'r' ? '\r' : '\\';
  }
  return label;
}

void append_json_string(std::string& text, std::string_view label) {
  text += '"';
  for (std::size_t at = 0; at < label.size();) {
    const std::size_t begin = at;
    const std::uint32_t c = next_character(label, at);
    if (c == '"' || c == '\\') {
      text += '\\';
      text += static_cast<char>(c);
    } else if (c < 0x20 || c == 0x7F || (c >= surrogates_begin && c < surrogates_end)) {
      fmt::format_to(std::back_inserter(text), "\\u{:04x}", c);
    } else {
      text.append(label.substr(begin, at - begin));
    }
  }
  text += '"';
}

void for_each_line(InputStream& input, const std::function<void(std::string_view)>& line,
                   const std::function<void(std::string_view)>& check) {
  std::string begun;
  const auto finish = [&] {
    if (begun.ends_with('\r')) begun.pop_back();
    line(begun);
    begun.clear();
  };
  std::string block(std::size_t{1} << 16U, '\0');
  while (const std::size_t got = input.read(block.data(), block.size())) {
    std::string_view rest(block.data(), got);
    for (std::size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
      begun.append(rest.substr(0, end));
      finish();
      rest.remove_prefix(end + 1);
    }
    begun.append(rest);
    check(begun);
  }
  if (!begun.empty()) finish();
}

}  // namespace polyad::io
