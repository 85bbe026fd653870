// SPDX-License-Identifier: MIT
/// \file How many indices per mode each component of a planted model covers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace polyad::synthetic {

/// How many indices of each mode the components share out among them; the others stay empty. Random supports in long
/// modes have few indices in common, and then alternating least squares ends in local optima where one component covers
/// two: for 1000x1000x1000, 200000 nonzeros, rank 16 (supports of 2 % of a mode) 0 of 6 starts found the model. With
/// supports of a quarter of the active indices 12 to 16 of 16 starts did, over seven shapes. At least 2 * rank per mode
/// where dims allow, so that the model stays the only one of its rank.
[[nodiscard]] std::vector<std::uint64_t> active_lengths(std::span<const std::uint64_t> dims, std::uint64_t nnz,
                                                        std::uint64_t rank);

/// How many cells each of `rank` blocks at random places has to cover so that together they cover `nnz`.
[[nodiscard]] double block_cells(std::span<const std::uint64_t> dims, std::uint64_t nnz, std::uint64_t rank);

/// Sizes per mode whose product is about `cells`. In proportion to the dims where possible; at least 3 indices per mode
/// (2, 1 when `cells` does not allow more) or the whole mode.
[[nodiscard]] std::vector<std::uint64_t> support_sizes(std::span<const std::uint64_t> dims, double cells);

}  // namespace polyad::synthetic
