// SPDX-License-Identifier: MIT
#include "io/sptensor_text.hpp"
#include "io/shown.hpp"

#include <fmt/format.h>

#include "polyad/error.hpp"

namespace polyad::io {

bool begins_sptensor(std::string_view head, bool& with_base) {
  const HeadLines lines(head, true);
  if (lines.size() == 0 || lines[0].tokens[0] != "sptensor") return false;
  with_base = lines[0].tokens.size() > 1;
  return true;
}

TextHeader sptensor_header(InputStream& input, std::optional<int> base) {
  const HeadLines lines = head_lines(input);
  if (lines.size() == 0 || lines[0].tokens[0] != "sptensor")
    throw file_error(input.name(), lines.size() == 0 ? 1 : lines[0].number, "expected the word sptensor");
  if (lines.size() < 4)
    throw file_error(input.name(), 0, "ends in its header, expected sptensor, order, dims and the number of nonzeros");
  TextHeader h;
  if (lines[0].tokens.size() > 1) {
    const std::string_view word = lines[0].tokens[1];
    if (word != "indices-start-at-zero" && word != "indices-start-at-one")
      throw file_error(input.name(), lines[0].number,
                       fmt::format("found '{}', expected indices-start-at-zero or indices-start-at-one", shown(word)));
    base = word == "indices-start-at-zero" ? 0 : 1;
  }
  h.layout.base = base;
  h.layout.base_is_ambiguous = !base.has_value();
  const auto order = lines[1].tokens.size() == 1 ? as_integer(lines[1].tokens[0]) : std::nullopt;
  if (!order || *order < 1 || *order > max_order)
    throw file_error(input.name(), lines[1].number,
                     fmt::format("found '{}' as the order, expected 1 to {}", shown(lines[1].tokens[0]), max_order));
  if (lines[2].tokens.size() != *order)
    throw file_error(input.name(), lines[2].number,
                     fmt::format("found {} dims, but the header says order {}", lines[2].tokens.size(), *order));
  const auto nnz = lines[3].tokens.size() == 1 ? as_integer(lines[3].tokens[0]) : std::nullopt;
  if (!nnz)
    throw file_error(input.name(), lines[3].number,
                     fmt::format("found '{}', expected the number of nonzeros", shown(lines[3].tokens[0])));
  h.layout.order = static_cast<int>(*order);
  h.layout.dims = as_dims(input, lines[2]);
  h.layout.nnz = nnz;
  h.end = lines[3].end;
  h.first_line = lines[3].number + 1;
  return h;
}

}  // namespace polyad::io
