// SPDX-License-Identifier: MIT
/// \file Into how many parts rows of an output are cut that are summed by themselves, and what that takes.
#pragma once

#include <algorithm>
#include <cstdint>

namespace polyad {

/// Parts of the rows of an output, at most, whatever the number of threads.
inline constexpr std::uint64_t most_row_parts = 256;

/// Bytes, at most, of what CP-ALS keeps per part: a Gram matrix, inner products, and 128 rows before and after.
/// \param longest mode
[[nodiscard]] inline double row_sums_bytes(double nnz, double longest, std::uint64_t rank) {
  const double parts = std::min(static_cast<double>(most_row_parts), 1 + longest / 1024 + nnz / 2048);
  const auto columns = static_cast<double>((rank + 15) / 16 * 16);
  return parts * (8 * (columns * columns + columns) + 2 * 128 * 8 * columns + 1200);
}

}  // namespace polyad
