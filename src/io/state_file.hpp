// SPDX-License-Identifier: MIT
/// \file Snapshots of a computation: a JSON head and named arrays in one file, all of it checksummed.
///
///   bytes 0-7    "polyadST"
///   bytes 8-15   version of the layout, 1
///   bytes 16-23  bytes of the head
///   bytes 24-31  XXH3-64 of the head
///   the head: JSON, with "arrays": [{"name", "offset", "bytes", "checksum"}, ..]; offsets from the end of the padded
///   head the arrays, each beginning at a multiple of 64
#pragma once

#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/mapped_file.hpp"
#include "polyad/context.hpp"

namespace polyad::io {

/// An array of a snapshot that is to be written; the bytes belong to the caller.
struct StateArray {
  std::string name;
  std::span<const std::byte> bytes;
};

/// Writes a snapshot. It appears whole or not at all, and what the path held before stays as PATH.previous.
void write_state(const std::string& path, nlohmann::ordered_json head, std::span<const StateArray> arrays,
                 const Context& context);

/// A snapshot that was read and whose checksums are right.
class StateFile {
 public:
  /// Error (input) that says what is wrong with the file.
  explicit StateFile(const std::string& path);

  [[nodiscard]] const nlohmann::ordered_json& head() const noexcept { return head_; }
  [[nodiscard]] const std::string& path() const noexcept { return file_->path(); }
  /// Copies an array into place; Error (input) unless it is there and has exactly so many bytes.
  void copy(std::string_view name, std::span<std::byte> to) const;

 private:
  [[noreturn]] void damaged(std::string_view what) const;

  std::unique_ptr<MappedFile> file_;
  nlohmann::ordered_json head_;
  std::size_t arrays_begin_ = 0;
};

/// The bytes of a vector or buffer.
template <class Array>
[[nodiscard]] std::span<const std::byte> bytes_of_array(const Array& array, std::size_t count) {
  return std::as_bytes(std::span(array.data(), count));
}

}  // namespace polyad::io
