// SPDX-License-Identifier: MIT
/// \file Files that appear whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace polyad::io {

/// How an output is compressed.
enum class Compression : std::uint8_t { none, gzip, zstd };

/// By the end of the name: `.gz`, `.zst`.
[[nodiscard]] Compression compression_of(std::string_view path);
/// The path without `.gz` or `.zst`.
[[nodiscard]] std::string_view without_compression(std::string_view path);

/// An output that gets its name in commit(). Until then it is a file without a name (O_TMPFILE), so that even a killed
/// process leaves nothing behind; where the file system has no such files, a hidden one that the destructor removes.
class OutputFile {
 public:
  /// Opens an output at path ("-": standard output, "/dev/..." is written directly). A signal that comes while waiting
  /// makes it ask `cancelled`.
  OutputFile(std::string path, Compression compression, std::function<bool()> cancelled = {});
  /// Removes what was not committed.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// What messages should call it.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// True when encode() does anything.
  [[nodiscard]] bool is_compressed() const noexcept { return compression_ != Compression::none; }
  /// True when written bytes can be gone back to (a file without compression).
  [[nodiscard]] bool is_seekable() const noexcept;

  /// Appends bytes, compressing them if asked for.
  void write(const void* from, std::size_t n);
  void write(std::string_view text) { write(text.data(), text.size()); }
  /// Compresses a block by itself (a gzip member, a zstd frame); may be called by many threads.
  [[nodiscard]] std::string encode(std::string_view block) const;
  /// Appends a block that encode() made.
  void write_encoded(std::string_view block);
  /// Overwrites n bytes at an offset already written; only if is_seekable().
  void overwrite(std::uint64_t offset, const void* from, std::size_t n);
  /// Bytes handed to write() so far.
  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }

  /// Hands what is buffered to the system.
  void flush();
  /// Writes what is buffered and waits until it is on the disk: after commit() the file outlives a loss of power.
  void sync();
  /// Writes what is buffered and gives the file its name.
  void commit();

 private:
  void write_all(const char* from, std::size_t n);
  void stop_if_cancelled() const;
  [[nodiscard]] std::size_t room_for(std::size_t n) const;
  void link_to_name();

  std::function<bool()> cancelled_;
  std::string path_;
  std::string name_;
  Compression compression_;
  int fd_ = -1;
  bool direct_ = false;  // written in place: standard output, a device, a pipe
  std::string hidden_;   // path of the hidden file when O_TMPFILE is not available
  std::string buffer_;   // not yet written
  std::uint64_t position_ = 0;
};

/// What a path leads to behind symbolic links; the path itself when it is none.
[[nodiscard]] std::string behind_links(std::string path);

/// Writes a whole small file at once.
void write_file(const std::string& path, std::string_view text);

}  // namespace polyad::io
