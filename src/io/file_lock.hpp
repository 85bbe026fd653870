// SPDX-License-Identifier: MIT
/// \file Two programs that write the same file in turns would each lose what the other wrote: one of them has to wait
/// or to leave.
#pragma once

#include <string>

namespace polyad::io {

/// Holds PATH.lock, a file that is there only while somebody holds it. The system lets go of it when a process dies, so
/// what a killed one leaves behind stops nobody.
class FileLock {
 public:
  /// Error (input) when another holds it. Where no lock can be made (the folder is closed, the file system has none)
  /// nothing is held.
  explicit FileLock(const std::string& path);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  std::string lock_;
  int fd_ = -1;
};

}  // namespace polyad::io
