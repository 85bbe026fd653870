// SPDX-License-Identifier: MIT
#include "io/shown.hpp"

#include <fmt/format.h>

namespace polyad::io {

std::string shown(std::string_view text) {
  constexpr std::size_t most = 40;
  std::string out;
  for (const char c : text.substr(0, most)) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  if (text.size() > most) out += "...";
  return out;
}

}  // namespace polyad::io
