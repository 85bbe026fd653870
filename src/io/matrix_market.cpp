// SPDX-License-Identifier: MIT
// MatrixMarket coordinate files: tensors of order 2. real, integer and pattern; general, symmetric and skew-symmetric.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "io/dialect.hpp"
#include "io/shown.hpp"
#include "io/text_writer.hpp"
#include "polyad/error.hpp"

namespace polyad::io {

namespace {

constexpr std::string_view banner = "%%MatrixMarket";

bool detect(std::string_view head, std::string_view extension) {
  return head.starts_with(banner) || extension == ".mtx";
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

TextHeader header(InputStream& input, const ReadOptions&, ReadReport&) {
  const std::string_view head = head_of(input).text;
  const std::string first = lower(head.substr(0, std::min(head.find('\n'), std::size_t{200})));
  // The banner is itself a comment line for the line reader; its words come from here.
  const HeadLines words(first, true, '\0');
  if (words.size() == 0 || words[0].tokens[0] != lower(banner) || words[0].tokens.size() < 5)
    throw file_error(input.name(), 1, "expected '%%MatrixMarket matrix coordinate real general' or the like");
  const auto& tokens = words[0].tokens;
  if (tokens[1] != "matrix" || tokens[2] != "coordinate")
    throw file_error(input.name(), 1,
                     fmt::format("found '{} {}', expected 'matrix coordinate'", shown(tokens[1]), shown(tokens[2])));
  TextHeader h;
  if (tokens[3] == "pattern") {
    h.layout.has_values = false;
  } else if (tokens[3] != "real" && tokens[3] != "integer" && tokens[3] != "double") {
    throw file_error(input.name(), 1,
                     fmt::format("found values of type '{}', expected real, integer or pattern", shown(tokens[3])));
  }
  if (tokens[4] == "symmetric") {
    h.layout.symmetry = Symmetry::symmetric;
  } else if (tokens[4] == "skew-symmetric") {
    h.layout.symmetry = Symmetry::skew;
  } else if (tokens[4] != "general") {
    throw file_error(
        input.name(), 1,
        fmt::format("found a matrix that is '{}', expected general, symmetric or skew-symmetric", shown(tokens[4])));
  }
  const HeadLines lines = head_lines(input, '%');
  if (lines.size() == 0)
    throw file_error(input.name(), 0, "ends in its header, expected a line 'rows columns nonzeros'");
  const HeadLines::Line& sizes = lines[0];
  const auto rows = as_integer(sizes.tokens[0]);
  const auto columns = sizes.tokens.size() == 3 ? as_integer(sizes.tokens[1]) : std::nullopt;
  const auto nnz = sizes.tokens.size() == 3 ? as_integer(sizes.tokens[2]) : std::nullopt;
  if (!rows || !columns || !nnz || *rows == 0 || *columns == 0)
    throw file_error(input.name(), sizes.number, "expected three numbers: rows, columns, nonzeros");
  h.layout.order = 2;
  h.layout.comment = '%';
  h.layout.base = 1;
  h.layout.dims = {*rows, *columns};
  h.layout.nnz = nnz;
  h.end = sizes.end;
  h.first_line = sizes.number + 1;
  return h;
}

void write(const CooTensor& x, OutputFile& output, const WriteOptions&, const Context& context) {
  if (x.order() != 2)
    throw usage_error(
        fmt::format("{}: MatrixMarket holds tensors of order 2, this one has order {}", output.name(), x.order()));
  output.write(fmt::format("{} matrix coordinate real general\n{} {} {}\n", banner, x.dims[0], x.dims[1], x.nnz()));
  write_lines(x, output, 1, context);
}

}  // namespace

const Dialect matrix_market_dialect = {
    .name = "matrix-market",
    .summary = "text, sparse matrices (order 2); MatrixMarket",
    .extensions = {".mtx"},
    .is_text = true,
    .holds_dims = true,
    .detect = detect,
    .read = read_lines<header>,
    .write = write,
    .header = header,
};

}  // namespace polyad::io
