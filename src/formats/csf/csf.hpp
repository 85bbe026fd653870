// SPDX-License-Identifier: MIT
/// \file Compressed sparse fibres: one tree, two, or one per mode.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/format.hpp"
#include "formats/csf/tree.hpp"

namespace polyad {

/// CSF (Smith and Karypis), with as many trees as the name says.
struct Csf {
  /// Which trees: csf-one, csf-two, csf-all.
  enum class Trees : std::uint8_t { one, two, all };
  /// Where a mode sits: which tree, which level.
  struct Place {
    const FibreTree* tree = nullptr;
    int level = 0;
  };

  std::vector<FibreTree> trees;
  TensorShape tensor_shape;

  [[nodiscard]] static Csf build(const CooTensor& x, Trees which, const Context& context);
  /// The orders of modes of the trees.
  [[nodiscard]] static std::vector<std::vector<int>> mode_orders(std::span<const std::uint64_t> dims, Trees which);

  [[nodiscard]] const TensorShape& shape() const { return tensor_shape; }
  [[nodiscard]] std::uint64_t bytes() const;
  /// Index words of all trees, as the paper counts them.
  [[nodiscard]] std::uint64_t words() const;
  /// The tree with the mode at a level from `first` to `last`; the one with the fewest nodes if there are several.
  [[nodiscard]] std::optional<Place> find(int mode, int first, int last) const;

  template <class Index, class Value>
  void decode(std::uint64_t first, std::size_t count, NonzeroBlock<Index, Value>& block) const {
    trees[0].decode(first, count, block);
  }
};

/// What a relative of csf-all takes (B-CSF, HB-CSF): so many times its sweep, and so many nanoseconds a nonzero and
/// mode to build.
[[nodiscard]] SweepEstimate estimate_like_csf_all(const EstimateRequest& request, double sweeps, double build_ns,
                                                  std::string why);

}  // namespace polyad
