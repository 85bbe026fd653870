// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>

#include "io/text_reader.hpp"
#include "polyad/error.hpp"

namespace polyad::io {

namespace {

/// No header has more lines; the data need not be cut into tokens here.
constexpr std::size_t most_lines = 8;

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

std::vector<std::string_view> cut(std::string_view text) {
  std::vector<std::string_view> tokens;
  std::size_t at = 0;
  while (at < text.size()) {
    while (at < text.size() && is_blank(text[at])) ++at;
    const std::size_t begin = at;
    while (at < text.size() && !is_blank(text[at])) ++at;
    if (at > begin) tokens.push_back(text.substr(begin, at - begin));
  }
  return tokens;
}

}  // namespace

HeadLines::HeadLines(std::string_view head, bool complete, char comment) {
  std::size_t at = 0;
  while (at < head.size() && lines_.size() < most_lines) {
    std::size_t end = head.find('\n', at);
    if (end == std::string_view::npos) {
      if (!complete) {
        cut_off_ = true;
        return;
      }
      end = head.size();
    }
    std::string_view text = head.substr(at, end - at);
    text = text.substr(0, text.find(comment));
    at = std::min(end + 1, head.size());
    std::vector<std::string_view> tokens = cut(text);
    if (!tokens.empty()) lines_.push_back({next_number_, at, text, std::move(tokens)});
    ++next_number_;
  }
}

HeadLines head_lines(InputStream& input, char comment) {
  const std::string_view head = input.peek(head_bytes);
  return {head.substr(0, head_bytes), head.size() < head_bytes, comment};
}

std::optional<std::uint64_t> as_integer(std::string_view token) {
  if (token.empty() || token.size() > 19 || !std::ranges::all_of(token, [](char c) { return c >= '0' && c <= '9'; }))
    return std::nullopt;
  std::uint64_t x = 0;
  for (const char c : token) x = x * 10 + static_cast<std::uint64_t>(c - '0');
  return x;
}

std::vector<std::uint64_t> as_dims(const InputStream& input, const HeadLines::Line& line) {
  std::vector<std::uint64_t> dims;
  for (const std::string_view token : line.tokens) {
    const auto dim = as_integer(token);
    if (!dim || *dim == 0)
      throw file_error(input.name(), line.number,
                       fmt::format("found '{}' as the length of mode {}, expected a positive whole number",
                                   token.substr(0, 40), dims.size() + 1));
    dims.push_back(*dim);
  }
  return dims;
}

}  // namespace polyad::io
