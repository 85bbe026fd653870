// SPDX-License-Identifier: MIT
/// \file Bytes of a file or of standard input, in order, decompressed on the way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace polyad::io {

/// A source of bytes. gzip (also several members) and zstd (also several frames) are recognised by their first bytes. A
/// plain file that becomes shorter while it is read is an Error, and so is a compressed one that ends early.
class InputStream {
 public:
  /// Opens a file, or standard input for "-". A signal that comes while waiting for bytes makes it ask `cancelled`.
  explicit InputStream(const std::string& path, std::function<bool()> cancelled = {});
  ~InputStream();
  InputStream(const InputStream&) = delete;
  InputStream& operator=(const InputStream&) = delete;

  /// What messages should call it.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// Path as given.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// "", "gzip" or "zstd".
  [[nodiscard]] std::string_view compression() const noexcept { return compression_; }
  /// Bytes on disk when it is a regular file.
  [[nodiscard]] std::optional<std::uint64_t> file_bytes() const noexcept { return file_bytes_; }
  /// Bytes that read() will give in all, when that is known (an uncompressed regular file).
  [[nodiscard]] std::optional<std::uint64_t> total_bytes() const noexcept {
    return compression_.empty() ? file_bytes_ : std::nullopt;
  }
  /// Bytes given by read() so far.
  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }
  /// Bytes taken from the file so far, for progress: comparable with file_bytes().
  [[nodiscard]] std::uint64_t consumed() const noexcept { return consumed_; }

  /// The next bytes without taking them: at least n unless the data ends before. Valid until the next call.
  [[nodiscard]] std::string_view peek(std::size_t n);
  /// Takes up to n bytes; fewer only at the end of the data.
  std::size_t read(void* to, std::size_t n);
  /// Takes exactly n bytes, else an Error "ends in the middle of WHAT".
  void read_exactly(void* to, std::size_t n, std::string_view what);

 private:
  class Decoder;
  class Gzip;
  class Zstd;

  void stop_if_cancelled() const;
  void wait_for_bytes() const;
  std::size_t read_file(void* to, std::size_t n);
  std::size_t read_decoded(void* to, std::size_t n);

  std::function<bool()> cancelled_;
  std::string path_;
  std::string name_;
  std::string_view compression_;
  std::optional<std::uint64_t> file_bytes_;
  int fd_ = -1;
  bool ended_ = false;  // a decoder, and a terminal, must not be asked again
  std::uint64_t consumed_ = 0;
  std::uint64_t position_ = 0;
  std::string raw_head_;  // bytes looked at to recognise the compression
  std::size_t raw_head_used_ = 0;
  std::string ahead_;  // decoded bytes peeked at
  std::size_t ahead_used_ = 0;
  std::unique_ptr<Decoder> decoder_;
};

}  // namespace polyad::io
