// SPDX-License-Identifier: MIT
/// \file How well a tensor falls into HiCOO's blocks.
#pragma once

#include "polyad/context.hpp"
#include "polyad/coo_tensor.hpp"

namespace polyad {

/// The parameters by which the HiCOO paper (Li, Sun, Vuduc: HiCOO, SC18, section V-C) says whether the format suits a
/// tensor.
struct HicooFacts {
  int block_bits = 0;  ///< log2 of the side of a block, B
  double alpha_b = 0;  ///< blocks per nonzero; below about 0.45 (N = 3) HiCOO is smaller than COO
  double c_b = 0;      ///< geometric mean of the nonzeros per block, over B; below 0.01 CSF is the better choice
};

/// Counts the blocks of side 128. Needs two copies of the coordinates meanwhile.
[[nodiscard]] HicooFacts hicoo_facts(const CooTensor& x, const Context& context = {});

}  // namespace polyad
