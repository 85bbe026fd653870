// SPDX-License-Identifier: MIT
#include "io/json_reader.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "io/label_text.hpp"
#include "io/shown.hpp"

namespace polyad::io {

namespace {

constexpr std::size_t longest_word = 1U << 10U;  // a number of more characters is none that a program writes
constexpr std::size_t most_brackets = 1000;      // inside one another, in values that are passed over
constexpr std::uint32_t no_number = 0xFFFFFFFF;

bool ends_word(char c) { return std::string_view(" \t\r\n,:[]{}\"").find(c) != std::string_view::npos; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

JsonReader::JsonReader(const std::string& path, const Context& context)
    : input_(path, context.cancelled), context_(&context) {
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  if (fill(byte_order_mark.size()) && std::string_view(text_).starts_with(byte_order_mark))
    at_ += byte_order_mark.size();
}

/// Reads on until n bytes are there; false when the file has fewer.
bool JsonReader::fill(std::size_t n) {
  if (end_ - at_ >= n || ended_) return end_ - at_ >= n;
  constexpr std::size_t block = 1U << 18U;
  text_.erase(0, at_);
  end_ -= at_;
  at_ = 0;
  text_.resize(end_ + block + text_padding);
  const std::size_t got = input_.read(text_.data() + end_, block);
  ended_ = got < block;
  end_ += got;
  text_.resize(end_);
  text_.resize(end_ + text_padding);  // zeros
  context_->report({"reading", input_.consumed(), input_.file_bytes().value_or(0), "bytes"});
  return end_ >= n;
}

int JsonReader::look() { return at_ < end_ || fill(1) ? static_cast<unsigned char>(text_[at_]) : -1; }

int JsonReader::next() {
  while (true) {
    const int c = look();
    if (c != ' ' && c != '\n' && c != '\r' && c != '\t') return c;
    line_ += c == '\n' ? 1 : 0;
    ++at_;
  }
}

std::string_view JsonReader::word() {
  (void)fill(longest_word);
  std::size_t length = 0;
  while (at_ + length < end_ && length < longest_word && !ends_word(text_[at_ + length])) ++length;
  return {text_.data() + at_, length};
}

double JsonReader::number(std::string_view what) {
  (void)next();
  const std::string_view found = word();
  const std::string_view digits = found.substr(found.starts_with('-') ? 1 : 0);
  double value = 0;
  if (digits.empty() || !is_digit(digits[0]) ||
      parse_value(found.data(), found.data() + found.size(), value) != found.data() + found.size())
    throw unexpected(what);
  at_ += found.size();
  return value;
}

std::string JsonReader::string(std::string_view what) {
  if (next() != '"') throw unexpected(what);
  ++at_;
  std::string text;
  while (true) {
    std::size_t run = at_;
    while (run < end_ && text_[run] != '"' && text_[run] != '\\' && static_cast<unsigned char>(text_[run]) >= 0x20)
      ++run;
    text.append(text_, at_, run - at_);
    at_ = run;
    if (text.size() > longest_label)
      throw file_error(name(), line_,
                       fmt::format("found a string of more than {} MB, expected {}", longest_label >> 20U, what));
    const int c = look();
    if (c == -1) throw file_error(name(), line_, "found the end of the file in a string, expected '\"'");
    if (c == '"') {
      ++at_;
      return text;
    }
    if (c == '\\') {
      escape(text);
    } else if (c < 0x20) {
      throw file_error(name(), line_, fmt::format("found the byte {} in a string, expected '\\u{:04x}'", c, c));
    }
  }
}

/// The value of 4 digits at text_[at], or no_number.
std::uint32_t JsonReader::hexadecimal(std::size_t at) const {
  std::uint32_t value = 0;
  for (std::size_t k = at; k < at + 4; ++k) {
    const char c = text_[k];
    const auto letter = static_cast<unsigned char>(c | 0x20);
    if (!is_digit(c) && (letter < 'a' || letter > 'f')) return no_number;
    value = value << 4U | static_cast<std::uint32_t>(is_digit(c) ? c - '0' : letter - 'a' + 10);
  }
  return value;
}

void JsonReader::escape(std::string& text) {
  (void)fill(12);  // \ud83d\ude00; behind the end there are zeros
  constexpr std::string_view plain = "\"\\/bfnrt";
  constexpr std::string_view meaning = "\"\\/\b\f\n\r\t";
  const char kind = text_[at_ + 1];
  if (const std::size_t k = plain.find(kind); k != std::string_view::npos) {
    text += meaning[k];
    at_ += 2;
    return;
  }
  std::uint32_t character = kind == 'u' ? hexadecimal(at_ + 2) : no_number;
  std::size_t length = 6;
  if (character >= 0xD800 && character < 0xDC00 && text_[at_ + 6] == '\\' && text_[at_ + 7] == 'u') {
    const std::uint32_t second = hexadecimal(at_ + 8);
    if (second >= 0xDC00 && second < 0xE000) {
      character = 0x10000 + ((character - 0xD800) << 10U) + (second - 0xDC00);
      length = 12;
    }
  }
  if (!append_character(text, character))
    throw file_error(name(), line_,
                     fmt::format("found '{}' in a string, expected an escaped character such as \\n or \\u00e9",
                                 shown(std::string_view(text_).substr(at_, std::min<std::size_t>(6, end_ - at_)))));
  at_ += length;
}

bool JsonReader::open(char bracket, char end, std::string_view what) {
  if (next() != bracket) throw unexpected(what);
  ++at_;
  if (next() != end) return true;
  ++at_;
  return false;
}

bool JsonReader::goes_on(char end) {
  const int c = next();
  if (c != ',' && c != end) throw unexpected(fmt::format("',' or '{}'", end));
  ++at_;
  return c == ',';
}

std::string JsonReader::key() {
  std::string text = string("a name in quotation marks");
  if (next() != ':') throw unexpected("':'");
  ++at_;
  return text;
}

void JsonReader::skip() {
  std::string ends;  // of the brackets that are open
  do {
    const int c = next();
    if (c == '{' || c == '[') {
      const char end = c == '{' ? '}' : ']';
      if (open(static_cast<char>(c), end, "")) {
        if (ends.size() == most_brackets)
          throw file_error(name(), line_, fmt::format("found more than {} brackets inside one another", most_brackets));
        ends += end;
        if (end == '}') (void)key();
        continue;
      }
    } else if (c == '"') {
      (void)string("a string");
    } else if (const std::string_view found = word(); found == "true" || found == "false" || found == "null") {
      at_ += found.size();
    } else {
      (void)number("a value");
    }
    while (!ends.empty() && !goes_on(ends.back())) ends.pop_back();
    if (!ends.empty() && ends.back() == '}') (void)key();
  } while (!ends.empty());
}

void JsonReader::finish() {
  if (next() != -1) throw unexpected("the end of the file");
}

Error JsonReader::unexpected(std::string_view what) {
  std::string found;
  switch (const int c = next(); c) {
    case -1:
      found = "the end of the file";
      break;
    case '{':
      found = "an object";
      break;
    case '[':
      found = "an array";
      break;
    case '"':
      found = "a string";
      break;
    case ',':
    case ':':
    case ']':
    case '}':
      found = fmt::format("'{}'", static_cast<char>(c));
      break;
    default:
      found = fmt::format("'{}'", shown(word()));
  }
  return file_error(name(), line_, fmt::format("found {}, expected {}", found, what));
}

}  // namespace polyad::io
