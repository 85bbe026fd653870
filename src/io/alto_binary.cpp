// SPDX-License-Identifier: MIT
// ALTO's binary coordinates (ALTO/src/sptensor.cpp), no magic, no padding, all numbers of 8 bytes:
//   order | dims[order] | nnz | indices[order][nnz], 0-based | values[nnz]
// ALTO writes order from an int and the padding after it, so only its lower half can be trusted. Builds with IDX_TYPE32
// or FP_TYPE32 write 4-byte numbers; nothing tells such a file from one that was cut short, so it is refused.
#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "io/binary.hpp"
#include "io/dialect.hpp"
#include "polyad/error.hpp"

namespace polyad::io {

namespace {

std::uint64_t number_at(std::string_view head, std::size_t offset) {
  std::uint64_t n = 0;
  std::memcpy(&n, head.data() + offset, sizeof n);
  return n;
}

bool detect(std::string_view /*head*/, std::string_view extension) {
  // Nothing in the file names it. Whatever else is called .bin and was recognised by nobody is refused by read().
  return extension == ".bin" || extension == ".alto";
}

CooTensor read(InputStream& input, const ReadOptions& options, const Context& context, ReadReport& report) {
  constexpr std::string_view stranger = "is not a SPLATT, GenTen or ALTO binary:";
  const std::string_view head = input.peek((std::size_t{max_order} + 2) * 8);
  if (head.size() < 24) {  // order, one dim, nnz
    throw file_error(input.name(), 0, fmt::format("{} found {} bytes, expected at least 24", stranger, head.size()));
  }
  const std::uint64_t order = number_at(head, 0) & 0xFFFFFFFFU;
  if (order < 1 || order > std::uint64_t{max_order}) {
    throw file_error(input.name(), 0, fmt::format("{} found order {}, expected 1 to {}", stranger, order, max_order));
  }
  const std::uint64_t header = (order + 2) * 8;
  const std::uint64_t record = (order + 1) * 8;
  const auto total = input.total_bytes();
  if (total && head.size() >= header) {
    const std::uint64_t nnz = number_at(head, header - 8);
    const std::uint64_t rest = *total - header;
    if (rest / record != nnz || rest % record != 0) {
      throw file_error(input.name(), 0,
                       fmt::format("{} found {} bytes, expected {} and {} for each of {} nonzeros of order {}",
                                   stranger, *total, header, record, nnz, order));
    }
  }
  (void)take<std::uint64_t>(input);
  return read_columns(input, order, unsigned_scalar(8), real_scalar(8), options, context, report);
}

void write(const CooTensor& x, OutputFile& output, const WriteOptions& /*options*/, const Context& context) {
  const Scalar index = unsigned_scalar(8);
  std::string header;
  append_unsigned(header, index, static_cast<std::uint64_t>(x.order()));
  output.write(header);
  write_columns(x, index, real_scalar(8), output, context);
}

}  // namespace

const Dialect alto_binary_dialect = {.name = "alto-binary",
                                     .summary = "ALTO's binary coordinates",
                                     .extensions = {".alto"},
                                     .is_text = false,
                                     .holds_labels = false,
                                     .holds_dims = true,
                                     .detect = detect,
                                     .read = read,
                                     .write = write};

}  // namespace polyad::io
