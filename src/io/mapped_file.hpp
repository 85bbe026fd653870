// SPDX-License-Identifier: MIT
/// \file A file as memory, and whose memory an address is.
#pragma once

#include <cstddef>
#include <string>

namespace polyad::io {

/// A whole file mapped privately: its bytes can be changed in memory, the file never sees it. A file that another
/// process shortens meanwhile raises SIGBUS where the missing pages are touched; see mapped_path_at().
class MappedFile {
 public:
  /// Maps a regular file; throws Error.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  /// First byte; null when the file is empty.
  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  /// Bytes of the file when it was mapped.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// Path as given.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  int slot_ = -1;  // in the table of mapped_path_at(), -1: not listed
};

/// Path of the MappedFile that `address` lies in, or null. Async-signal-safe: a SIGBUS handler may ask it for si_addr.
/// The text lives as long as the MappedFile. When more than 256 files are mapped at once, the later ones are not
/// listed.
[[nodiscard]] const char* mapped_path_at(const void* address) noexcept;

}  // namespace polyad::io
