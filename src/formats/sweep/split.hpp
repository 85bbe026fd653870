// SPDX-License-Identifier: MIT
/// \file Which modes of a tensor are leaves and which make fibres.
#pragma once

#include <cstdint>
#include <vector>

#include "core/estimate.hpp"

namespace polyad {

/// The modes in two groups. Both follow each other in the cycle 1, 2, ..., N, 1, ...: so a sweep over the modes in turn
/// changes all factors of one group before it comes to the other.
struct ModeSplit {
  std::vector<int>
      leaves;  ///< one mode, or several short ones merged into one index, the first being its highest digit
  std::vector<int>
      fibres;  ///< the others; first the root: the longest of those that one gather serves with the mode after
  bool leaf_copy = false;  ///< the leaf, one mode, has a sorted copy of its own and needs no scatter
  double fibre_count = 0;  ///< distinct tuples of the fibres' modes, estimated
  double sweep_ns = 0;     ///< estimated time of MTTKRPs in all modes, in nanoseconds of one thread
};

/// Indices of merged leaf modes stay below this, so that a leaf takes two bytes.
inline constexpr std::uint64_t most_merged_leaves = std::uint64_t{1} << 16U;

/// Rows of a mode that is served together with the root, at the most: every thread adds to a table of its own, at any
/// row. With more, that costs as much as a gather for that mode alone (deli, 2.5 million: 1.1 of the time).
inline constexpr std::uint64_t most_next_rows = std::uint64_t{1} << 18U;

/// Rows of a table that is indexed by leaves; 0 for several modes with more than most_merged_leaves of them.
[[nodiscard]] std::uint64_t leaf_rows(const CooTensor& x, const std::vector<int>& modes);

/// Whether one gather serves the root mode and the one after it, so that no products have to be kept for that one:
/// where there is no third mode that would have use for them, or where there are too many.
[[nodiscard]] bool gathers_with_next(const CooTensor& x, const ModeSplit& split);

/// Whether a gather for the root is worth adding up the next mode's output on the side, private to every thread: as for
/// other private outputs (SharedOutput::affordable). \param bytes of that output
[[nodiscard]] inline bool worth_adding_for_next(double bytes, int threads, double fibres) {
  return bytes * (threads - 1) / 100 <= fibres;
}

/// About what share of the fibres have roots with more nonzeros than a chunk: their products go through the memory.
[[nodiscard]] double cut_share(const TensorSample& sample, const ModeSplit& split);

/// Nanoseconds of one thread for MTTKRPs in all modes in turn with this split.
[[nodiscard]] double sweep_ns(const EstimateRequest& q, const ModeSplit& split);

/// The split whose sweep costs least, by what rows of tables of each size cost (core/row_cost.hpp) on the reference
/// machine: what is built does not depend on measurements.
/// \param leaf_copy one leaf mode, with a copy of its own
[[nodiscard]] ModeSplit choose_split(const TensorSample& sample, std::uint64_t rank, bool leaf_copy);

/// The split with these leaves; Error (usage) when they do not follow each other in the cycle or are too many. The
/// numbers of fibres and nanoseconds are left out.
[[nodiscard]] ModeSplit split_with_leaves(const CooTensor& x, const std::vector<int>& leaves);

/// Whether partial products are worth the memory traffic: with so many fibres per nonzero. Measured with rank 16: 0.18
/// (nell2) 0.93 of the time without, 0.07 (darpa, enron) 0.65, 0.54 (deli) about the same, 1 (rand) 1.3.
[[nodiscard]] inline bool worth_keeping(double fibres, double nnz) { return fibres < 0.5 * nnz; }

}  // namespace polyad
