// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "io/line_parser.hpp"
#include "io/shown.hpp"
#include "io/text_reader.hpp"
#include "polyad/error.hpp"

namespace polyad::io {

namespace {

/// No header has more lines; the data need not be cut into tokens here.
constexpr std::size_t most_lines = 8;

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
    if (text.ends_with('\r')) text.remove_suffix(1);
    at = std::min(end + 1, head.size());
    std::vector<std::string_view> tokens = cut(text);
    if (!tokens.empty()) lines_.push_back({next_number_, at, text, std::move(tokens)});
    ++next_number_;
  }
}

Head head_of(InputStream& input) {
  // A file may begin with many comments; beyond this they are not worth reading twice.
  constexpr std::size_t most = std::size_t{16} << 20U;
  std::size_t wanted = head_bytes;
  while (true) {
    const std::string_view head = input.peek(wanted);
    if (head.size() < wanted) return {head, true};
    const std::size_t first = head.find_first_not_of(" \t\r\n");
    const char c = first == std::string_view::npos ? '#' : head[first];
    const bool comments = c == '#' || c == '%';
    if (!comments || wanted >= most || HeadLines(head, false, c).size() >= most_lines) return {head, false};
    wanted *= 4;
  }
}

HeadLines head_lines(InputStream& input, char comment) {
  const Head head = head_of(input);
  return {head.text, head.complete, comment};
}

std::optional<std::uint64_t> as_integer(std::string_view token) {
  std::uint64_t x = 0;
  const auto [end, code] = std::from_chars(token.data(), token.data() + token.size(), x);
  if (code != std::errc() || end != token.data() + token.size()) return std::nullopt;
  return x;
}

std::vector<std::uint64_t> as_dims(const InputStream& input, const HeadLines::Line& line) {
  std::vector<std::uint64_t> dims;
  for (const std::string_view token : line.tokens) {
    const auto dim = as_integer(token);
    if (!dim || *dim == 0)
      throw file_error(input.name(), line.number,
                       fmt::format("found '{}' as the length of mode {}, expected a positive whole number",
                                   shown(token), dims.size() + 1));
    dims.push_back(*dim);
  }
  return dims;
}

}  // namespace polyad::io
