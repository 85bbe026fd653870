// SPDX-License-Identifier: MIT
// ParTI and its relatives: a line with the order, a line with the dims, then FROSTT lines.
#include <fmt/format.h>

#include "io/dialect.hpp"
#include "io/shown.hpp"
#include "io/text_writer.hpp"
#include "polyad/error.hpp"

namespace polyad::io {

namespace {

// No FROSTT line is a single number, so a first line of one integer can only be an order.
bool detect(std::string_view head, std::string_view) {
  const HeadLines lines(head, true);
  return lines.size() > 1 && lines[0].tokens.size() == 1 && as_integer(lines[0].tokens[0]).has_value();
}

TextHeader header(InputStream& input, const ReadOptions&, ReadReport&) {
  const HeadLines lines = head_lines(input);
  if (lines.size() < 2) throw file_error(input.name(), 0, "ends in its header, expected an order and a line of dims");
  const auto order = lines[0].tokens.size() == 1 ? as_integer(lines[0].tokens[0]) : std::nullopt;
  if (!order || *order < 1 || *order > max_order)
    throw file_error(input.name(), lines[0].number,
                     fmt::format("found '{}' as the order, expected 1 to {}", shown(lines[0].tokens[0]), max_order));
  if (lines[1].tokens.size() != *order)
    throw file_error(input.name(), lines[1].number,
                     fmt::format("found {} dims, but the line before says order {}", lines[1].tokens.size(), *order));
  TextHeader h;
  h.layout.order = static_cast<int>(*order);
  h.layout.dims = as_dims(input, lines[1]);
  h.end = lines[1].end;
  h.first_line = lines[1].number + 1;
  return h;
}

void write(const CooTensor& x, OutputFile& output, const WriteOptions& options, const Context& context) {
  output.write(fmt::format("{}\n{}\n", x.order(), fmt::join(x.dims, " ")));
  write_lines(x, output, options.index_base.value_or(1), context);
}

}  // namespace

const Dialect order_dims_dialect = {
    .name = "order-dims",
    .summary = "text, order and dims before the lines; ParTI, HiParTI, PASTA, B-CSF",
    .extensions = {".tns"},
    .is_text = true,
    .holds_dims = true,
    .detect = detect,
    .read = read_lines<header>,
    .write = write,
    .header = header,
};

}  // namespace polyad::io
