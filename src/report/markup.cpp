// SPDX-License-Identifier: MIT
#include "report/markup.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <vector>

namespace polyad::report {

namespace {

constexpr char32_t bad = 0xfffd;

/// Takes one character off the front of `text`; a byte that begins none is U+FFFD by itself.
char32_t next_character(std::string_view& text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const std::size_t length = first < 0x80                     ? 1
                             : first >= 0xc2 && first <= 0xdf ? 2
                             : first >= 0xe0 && first <= 0xef ? 3
                             : first >= 0xf0 && first <= 0xf4 ? 4
                                                              : 0;
  char32_t c = length == 1 ? first : length == 0 ? bad : first & (0x7fU >> length);
  bool good = length != 0 && length <= text.size();
  for (std::size_t i = 1; good && i < length; ++i) {
    good = (byte(i) & 0xc0U) == 0x80;
    c = (c << 6U) | (byte(i) & 0x3fU);
  }
  constexpr char32_t least[] = {0, 0, 0x80, 0x800, 0x10000};  // shorter forms exist below
  good = good && c >= least[length] && c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
  text.remove_prefix(good ? length : 1);
  return good ? c : bad;
}

void append_utf8(std::string& out, char32_t c) {
  const auto put = [&](char32_t byte) { out += static_cast<char>(byte); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xc0 | (c >> 6U));
    put(0x80 | (c & 0x3fU));
  } else {
    if (c < 0x10000) {
      put(0xe0 | (c >> 12U));
    } else {
      put(0xf0 | (c >> 18U));
      put(0x80 | ((c >> 12U) & 0x3fU));
    }
    put(0x80 | ((c >> 6U) & 0x3fU));
    put(0x80 | (c & 0x3fU));
  }
}

bool is_blank(char32_t c) { return c <= 0x20 || (c >= 0x7f && c <= 0xa0) || c == 0x2028 || c == 0x2029; }

/// Overrides and isolates: they would reorder what stands around a label.
bool reorders(char32_t c) { return (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069); }

}  // namespace

std::string clean_text(std::string_view text, std::size_t limit) {
  std::string out;
  std::size_t count = 0;
  bool blank = false;  // seen since the last character, and not at the front
  while (!text.empty()) {
    const char32_t c = next_character(text);
    if (is_blank(c)) {
      blank = count > 0;
      continue;
    }
    if (count + (blank ? 1 : 0) >= limit) return out + "\u2026";
    if (blank) out += ' ';
    count += blank ? 2 : 1;
    blank = false;
    append_utf8(out, reorders(c) ? bad : c);
  }
  return out;
}

std::string shortened(const std::string& clean, std::size_t limit) {
  std::vector<std::size_t> begins;  // of the characters
  for (std::size_t i = 0; i < clean.size(); ++i)
    if ((static_cast<unsigned char>(clean[i]) & 0xc0U) != 0x80) begins.push_back(i);
  if (begins.size() <= limit || limit < 2) return clean;
  const std::size_t back = clean.find(' ') == std::string::npos ? limit / 2 : 0;
  const std::size_t front = limit - 1 - back;
  return clean.substr(0, begins[front]) + "\u2026" + (back > 0 ? clean.substr(begins[begins.size() - back]) : "");
}

void append_html(std::string& out, std::string_view clean) {
  for (const char c : clean) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
}

std::string html(std::string_view clean) {
  std::string out;
  append_html(out, clean);
  return out;
}

void append_json(std::string& out, std::string_view clean) {
  out += '"';
  for (const char c : clean) {
    // A script element ends at "</script" whatever its type is, and "<!--" changes how its end is found.
    if (c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' || static_cast<unsigned char>(c) < 0x20) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  out += '"';
}

void append_json(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
  } else if (value == 0) {
    out += '0';  // and no -0
  } else {
    char digits[40];
    out.append(digits, std::to_chars(digits, digits + sizeof digits, value, std::chars_format::general, 6).ptr);
  }
}

std::string grouped(std::uint64_t value) {
  std::string text = std::to_string(value);
  for (std::size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, ",");
  return text;
}

std::string shown(double value) {
  const double magnitude = std::abs(value);
  if (magnitude >= 999.95 && magnitude < 1e9)
    return (value < 0 ? "\u2212" : "") + grouped(static_cast<std::uint64_t>(std::llround(magnitude)));
  return (value < 0 ? "\u2212" : "") + fmt::format("{:.4g}", magnitude);
}

std::string percent(double share) { return fmt::format("{:.1f}\u00a0%", 100 * share); }

std::string duration(double seconds) {
  if (!(seconds < 1e9)) return "an unknown time";
  if (seconds < 0.0995) return fmt::format("{:.3g} ms", 1000 * seconds);
  if (seconds < 9.995) return fmt::format("{:.2f} s", seconds);
  if (seconds < 99.95) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<std::uint64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

}  // namespace polyad::report
