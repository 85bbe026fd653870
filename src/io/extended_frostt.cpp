// SPDX-License-Identifier: MIT
// MLIR's extended FROSTT: "order nnz", a line of dims, then FROSTT lines.
#include <fmt/format.h>

#include "io/dialect.hpp"
#include "io/text_writer.hpp"
#include "polyad/error.hpp"

namespace polyad::io {

namespace {

bool detect(std::string_view head, std::string_view) {
  if (head.starts_with("# extended FROSTT format")) return true;
  const HeadLines lines(head, true);
  if (lines.size() < 2 || lines[0].tokens.size() != 2) return false;
  const auto order = as_integer(lines[0].tokens[0]);
  if (!order || !as_integer(lines[0].tokens[1])) return false;
  return lines.size() > 2 && lines[1].tokens.size() == *order && lines[2].tokens.size() == *order + 1;
}

TextHeader header(InputStream& input, const ReadOptions&, ReadReport&) {
  const HeadLines lines = head_lines(input);
  if (lines.size() < 2)
    throw file_error(input.name(), 0, "ends in its header, expected 'order nnz' and a line of dims");
  const auto order = as_integer(lines[0].tokens[0]);
  const auto nnz = lines[0].tokens.size() == 2 ? as_integer(lines[0].tokens[1]) : std::nullopt;
  if (!order || !nnz || *order < 1 || *order > max_order)
    throw file_error(input.name(), lines[0].number,
                     "expected two numbers: an order of 1 to 32 and the number of nonzeros");
  if (lines[1].tokens.size() != *order)
    throw file_error(input.name(), lines[1].number,
                     fmt::format("found {} dims, but the line before says order {}", lines[1].tokens.size(), *order));
  TextHeader h;
  h.layout.order = static_cast<int>(*order);
  h.layout.nnz = nnz;
  h.layout.dims = as_dims(input, lines[1]);
  h.end = lines[1].end;
  h.first_line = lines[1].number + 1;
  return h;
}

void write(const CooTensor& x, OutputFile& output, const WriteOptions& options, const Context& context) {
  output.write(fmt::format("# extended FROSTT format\n{} {}\n{}\n", x.order(), x.nnz(), fmt::join(x.dims, " ")));
  write_lines(x, output, options.index_base.value_or(1), context);
}

}  // namespace

const Dialect extended_frostt_dialect = {
    .name = "extended-frostt",
    .summary = "text, order, nnz and dims before the lines; MLIR",
    .extensions = {".tns"},
    .is_text = true,
    .holds_dims = true,
    .detect = detect,
    .read = read_lines<header>,
    .write = write,
    .header = header,
};

}  // namespace polyad::io
