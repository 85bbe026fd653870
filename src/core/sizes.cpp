// SPDX-License-Identifier: MIT
#include "polyad/sizes.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <iterator>

namespace polyad {

std::string readable_bytes(std::uint64_t bytes) {
  if (bytes < 1000) return fmt::format("{} B", bytes);
  static constexpr std::string_view units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
  double x = static_cast<double>(bytes) / 1000;
  std::size_t u = 0;
  while (x >= 999.5 && u + 1 < std::size(units)) {
    x /= 1000;
    ++u;
  }
  return fmt::format("{:.{}f} {}", x, x < 9.995 ? 2 : x < 99.95 ? 1 : 0, units[u]);
}

std::string readable_seconds(double seconds) {
  static constexpr std::string_view units[] = {"s", "ms", "us", "ns"};
  double x = seconds;
  std::size_t u = 0;
  while (x > 0 && x < 0.9995 && u + 1 < std::size(units)) {
    x *= 1000;
    ++u;
  }
  return fmt::format("{:.{}f} {}", x, x < 9.995 ? 2 : x < 99.95 ? 1 : 0, units[u]);
}

std::string readable_count(std::uint64_t n) {
  std::string text = fmt::to_string(n);
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, 1, ',');
  return text;
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
  double number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc() || !(number >= 0)) return std::nullopt;
  std::string_view suffix = text.substr(static_cast<std::size_t>(end - text.data()));
  if (suffix.ends_with('B') || suffix.ends_with('b')) suffix.remove_suffix(1);
  double unit = 1;
  if (!suffix.empty()) {
    static constexpr std::string_view letters = "kmgt";
    const std::size_t power = letters.find(static_cast<char>(suffix[0] | 0x20));
    const bool binary = suffix.size() == 2 && suffix[1] == 'i';
    if (power == std::string_view::npos || (suffix.size() > 1 && !binary)) return std::nullopt;
    unit = std::pow(binary ? 1024.0 : 1000.0, static_cast<double>(power + 1));
  } else if (text.find_first_of(".eE") == std::string_view::npos) {
    std::uint64_t whole = 0;  // all 64 bits
    if (std::from_chars(text.data(), end, whole).ec != std::errc()) return std::nullopt;
    return whole;
  }
  const double size = std::round(number * unit);
  if (size >= 18446744073709551615.0) return std::nullopt;
  return static_cast<std::uint64_t>(size);
}

std::optional<std::vector<std::uint64_t>> parse_dims(std::string_view text) {
  std::vector<std::uint64_t> dims;
  while (true) {
    const std::size_t end = text.find_first_of("x,X");
    const auto dim = parse_size(text.substr(0, end));
    if (!dim || *dim == 0) return std::nullopt;
    dims.push_back(*dim);
    if (end == std::string_view::npos) return dims;
    text.remove_prefix(end + 1);
  }
}

}  // namespace polyad
