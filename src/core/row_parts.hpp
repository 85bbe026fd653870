// SPDX-License-Identifier: MIT
/// \file Into how many parts rows of an output are cut that are summed by themselves, and what that takes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "polyad/types.hpp"

namespace polyad {

/// Parts that kernels cut rows, or chunks of nonzeros, into.
inline constexpr std::uint64_t most_row_parts = 256;

/// Columns of sums over rows in memory: whole vectors of 64 bytes.
[[nodiscard]] constexpr std::uint64_t summed_columns(std::uint64_t rank, std::uint64_t value_bytes) {
  const std::uint64_t lanes = 64 / value_bytes;
  return (rank + lanes - 1) / lanes * lanes;
}

/// So many parts that their Gram matrices take at most 64 MB, unless one takes more.
[[nodiscard]] constexpr std::uint64_t most_summed_parts(std::uint64_t columns) {
  return std::clamp<std::uint64_t>((std::uint64_t{1} << 23U) / (columns * columns), 1, std::uint64_t{1} << 14U);
}

/// Bytes, at most, of what CP-ALS keeps per part: a Gram matrix, inner products, and 128 rows before and after.
/// \param longest mode
[[nodiscard]] inline double row_sums_bytes(double nnz, double longest, std::uint64_t rank, Precision precision) {
  const std::uint64_t columns = summed_columns(rank, bytes_of(precision));
  // Of a few nonzeros or rows each, and 16 for rows that chunks share.
  const double parts = std::min(
      {static_cast<double>(most_summed_parts(columns)), most_row_parts + 17.0, 18 + longest / 1024 + nnz / 16384});
  const auto c = static_cast<double>(columns);
  return parts * (8 * (c * c + c) + 2 * 128 * static_cast<double>(bytes_of(precision)) * c + 1200);
}

}  // namespace polyad
