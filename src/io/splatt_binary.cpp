// SPDX-License-Identifier: MIT
// SPLATT's binary coordinates (splatt/src/io.c), no padding:
//   int32 magic (0: coordinates, 1: CSF) | uint64 index width | uint64 value width (4 or 8)
//   in index width: order | dims[order] | nnz | indices[order][nnz], 0-based
//   in value width: values[nnz]
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include "io/binary.hpp"
#include "io/dialect.hpp"
#include "polyad/error.hpp"

namespace polyad::io {

namespace {

bool is_width(std::uint64_t bytes) { return bytes == 4 || bytes == 8; }

bool detect(std::string_view head, std::string_view /*extension*/) {
  if (head.size() < 20) return false;
  std::int32_t magic = 0;
  std::uint64_t index_width = 0;
  std::uint64_t value_width = 0;
  std::memcpy(&magic, head.data(), 4);
  std::memcpy(&index_width, head.data() + 4, 8);
  std::memcpy(&value_width, head.data() + 12, 8);
  return (magic == 0 || magic == 1) && is_width(index_width) && is_width(value_width);
}

CooTensor read(InputStream& input, const ReadOptions& options, const Context& context, ReadReport& report) {
  const auto magic = take<std::int32_t>(input);
  const auto index_width = take<std::uint64_t>(input);
  const auto value_width = take<std::uint64_t>(input);
  if (magic == 1)
    throw file_error(input.name(), 0, "found a SPLATT CSF file (magic 1), expected coordinates (magic 0)");
  if (magic != 0) throw file_error(input.name(), 0, fmt::format("found magic {}, expected 0", magic));
  if (!is_width(index_width)) {
    throw file_error(input.name(), 0, fmt::format("found indices of {} bytes, expected 4 or 8", index_width));
  }
  if (!is_width(value_width)) {
    throw file_error(input.name(), 0, fmt::format("found values of {} bytes, expected 4 or 8", value_width));
  }
  const Scalar index = unsigned_scalar(index_width);
  return read_columns(input, take_unsigned(input, index), index, real_scalar(value_width), options, context, report);
}

void write(const CooTensor& x, OutputFile& output, const WriteOptions& /*options*/, const Context& context) {
  // Every build of SPLATT reads 4-byte indices, only the default one reads 8.
  constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
  const bool narrow = x.nnz() < most && std::ranges::all_of(x.dims, [](std::uint64_t d) { return d <= most; });
  const Scalar index = unsigned_scalar(narrow ? 4 : 8);
  const Scalar value = real_scalar(bytes_of(x.precision()));
  std::string header;
  append(header, std::int32_t{0});
  append(header, std::uint64_t{index.bytes});
  append(header, std::uint64_t{value.bytes});
  append_unsigned(header, index, static_cast<std::uint64_t>(x.order()));
  output.write(header);
  write_columns(x, index, value, output, context);
}

}  // namespace

const Dialect splatt_binary_dialect = {.name = "splatt-binary",
                                       .summary = "SPLATT's binary coordinates",
                                       .extensions = {".bin"},
                                       .is_text = false,
                                       .holds_labels = false,
                                       .holds_dims = true,
                                       .detect = detect,
                                       .read = read,
                                       .write = write};

}  // namespace polyad::io
