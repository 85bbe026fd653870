// SPDX-License-Identifier: MIT
/// \file Coordinates as parts for the texts in src/device/mttkrp_coo.h.
#pragma once

#include "kernels/mttkrp/gpu/cutters.hpp"
#include "polyad/coo_tensor.hpp"

namespace polyad::gpu {

/// Runs of nonzeros of a tensor in coordinates.
[[nodiscard]] std::vector<Part> coo_parts(const CooTensor& x, const CutRequest& request);

}  // namespace polyad::gpu
