// SPDX-License-Identifier: MIT
/// \file What a page shows of the columns of a factor, in one pass over the rows for all columns together.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "polyad/cp_model.hpp"

namespace polyad::report {

/// A column drawn as a line: places in the order of the mode, from 0, and the values there.
struct Line {
  std::vector<std::uint64_t> places;
  std::vector<double> values;
};

/// Per column its line. `sequence`: the rows in the order of the mode; empty: as they are. Longer columns than `points`
/// are cut into points / 2 buckets that give their smallest and their largest entry, so that no peak is lost; the ends
/// of the column are there too.
[[nodiscard]] std::vector<Line> lines(const Matrix& a, std::span<const std::uint64_t> sequence, std::uint64_t points);

}  // namespace polyad::report
