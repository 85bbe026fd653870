// SPDX-License-Identifier: MIT
// GenTen and SparTen: the sptensor header that may name its base, 0 when it does not.
#include <fmt/format.h>

#include "io/sptensor_text.hpp"
#include "io/text_writer.hpp"

namespace polyad::io {

namespace {

bool detect(std::string_view head, std::string_view) {
  bool with_base = false;
  return begins_sptensor(head, with_base) && with_base;
}

TextHeader header(InputStream& input, const ReadOptions&, ReadReport&) { return sptensor_header(input, 0); }

void write(const CooTensor& x, OutputFile& output, const WriteOptions& options, const Context& context) {
  const int base = options.index_base.value_or(0);
  output.write(fmt::format("sptensor indices-start-at-{}\n{}\n{}\n{}\n", base == 0 ? "zero" : "one", x.order(),
                           fmt::join(x.dims, " "), x.nnz()));
  write_lines(x, output, base, context);
}

}  // namespace

const Dialect genten_text_dialect = {
    .name = "genten-text",
    .summary = "text with an sptensor header that names its index base; GenTen, SparTen",
    .extensions = {".tns"},
    .is_text = true,
    .holds_dims = true,
    .detect = detect,
    .read = read_lines<header>,
    .write = write,
    .header = header,
};

}  // namespace polyad::io
