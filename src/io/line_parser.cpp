// SPDX-License-Identifier: MIT
#include "io/line_parser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "io/shown.hpp"

namespace polyad::io {

namespace {

/// The next token of the line, or an empty one at its end.
std::string_view take_token(std::string_view& line, char separator) {
  std::size_t begin = 0;
  while (begin < line.size() && is_blank(line[begin])) ++begin;
  std::size_t end = begin;
  while (end < line.size() && (separator == ',' ? line[end] != ',' : !is_blank(line[end]))) ++end;
  std::string_view token = line.substr(begin, end - begin);
  line.remove_prefix(std::min(line.size(), end + (separator == ',' && end < line.size() ? 1 : 0)));
  while (!token.empty() && is_blank(token.back())) token.remove_suffix(1);
  return token;
}

std::string expected(const TextLayout& layout) {
  return fmt::format("{} {}{}", layout.order, layout.order == 1 ? "index" : "indices",
                     layout.has_values ? " and a value" : "");
}

std::string wrong_index(const TextLayout& layout, int mode, std::string_view token) {
  const bool digits = std::ranges::all_of(token, [](char c) { return c >= '0' && c <= '9'; });
  std::string_view wanted = "a whole number of 0 or more";
  if (digits) wanted = "a number below 2^64";
  std::string hint;
  if (token.find(',') != std::string_view::npos && layout.separator != ',') hint = " (commas: is it a .csv file?)";
  return fmt::format("found '{}' as the index of mode {}, expected {}{}", shown(token), mode + 1, wanted, hint);
}

}  // namespace

std::string range_sentence(const TextLayout& layout, int mode, std::uint64_t index, std::uint64_t lowest,
                           std::uint64_t highest) {
  const std::string_view why = layout.dims.empty() ? "" : ", its dimension";
  if (index < lowest) return fmt::format("found index {} in mode {}, expected {} or more", index, mode + 1, lowest);
  return fmt::format("found index {} in mode {}, expected at most {}{}", index, mode + 1, highest,
                     layout.base == 0 ? "" : why);
}

template <class Value>
LineResult careful_line(const TextLayout& layout, std::string_view line, std::uint64_t* row, Value& value) {
  if (const std::size_t comment = line.find(layout.comment); comment != std::string_view::npos)
    line = line.substr(0, comment);
  if (line.ends_with('\r')) line.remove_suffix(1);  // elsewhere it is no blank: a file of CR alone is one long line
  if (std::ranges::all_of(line, is_blank)) return {};

  // Count first: "3 numbers where 4 should be" says more than the first token that is wrong because of it.
  std::vector<std::string_view> tokens;
  for (std::string_view rest = line; !std::ranges::all_of(rest, is_blank);) {
    tokens.push_back(take_token(rest, layout.separator));
    if (tokens.size() > max_order + 2) break;
  }
  if (layout.separator == ',' && line.find_last_not_of(" \t") != std::string_view::npos &&
      line[line.find_last_not_of(" \t")] == ',')
    tokens.emplace_back();  // nothing behind the last comma is a number too many
  const auto order = static_cast<std::size_t>(layout.order);
  const std::size_t wanted = order + (layout.has_values ? 1 : 0);
  const auto number = [](std::string_view t) {
    return !t.empty() &&
           (std::isdigit(static_cast<unsigned char>(t[0])) != 0 || t[0] == '-' || t[0] == '+' || t[0] == '.');
  };
  if (tokens.size() != wanted && std::ranges::all_of(tokens, number))
    return {LineKind::wrong, fmt::format("found {} {}, expected {}",
                                         tokens.size() > max_order + 1 ? "too many" : fmt::to_string(tokens.size()),
                                         tokens.size() == 1 ? "number" : "numbers", expected(layout))};

  for (std::size_t m = 0; m < std::min(order, tokens.size()); ++m) {
    std::string_view token = tokens[m];
    const auto mode = static_cast<int>(m);
    if (token.starts_with('+')) token.remove_prefix(1);
    if (token.empty() || !std::ranges::all_of(token, [](char c) { return c >= '0' && c <= '9'; }))
      return {LineKind::wrong, wrong_index(layout, mode, tokens[m])};
    while (token.size() > 1 && token[0] == '0') token.remove_prefix(1);
    std::uint64_t x = 0;
    for (const char c : token) {
      const auto digit = static_cast<std::uint64_t>(c - '0');
      if (x > (std::numeric_limits<std::uint64_t>::max() - 1 - digit) / 10)
        return {LineKind::wrong, wrong_index(layout, mode, token)};
      x = x * 10 + digit;
    }
    row[m] = x;
  }
  if (tokens.size() != wanted)
    return {LineKind::wrong, fmt::format("found {} {}, expected {}", tokens.size(),
                                         tokens.size() == 1 ? "word" : "words", expected(layout))};
  value = 1;
  if (layout.has_values) {
    std::string_view token = tokens.back();
    if (token.empty()) return {LineKind::wrong, "found nothing as the value, expected a number"};
    // fast_float reads to the end it is given; the token lies inside the padded block, so reading past it is safe.
    const char* token_end = token.data() + token.size();
    if (parse_value(token.data(), token_end, value) == token_end) return {LineKind::nonzero, {}};
    double wide = 0;
    const char* wide_end = parse_value(token.data(), token_end, wide);
    if (wide_end == token_end)
      return {LineKind::wrong,
              fmt::format("found value {}, which f32 cannot hold (--precision f64 can)", shown(token))};
    double ignored = 0;
    const auto any = fast_float::from_chars(token.data() + (token[0] == '+' ? 1 : 0), token_end, ignored);
    if (any.ptr == token_end && std::isfinite(ignored))
      return {LineKind::wrong, fmt::format("found value '{}', which is too small for f64 and not zero", shown(token))};
    if (any.ptr == token_end)
      return {LineKind::wrong,
              fmt::format("found value '{}', expected a finite number (at most about 1.8e308)", shown(token))};
    return {LineKind::wrong, fmt::format("found '{}' as the value, expected a number", shown(token))};
  }
  return {LineKind::nonzero, {}};
}

template LineResult careful_line(const TextLayout&, std::string_view, std::uint64_t*, float&);
template LineResult careful_line(const TextLayout&, std::string_view, std::uint64_t*, double&);

}  // namespace polyad::io
