// SPDX-License-Identifier: MIT
// MATLAB Tensor Toolbox and pyttb: the sptensor header, then lines, 1-based. GenTen writes the same words 0-based: the
// data decide, and what was assumed is said when they do not.
#include <fmt/format.h>

#include "io/sptensor_text.hpp"
#include "io/text_writer.hpp"

namespace polyad::io {

namespace {

bool detect(std::string_view head, std::string_view) {
  bool with_base = false;
  return begins_sptensor(head, with_base) && !with_base;
}

TextHeader header(InputStream& input, const ReadOptions& options, ReadReport&) {
  return sptensor_header(input, options.dialect.empty() ? std::nullopt : std::optional<int>(1));
}

void write(const CooTensor& x, OutputFile& output, const WriteOptions& options, const Context& context) {
  output.write(fmt::format("sptensor\n{}\n{}\n{}\n", x.order(), fmt::join(x.dims, " "), x.nnz()));
  write_lines(x, output, options.index_base.value_or(1), context);
}

}  // namespace

const Dialect tensor_toolbox_dialect = {
    .name = "tensor-toolbox",
    .summary = "text with an sptensor header; MATLAB Tensor Toolbox, pyttb",
    .extensions = {".tns"},
    .is_text = true,
    .holds_dims = true,
    .detect = detect,
    .read = read_lines<header>,
    .write = write,
    .header = header,
};

}  // namespace polyad::io
