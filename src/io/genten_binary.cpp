// SPDX-License-Identifier: MIT
// GenTen's binary sparse tensor (Genten_TensorIO.cpp), no padding:
//   "sptn" | uint32 order | uint32 bits of a value (32, 64) | uint64 dims[order]
//   | uint64 bits of an index[order] (16, 32, 64) | uint64 nnz
//   | nnz records: an index per mode in its own width, 0-based, then the value
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "io/binary.hpp"
#include "io/dialect.hpp"
#include "polyad/error.hpp"

namespace polyad::io {

namespace {

constexpr std::string_view sparse_magic = "sptn";
constexpr std::string_view dense_magic = "dntn";

/// The narrowest of the widths GenTen knows, in bits; by the dim, as GenTen does, not by the largest index.
std::uint64_t bits_for(std::uint64_t dim) {
  if (dim <= std::numeric_limits<std::uint16_t>::max()) return 16;
  return dim <= std::numeric_limits<std::uint32_t>::max() ? 32 : 64;
}

bool detect(std::string_view head, std::string_view /*extension*/) {
  // A dense file is recognised too, to be refused by its right name. Text would continue with a letter.
  return (head.starts_with(sparse_magic) || head.starts_with(dense_magic)) && head.size() > 7 && head[7] == '\0';
}

CooTensor read(InputStream& input, const ReadOptions& options, const Context& context, ReadReport& report) {
  const auto magic = take<std::array<char, 4>>(input);
  const std::string_view word(magic.data(), magic.size());
  if (word == dense_magic)
    throw file_error(input.name(), 0, "found a dense GenTen tensor (dntn), expected a sparse one (sptn)");
  if (word != sparse_magic) throw file_error(input.name(), 0, "found other first bytes, expected sptn");
  const std::uint64_t order = take<std::uint32_t>(input);
  const std::uint64_t value_bits = take<std::uint32_t>(input);
  check_order(input.name(), order);
  if (value_bits != 32 && value_bits != 64) {
    throw file_error(input.name(), 0, fmt::format("found values of {} bits, expected 32 or 64", value_bits));
  }
  std::vector<std::uint64_t> dims(order);
  for (auto& d : dims) d = take<std::uint64_t>(input);
  std::vector<Field> fields;
  std::size_t record_bytes = 0;
  for (int m = 0; m < static_cast<int>(order); ++m) {
    const auto bits = take<std::uint64_t>(input);
    if (bits != 16 && bits != 32 && bits != 64) {
      throw file_error(input.name(), 0,
                       fmt::format("found indices of {} bits in mode {}, expected 16, 32 or 64", bits, m + 1));
    }
    fields.push_back({m, unsigned_scalar(bits / 8), record_bytes});
    record_bytes += bits / 8;
  }
  fields.push_back({value_field, real_scalar(value_bits / 8), record_bytes});
  record_bytes += value_bits / 8;
  const auto nnz = take<std::uint64_t>(input);
  const bool proved = check_size(input, nnz, record_bytes);
  RecordReader reader(input.name(), std::move(dims), nnz, proved, options, context);
  StreamSource source(input);
  reader.read(source, fields, record_bytes);
  check_end(input);
  report.index_base = base_of(options);
  return reader.take();
}

void write(const CooTensor& x, OutputFile& output, const WriteOptions& /*options*/, const Context& context) {
  const std::uint64_t value_bytes = bytes_of(x.precision());
  std::string header(sparse_magic);
  append(header, static_cast<std::uint32_t>(x.order()));
  append(header, static_cast<std::uint32_t>(8 * value_bytes));
  for (const std::uint64_t d : x.dims) append(header, d);
  std::vector<Field> fields;
  std::size_t record_bytes = 0;
  for (int m = 0; m < x.order(); ++m) {
    const std::uint64_t bits = bits_for(x.dims[static_cast<std::size_t>(m)]);
    append(header, bits);
    fields.push_back({m, unsigned_scalar(bits / 8), record_bytes});
    record_bytes += bits / 8;
  }
  fields.push_back({value_field, real_scalar(value_bytes), record_bytes});
  record_bytes += value_bytes;
  append(header, x.nnz());
  output.write(header);
  Progress progress{"writing", 0, x.nnz() * record_bytes, "bytes"};
  write_records(
      x, fields, record_bytes, [&](const void* from, std::size_t n) { output.write(from, n); }, progress, context);
}

}  // namespace

const Dialect genten_binary_dialect = {.name = "genten-binary",
                                       .summary = "GenTen's binary sparse tensor (sptn)",
                                       .extensions = {".sptn"},
                                       .is_text = false,
                                       .holds_labels = false,
                                       .holds_dims = true,
                                       .detect = detect,
                                       .read = read,
                                       .write = write};

}  // namespace polyad::io
