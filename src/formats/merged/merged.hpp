// SPDX-License-Identifier: MIT
/// \file Copies of a tensor whose short modes are merged. README.md beside it has the layout.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "core/format.hpp"
#include "formats/merged/mode_groups.hpp"
#include "formats/tiles/tiles.hpp"

namespace polyad {

/// The merged tensor, once for each of its modes: in tiles where the caches do not hold what is read.
struct Merged {
  TensorShape tensor_shape;
  ModeGroups groups;
  std::vector<Tiles> copies;                   ///< [group] of the merged tensor
  std::vector<Buffer<std::uint8_t>> occupied;  ///< [group] of merged ones, per index 1 where there is a nonzero

  [[nodiscard]] static Merged build(const CooTensor& x, const FormatOptions& options, const Context& context);

  [[nodiscard]] const TensorShape& shape() const { return tensor_shape; }
  [[nodiscard]] std::uint64_t bytes() const;

  template <class Index, class Value>
  void decode(std::uint64_t first, std::size_t count, NonzeroBlock<Index, Value>& block) const;
};

template <class Index, class Value>
void Merged::decode(std::uint64_t first, std::size_t count, NonzeroBlock<Index, Value>& block) const {
  copies[0].decode(first, count, block);
  // From the last group on: its modes have at least its number, so nothing is written where groups before it are.
  for (std::size_t g = groups.modes.size(); g-- > 0;) {
    const std::vector<int>& modes = groups.modes[g];
    const Index* merged = block.indices[g];
    if (modes.size() == 1) {
      if (static_cast<std::size_t>(modes[0]) != g) std::copy_n(merged, count, block.index_room(modes[0]));
      continue;
    }
    std::array<Index*, max_order> rooms = {};
    for (std::size_t k = 0; k < modes.size(); ++k) rooms[k] = block.index_room(modes[k]);
    for (std::size_t z = 0; z < count; ++z) {
      Index rest = merged[z];
      for (std::size_t k = modes.size(); k-- > 1;) {
        const auto length = static_cast<Index>(tensor_shape.dims[static_cast<std::size_t>(modes[k])]);
        rooms[k][z] = rest % length;
        rest /= length;
      }
      rooms[0][z] = rest;
    }
  }
}

}  // namespace polyad
