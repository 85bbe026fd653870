// SPDX-License-Identifier: MIT
// FROSTT text: "i j k v" from the first line on, usually 1-based, no header. Also with commas in place of blanks.
#include <fmt/format.h>

#include <algorithm>

#include "io/dialect.hpp"
#include "io/shown.hpp"
#include "io/text_writer.hpp"
#include "polyad/error.hpp"

namespace polyad::io {

namespace {

bool detect(std::string_view, std::string_view) { return true; }  // the last to be asked

TextHeader header(InputStream& input, const ReadOptions& options, ReadReport& report) {
  const HeadLines lines = head_lines(input);
  TextHeader h;
  if (lines.size() == 0) {
    if (lines.cut_off())
      throw file_error(input.name(), lines.next_number(),
                       fmt::format("found a line of more than {} bytes, expected indices and a value", head_bytes));
    throw file_error(input.name(), 0,
                     input.peek(1).empty() ? "is empty, expected a tensor" : "holds only comments, expected a tensor");
  }
  const HeadLines::Line& first = lines[0];
  if (first.text.find('\0') != std::string_view::npos)
    throw file_error(input.name(), first.number, "found a zero byte: is it a binary file? (see --dialect)");
  for (const std::string_view word : {"tensor", "ktensor", "matrix"})
    if (first.tokens[0] == word)
      throw file_error(input.name(), first.number,
                       fmt::format("found a {} ('{}'), expected a sparse tensor",
                                   word == "ktensor" ? "CP model" : "dense array", word));
  auto columns = static_cast<int>(first.tokens.size());
  if (first.text.find(',') != std::string_view::npos) {
    h.layout.separator = ',';
    columns = static_cast<int>(std::ranges::count(first.text, ',')) + 1;
    report.notes.push_back("the numbers are separated by commas");
  }
  h.layout.order = columns - 1;
  if (h.layout.order < 1)
    throw file_error(input.name(), first.number,
                     fmt::format("found '{}', expected at least an index and a value", shown(first.tokens[0])));
  if (h.layout.order > max_order)
    throw file_error(input.name(), first.number,
                     fmt::format("found {} modes, expected at most {}", h.layout.order, max_order));
  h.layout.base = options.index_base;
  return h;
}

void write(const CooTensor& x, OutputFile& output, const WriteOptions& options, const Context& context) {
  write_lines(x, output, options.index_base.value_or(1), context);
}

}  // namespace

const Dialect frostt_dialect = {
    .name = "frostt",
    .summary = "text, 'i j k v' per line; FROSTT, SPLATT, ALTO, TACO",
    .extensions = {".tns", ".txt"},
    .is_text = true,
    .detect = detect,
    .read = read_lines<header>,
    .write = write,
    .header = header,
};

}  // namespace polyad::io
