// SPDX-License-Identifier: MIT
/// \file The part of zip that `.npz` needs: entries stored or deflated, read one at a time, of any size (zip64).
///
/// By hand, because Debian 12's minizip (1.1) takes entries above 4 GiB for 4 GiB long and cannot write to a pipe.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/binary.hpp"
#include "io/input_stream.hpp"
#include "io/output_file.hpp"
#include "polyad/buffer.hpp"
#include "polyad/context.hpp"

namespace polyad::io {

/// What the directory of an archive says about an entry.
struct ZipEntry {
  std::string name;
  std::uint16_t flags = 0;
  std::uint16_t method = 0;  // 0 stored, 8 deflated
  std::uint32_t crc = 0;
  std::uint64_t packed = 0;  // bytes in the archive
  std::uint64_t bytes = 0;   // when inflated
  std::uint64_t offset = 0;  // of its local header
};

/// The archive of an input: its file when it has one of its own, else a copy in memory, as the directory is at the end.
class ZipReader final : public ByteSource {
 public:
  ZipReader(InputStream& input, const Context& context);
  ~ZipReader() override;

  /// Bytes of an entry when inflated, if there is such an entry.
  [[nodiscard]] std::optional<std::uint64_t> find(std::string_view name) const;
  /// Goes to the beginning of an entry; Error unless there is one.
  void open(std::string_view name);
  /// Bytes of the open entry when inflated, as the directory says.
  [[nodiscard]] std::uint64_t entry_bytes() const { return entry_.bytes; }
  /// The open entry is stored, so its size is a fact and not a promise.
  [[nodiscard]] bool is_stored() const { return entry_.method == 0; }
  std::size_t read(void* to, std::size_t n) override;
  /// Ends an entry that was read whole: nothing may be left and its checksum must be right.
  void close();

  /// Bytes that progress counts to.
  void set_total(std::uint64_t bytes) { progress_.total = bytes; }
  [[nodiscard]] Progress progress() const override;

 private:
  [[nodiscard]] std::size_t read_at(std::uint64_t offset, void* to, std::size_t n) const;
  void read_directory();
  void parse_directory(std::string_view directory);
  [[nodiscard]] std::size_t inflate_some(char* to, std::size_t n);
  [[nodiscard]] Error damaged(std::string_view what) const;

  std::string file_;
  int fd_ = -1;
  Buffer<char> memory_;
  std::uint64_t size_ = 0;  // of the archive
  std::vector<ZipEntry> entries_;

  ZipEntry entry_;
  std::uint64_t at_ = 0;    // the next packed byte of the entry
  std::uint64_t left_ = 0;  // packed bytes not yet taken
  std::uint64_t given_ = 0;
  std::uint32_t crc_ = 0;
  z_stream z_ = {};
  bool inflating_ = false;
  bool stream_ended_ = false;
  std::string packed_;  // input of zlib
  Progress progress_{"reading", 0, 0, "bytes"};
};

/// Writes an archive of stored entries, strictly forwards.
class ZipWriter {
 public:
  explicit ZipWriter(OutputFile& output) : output_(&output), start_(output.position()) {}

  /// Adds an entry. `produce` is called twice and hands the same bytes to its sink both times: the first time for the
  /// checksum, which stands before the bytes.
  void add(std::string_view name, const std::function<void(const ByteSink&)>& produce);
  /// Writes the directory.
  void finish();

 private:
  OutputFile* output_;
  std::uint64_t start_;
  std::vector<ZipEntry> entries_;
};

}  // namespace polyad::io
