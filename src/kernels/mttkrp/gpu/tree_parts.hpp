// SPDX-License-Identifier: MIT
/// \file Trees of fibres as parts for src/device/mttkrp_tree.h.
#pragma once

#include "formats/b_csf/b_csf.hpp"
#include "formats/csf/tree.hpp"
#include "kernels/mttkrp/gpu/cutters.hpp"

namespace polyad::gpu {

/// Bins of B-CSF that a work-group takes: bins differ by the length of a fibre segment, which two of them even out.
inline constexpr std::uint64_t bins_per_group = 2;

/// A tree with a group per slice; the output mode is the root. Parts are made of whole slices, but for slices that are
/// larger than a part.
[[nodiscard]] PartGroup slice_parts(const FibreTree& tree, const CutRequest& request);
/// A tree with equal runs of leaves for the groups, and the output mode at a level below the root.
[[nodiscard]] PartGroup run_parts(const FibreTree& tree, int level, const CutRequest& request);
/// A tree whose groups take bins; the output mode is the root.
[[nodiscard]] PartGroup bin_parts(const FibreTree& tree, const Bins& bins, const CutRequest& request);

}  // namespace polyad::gpu
