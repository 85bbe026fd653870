// SPDX-License-Identifier: MIT
/// \file Lengths of columns and components of a model, for numbers of any size that a double holds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "polyad/cp_model.hpp"

namespace polyad {

/// norm / scale is the 2-norm of a column. The scale is a power of two that brings the largest entry near 1, so that no
/// square overflows, and none that counts underflows.
struct ColumnNorm {
  double scale = 1;
  double norm = 0;  // of the column times scale; 0: the column is zero

  /// An entry of the column when that has length 1; entries of columns of zeros stay.
  [[nodiscard]] double unit(double entry) const { return entry * scale / (norm > 0 ? norm : 1); }
};

/// Per column of a matrix; the same for any number of threads.
[[nodiscard]] std::vector<ColumnNorm> column_norms(const Matrix& a, const Context& context = {});

/// mantissa * 2^exponent with 0.5 <= |mantissa| < 1, or 0: a product of many norms may leave the range of double and
/// come back.
struct WideNumber {
  double mantissa = 0;
  std::int64_t exponent = 0;
};

/// Per component its weight times the norms of its columns.
/// \param norms per mode column_norms()
[[nodiscard]] std::vector<WideNumber> signed_lengths(const CpModel& model,
                                                     const std::vector<std::vector<ColumnNorm>>& norms);

/// "4 x 5 x 6".
[[nodiscard]] std::string shape_of(const CpModel& model);

/// Error (usage) unless every factor has a column per weight.
void check_columns(const CpModel& model);

}  // namespace polyad
