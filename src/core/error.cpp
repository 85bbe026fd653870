// SPDX-License-Identifier: MIT
#include "polyad/error.hpp"

#include <fmt/format.h>

namespace polyad {

Error file_error(std::string_view file, std::uint64_t line, std::string_view sentence) {
  if (line == 0) return {ErrorKind::input, fmt::format("{}: {}", file, sentence)};
  return {ErrorKind::input, fmt::format("{}:{}: {}", file, line, sentence)};
}

Error usage_error(std::string_view sentence) { return {ErrorKind::usage, std::string(sentence)}; }

}  // namespace polyad
