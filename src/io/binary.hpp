// SPDX-License-Identifier: MIT
/// \file What the binary dialects share: numbers of the types that files use, in records, to and from a CooTensor.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/input_stream.hpp"
#include "io/output_file.hpp"
#include "polyad/context.hpp"
#include "polyad/coo_tensor.hpp"
#include "polyad/io.hpp"

namespace polyad::io {

// The binary dialects are dumps of memory by programs on little-endian machines, and are read back as such.
static_assert(std::endian::native == std::endian::little);

enum class ScalarKind : std::uint8_t { boolean, signed_integer, unsigned_integer, real };

/// Type of a number in a file.
struct Scalar {
  ScalarKind kind = ScalarKind::unsigned_integer;
  std::uint8_t bytes = 8;
  bool big_endian = false;
};

[[nodiscard]] constexpr Scalar unsigned_scalar(std::uint64_t bytes) {
  return {ScalarKind::unsigned_integer, static_cast<std::uint8_t>(bytes), false};
}
[[nodiscard]] constexpr Scalar real_scalar(std::uint64_t bytes) {
  return {ScalarKind::real, static_cast<std::uint8_t>(bytes), false};
}

/// The field of a record that holds the value.
inline constexpr int value_field = -1;

/// A number at a fixed place in every record: the index of a mode, or the value.
struct Field {
  int mode = value_field;  // from 0
  Scalar type;
  std::size_t offset = 0;  // bytes from the beginning of the record
};

/// Where records come from: a stream, or an entry of an archive.
class ByteSource {
 public:
  ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;
  virtual ~ByteSource() = default;
  /// Takes up to n bytes; fewer only at the end of the data.
  virtual std::size_t read(void* to, std::size_t n) = 0;
  /// How far the whole file is read.
  [[nodiscard]] virtual Progress progress() const = 0;
};

/// A whole stream as a source.
class StreamSource final : public ByteSource {
 public:
  explicit StreamSource(InputStream& input) : input_(&input) {}
  std::size_t read(void* to, std::size_t n) override { return input_->read(to, n); }
  [[nodiscard]] Progress progress() const override {
    return {"reading", input_->consumed(), input_->file_bytes().value_or(0), "bytes"};
  }

 private:
  InputStream* input_;
};

/// Fills a tensor from records, checking every index and value on the way. A number of nonzeros that nothing has proved
/// yet does not allocate: the arrays grow with the data that arrives.
class RecordReader {
 public:
  /// \param file what messages call the file
  /// \param dims of the file; options.dims replace them
  /// \param nnz_is_proved the size of the file was compared with nnz
  RecordReader(std::string file, std::vector<std::uint64_t> dims, std::uint64_t nnz, bool nnz_is_proved,
               const ReadOptions& options, const Context& context);

  /// Reads nnz records of record_bytes each.
  void read(ByteSource& from, std::span<const Field> fields, std::size_t record_bytes);
  /// The tensor, when every field was read.
  [[nodiscard]] CooTensor take() { return std::move(x_); }

 private:
  void make_room(const Field& field, std::uint64_t count);
  void convert(const Field& field, const std::byte* from, std::size_t stride, std::size_t count, std::uint64_t first);

  std::string file_;
  std::uint64_t nnz_;
  std::uint64_t base_;
  const Context* context_;
  CooTensor x_;
};

/// Takes bytes in order.
using ByteSink = std::function<void(const void*, std::size_t)>;

/// Writes the nonzeros of x as records; adds to progress.done and reports it.
void write_records(const CooTensor& x, std::span<const Field> fields, std::size_t record_bytes, const ByteSink& to,
                   Progress& progress, const Context& context);

/// A number of the given type (integer, boolean or real) as a double.
[[nodiscard]] double decode(Scalar type, const std::byte* from);

/// Error unless 1 <= order <= max_order.
void check_order(std::string_view file, std::uint64_t order);
/// The base that the options ask for, 0 unless they do.
[[nodiscard]] int base_of(const ReadOptions& options);
/// When the size of the input is known: an Error unless exactly nnz records follow. Returns whether it was known.
[[nodiscard]] bool check_size(const InputStream& input, std::uint64_t nnz, std::uint64_t record_bytes);
/// Error unless the data ends here.
void check_end(InputStream& input);

/// The next number of a header; Error when the data ends before.
template <class T>
[[nodiscard]] T take(InputStream& input, std::string_view what = "its header") {
  T value = {};
  input.read_exactly(&value, sizeof value, what);
  return value;
}

/// An unsigned integer of 4 or 8 bytes.
[[nodiscard]] std::uint64_t take_unsigned(InputStream& input, Scalar type);

/// Appends the bytes of a number to a header.
template <class T>
void append(std::string& header, T value) {
  header.append(reinterpret_cast<const char*>(&value), sizeof value);
}
void append_unsigned(std::string& header, Scalar type, std::uint64_t value);

/// dims, nnz, then the indices mode by mode, then the values: the body that SPLATT and ALTO share.
[[nodiscard]] CooTensor read_columns(InputStream& input, std::uint64_t order, Scalar index, Scalar value,
                                     const ReadOptions& options, const Context& context, ReadReport& report);
/// The same body, after order.
void write_columns(const CooTensor& x, Scalar index, Scalar value, OutputFile& output, const Context& context);

}  // namespace polyad::io
