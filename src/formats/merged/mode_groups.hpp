// SPDX-License-Identifier: MIT
/// \file Short modes that follow each other, taken for one: a tensor of lower order with the same nonzeros.
#pragma once

#include <cstdint>
#include <vector>

#include "polyad/context.hpp"
#include "polyad/coo_tensor.hpp"

namespace polyad {

/// The modes of a tensor in groups of neighbours. A group is one mode of the merged tensor, whose index is made of the
/// indices of its modes, the first of them the highest digit.
struct ModeGroups {
  /// Rows of a merged group: 16 bits tell them apart.
  static constexpr std::uint64_t most_rows = std::uint64_t{1} << 16U;
  /// Bytes of a table with a row of the model for each index of a merged group: beyond that it would have to come from
  /// where the single factors do not have to (uber, whose modes 2 and 3 would take 3.5 MB in f64).
  static constexpr std::uint64_t most_table_bytes = std::uint64_t{3} << 20U;

  std::vector<std::vector<int>> modes;  ///< [group] every mode once, ascending
  std::vector<std::uint64_t> dims;      ///< [group] of the merged tensor

  /// Merges the neighbours with the fewest combinations of indices, again and again, while these are no more than the
  /// limits above and than half of the nonzeros; two groups are left at least. Depends on nothing but the arguments.
  [[nodiscard]] static ModeGroups choose(const CooTensor& x, std::uint64_t rank);

  [[nodiscard]] int count() const { return static_cast<int>(modes.size()); }
  [[nodiscard]] int of_mode(int mode) const;
  /// Where a mode is in its group.
  [[nodiscard]] int position(int mode) const { return mode - modes[static_cast<std::size_t>(of_mode(mode))][0]; }
  [[nodiscard]] bool is_merged(int group) const { return modes[static_cast<std::size_t>(group)].size() > 1; }
  /// Whether any is.
  [[nodiscard]] bool merges() const;
};

/// The tensor with a mode for each group. Arrays of single modes and values are those of x, which has to stay.
[[nodiscard]] CooTensor merge_modes(const CooTensor& x, const ModeGroups& groups, const Context& context);

}  // namespace polyad
