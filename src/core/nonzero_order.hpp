// SPDX-License-Identifier: MIT
/// \file In which order the nonzeros of a tensor are, seen in one pass.
#pragma once

#include <cstdint>
#include <span>

#include "polyad/context.hpp"
#include "polyad/coo_tensor.hpp"

namespace polyad {

enum class NonzeroOrder : std::uint8_t {
  none,    ///< a nonzero comes before one with smaller indices
  sorted,  ///< ascending, some agree in the modes looked at
  strict,  ///< ascending, no two agree
};

/// The order of the nonzeros by the given modes, most significant first. Stops where they are not ascending: unsorted
/// data cost next to nothing.
[[nodiscard]] NonzeroOrder order_of(const CooTensor& x, std::span<const int> modes, const Context& context);

}  // namespace polyad
