// SPDX-License-Identifier: MIT
/// \file How many indices per mode each component of a planted model covers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace polyad::synthetic {

/// How many indices of each mode the components share out among them; the others stay empty. With few indices in
/// common, as random supports in long modes have, alternating least squares ends in local optima where one component
/// covers two (seen in 6 of 6 starts for 1000x1000x1000, nnz 200000, rank 16, supports of 2 % of a mode); with a third
/// of them in 0 of 6. At least 2 * rank per mode where dims allow, so that the model stays the only one of its rank.
[[nodiscard]] std::vector<std::uint64_t> active_lengths(std::span<const std::uint64_t> dims, std::uint64_t nnz,
                                                        std::uint64_t rank);

/// How many cells each of `rank` blocks at random places has to cover so that together they cover `nnz`.
[[nodiscard]] double block_cells(std::span<const std::uint64_t> dims, std::uint64_t nnz, std::uint64_t rank);

/// Sizes per mode whose product is about `cells`. In proportion to the dims where possible; at least 3 indices per mode
/// (2, 1 when `cells` does not allow more) or the whole mode.
[[nodiscard]] std::vector<std::uint64_t> support_sizes(std::span<const std::uint64_t> dims, double cells);

}  // namespace polyad::synthetic
