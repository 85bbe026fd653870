// SPDX-License-Identifier: MIT
/// \file Libraries of drivers, opened at run time: a machine without them runs everything else.
#pragma once

#include <span>
#include <string>

namespace polyad::gpu {

/// A library that was opened. It is never closed: drivers start threads of their own and do not like to be unloaded.
class Library {
 public:
  /// Opens the library that the environment variable names (tests, unusual places), else the first of `names` that is
  /// there; found() is false when none is. \param marker a function whose presence in the process itself means that the
  /// library is there already, put there by a tool such as Oclgrind or by the program; null: do not look
  Library(const char* variable, std::span<const char* const> names, const char* marker);

  [[nodiscard]] bool found() const { return handle_ != nullptr; }
  /// "libOpenCL.so.1 was not found": why found() is false.
  [[nodiscard]] const std::string& why_not() const { return why_not_; }
  /// The address of a function; null when the library has none of this name.
  [[nodiscard]] void* symbol(const char* name) const;

 private:
  void* handle_ = nullptr;
  std::string why_not_;
};

}  // namespace polyad::gpu
