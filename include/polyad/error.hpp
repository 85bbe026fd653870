// SPDX-License-Identifier: MIT
/// \file Every mistake a user can make arrives as one polyad::Error whose text is a finished sentence.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace polyad {

/// What kind of thing went wrong; the command line turns it into an exit code.
enum class ErrorKind : std::uint8_t {
  input,      ///< the data or a file is not what it should be
  limit,      ///< a memory limit, a disk, a size would be exceeded
  usage,      ///< the caller asked for something that makes no sense
  cancelled,  ///< the caller asked to stop
};

/// Thrown by the library for everything that is not a bug. `what()` is one sentence with the values in it.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& sentence) : std::runtime_error(sentence), kind_(kind) {}

  /// What kind of thing went wrong.
  [[nodiscard]] ErrorKind kind() const noexcept { return kind_; }

 private:
  ErrorKind kind_;
};

/// "FILE:LINE: sentence" (line 0: "FILE: sentence"), of kind input.
[[nodiscard]] Error file_error(std::string_view file, std::uint64_t line, std::string_view sentence);

/// A mistake in what the caller asked for, of kind usage.
[[nodiscard]] Error usage_error(std::string_view sentence);

}  // namespace polyad
