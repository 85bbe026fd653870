// SPDX-License-Identifier: MIT
#include "generate/shape.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <string_view>
#include <vector>

#include "generate/cells.hpp"
#include "polyad/error.hpp"

namespace polyad::synthetic {

namespace {

/// Makes a list of none, one or `order` numbers one of `order` numbers that are at least `least`.
void complete(std::vector<double>& numbers, std::size_t order, double least, std::string_view name) {
  if (numbers.empty()) numbers.assign(1, least);
  if (numbers.size() == 1) numbers.resize(order, numbers[0]);
  if (numbers.size() != order)
    throw usage_error(
        fmt::format("{} values of {} for {} modes; expected one for all or one each", numbers.size(), name, order));
  for (const double v : numbers)
    if (!std::isfinite(v) || v < least)
      throw usage_error(fmt::format("{} is {}; expected a number of at least {}", name, v, least));
}

}  // namespace

GenerateOptions completed(GenerateOptions options) {
  const std::size_t order = options.dims.size();
  if (order < 1 || order > max_order)
    throw usage_error(fmt::format("{} dims; a tensor has 1 to {} modes", order, max_order));
  for (std::size_t m = 0; m < order; ++m)
    if (options.dims[m] < 1 || options.dims[m] > std::uint64_t{1} << 62U)
      throw usage_error(fmt::format("mode {} has length {}; expected 1 to 2^62", m + 1, options.dims[m]));
  complete(options.skew, order, 0, "skew");
  complete(options.widths, order, 1, "widths");
  if (!std::isfinite(options.burst) || options.burst < 1)
    throw usage_error(fmt::format("burst is {}; expected a number of at least 1", options.burst));
  if (const std::uint64_t cells = cell_count(options.dims); options.nnz > cells)
    throw usage_error(fmt::format("dims {} hold at most {} nonzeros, fewer than the {} asked for",
                                  fmt::join(options.dims, "x"), cells, options.nnz));
  return options;
}

}  // namespace polyad::synthetic
