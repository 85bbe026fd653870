// SPDX-License-Identifier: MIT
/// \file JSON read piece by piece as the caller asks for it: nothing of the file stays in memory, every message has a
/// line, and numbers are read as in all other text (a parsed document would take several times its numbers, and knows
/// no lines).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "io/input_stream.hpp"
#include "io/text_numbers.hpp"
#include "polyad/context.hpp"
#include "polyad/error.hpp"

namespace polyad::io {

/// A pull parser. `what` is what messages say was expected.
class JsonReader {
 public:
  JsonReader(const std::string& path, const Context& context);

  /// What messages call the file.
  [[nodiscard]] const std::string& name() const { return input_.name(); }
  /// Line of what was read last, from 1.
  [[nodiscard]] std::uint64_t line() const { return line_; }

  /// The next value as a finite number.
  double number(std::string_view what);
  /// The next value as text: UTF-8; \udc80 to \udcff are bytes (see next_character).
  std::string string(std::string_view what);
  /// Calls element() at each element; it has to read it.
  template <class Element>
  void array(std::string_view what, const Element& element) {
    if (!open('[', ']', what)) return;
    do element();
    while (goes_on(']'));
  }
  /// Calls member(key) at each value; it has to read it.
  template <class Member>
  void object(std::string_view what, const Member& member) {
    if (!open('{', '}', what)) return;
    do member(key());
    while (goes_on('}'));
  }
  /// Passes over a value of any kind.
  void skip();
  /// Error unless nothing but blanks follows.
  void finish();

 private:
  bool fill(std::size_t n);
  int look();  // the next byte, -1 at the end
  int next();  // the same behind blanks
  [[nodiscard]] std::string_view word();
  bool open(char bracket, char end, std::string_view what);
  bool goes_on(char end);
  std::string key();
  void escape(std::string& text);
  [[nodiscard]] std::uint32_t hexadecimal(std::size_t at) const;
  [[nodiscard]] Error unexpected(std::string_view what);

  InputStream input_;
  const Context* context_;
  std::string text_ = std::string(text_padding, '\0');  // [at_, end_) is still to be read
  std::size_t at_ = 0;
  std::size_t end_ = 0;
  bool ended_ = false;  // of the file nothing is left
  std::uint64_t line_ = 1;
};

}  // namespace polyad::io
