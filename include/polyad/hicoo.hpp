// SPDX-License-Identifier: MIT
/// \file What says whether HiCOO suits a tensor, without building it.
#pragma once

#include <cstdint>

#include "polyad/context.hpp"
#include "polyad/coo_tensor.hpp"
#include "polyad/tensor.hpp"

namespace polyad {

/// The parameters by which Li, Sun and Vuduc (HiCOO, SC 2018, sections IV-C and V-C) judge a tensor.
struct HicooFacts {
  int block_bits = 0;        ///< log2 of the side B of a block
  std::uint64_t blocks = 0;  ///< non-empty blocks
  double alpha_b = 0;        ///< blocks / nnz; HiCOO is smaller than COO below alpha_limit
  double mean_nonzeros = 0;  ///< geometric mean of the nonzeros of a block
  double c_b = 0;            ///< mean_nonzeros / B; below 0.01 CSF is the better choice
  double alpha_limit = 0;    ///< (32 - 8) / (32 + 64 / N): 0.45 for order 3
};

/// Counts the blocks of a tensor; options.block_bits and options.rank are read. Peak memory next to the tensor: 8 or 16
/// bytes per nonzero, twice that when one group of blocks does not fit the cache.
[[nodiscard]] HicooFacts hicoo_facts(const CooTensor& x, const Context& context = {},
                                     const FormatOptions& options = {});

}  // namespace polyad
