// SPDX-License-Identifier: MIT
/// \file Sides of blocks and superblocks, and how many of them a tensor has.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/radix_sort.hpp"
#include "polyad/context.hpp"
#include "polyad/coo_tensor.hpp"
#include "polyad/tensor.hpp"

namespace polyad::hicoo {

/// log2 of the sides. Superblocks are at least as large as blocks.
struct Sides {
  int block_bits = 0;
  int superblock_bits = 0;

  /// Ranges of rows that superblocks cut a mode into.
  [[nodiscard]] std::uint64_t ranges(std::uint64_t dim) const {
    return dim == 0 ? 0 : ((dim - 1) >> static_cast<unsigned>(superblock_bits)) + 1;
  }
};

/// The sides to use: those of the options, else by the paper's section V-C. B = 128, smaller while the N * B * R values
/// that a block touches exceed the cache; L the smallest that leaves at most 100 P ranges of rows in every mode, P
/// being the threads (16 when the context is deterministic). Throws when the options are out of range.
[[nodiscard]] Sides sides_for(const CooTensor& x, const FormatOptions& options, const Context& context);

/// Sizes of a tensor in HiCOO.
struct BlockCounts {
  std::uint64_t blocks = 0;
  std::uint64_t superblocks = 0;
  /// Sum of log2(nonzeros of a block) * 2^40: whole numbers, so that the order in which threads add does not matter.
  radix::uint128 log_sum = 0;
};

/// Counts by sorting the coordinates of blocks.
[[nodiscard]] BlockCounts count_blocks(const CooTensor& x, const Sides& sides, const Context& context);

/// No index of a mode is above these: what the keys of nonzeros are laid out for. From the dims, or from the indices
/// themselves when that may save a word.
[[nodiscard]] std::vector<std::uint64_t> largest_for_keys(const CooTensor& x, const Context& context);

}  // namespace polyad::hicoo
