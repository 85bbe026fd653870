// SPDX-License-Identifier: MIT
/// \file How many indices per mode each component of a planted model covers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace polyad::synthetic {

/// How many cells each of `rank` blocks at random places has to cover so that together they cover `nnz`.
[[nodiscard]] double block_cells(std::span<const std::uint64_t> dims, std::uint64_t nnz, std::uint64_t rank);

/// Sizes per mode whose product is about `cells`. In proportion to the dims where possible; at least 3 indices per mode
/// (2, 1 when `cells` does not allow more) or the whole mode.
[[nodiscard]] std::vector<std::uint64_t> support_sizes(std::span<const std::uint64_t> dims, double cells);

}  // namespace polyad::synthetic
