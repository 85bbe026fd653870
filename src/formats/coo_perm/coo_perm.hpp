// SPDX-License-Identifier: MIT
/// \file Coordinates and, per mode, the permutation that sorts them by it (Phipps and Kolda, "Software for sparse
/// tensor decomposition on emerging computing architectures", section 6).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/format.hpp"
#include "polyad/coo_tensor.hpp"

namespace polyad {

/// COO with one permutation per mode: position k of the order by mode n is nonzero permutations[n][k]. Nonzeros of one
/// row keep their order. The indices of a nonzero lie side by side, as in GenTen: it is fetched from anywhere, so it
/// should be few cache lines.
struct CooPerm {
  TensorShape tensor_shape;
  IndexBuffer indices;                    // [nnz][order]
  ValueBuffer values;                     // [nnz]
  std::vector<IndexBuffer> permutations;  // [order][nnz], 32 bits while nnz < 2^32

  [[nodiscard]] static CooPerm build(const CooTensor& x, const FormatOptions& options, const Context& context);

  [[nodiscard]] const TensorShape& shape() const { return tensor_shape; }
  [[nodiscard]] std::uint64_t bytes() const;

  template <class Index, class Value>
  void decode(std::uint64_t first, std::size_t, NonzeroBlock<Index, Value>& block) const {
    const std::size_t order = tensor_shape.dims.size();
    for (std::size_t m = 0; m < order; ++m) block.indices[m] = typed<Index>(indices) + first * order + m;
    block.index_stride = order;
    block.values = typed<Value>(values) + first;
  }
};

/// The nonzeros of a CooPerm in the order of one mode: what the loop over nonzeros decodes from.
template <class Index, class Value, class Position>
struct PermutedOrder {
  /// Nonzeros ahead that are requested: they lie anywhere in memory, but for the mode that the tensor is sorted by.
  static constexpr std::uint64_t distance = 32;

  const Position* positions;  // [nnz]
  const Index* indices;       // [nnz][order]
  const Value* values;        // [nnz]
  std::size_t order;
  std::uint64_t nnz;

  PermutedOrder(const CooPerm& c, int mode)
      : positions(typed<Position>(c.permutations[static_cast<std::size_t>(mode)])),
        indices(typed<Index>(c.indices)),
        values(typed<Value>(c.values)),
        order(c.tensor_shape.dims.size()),
        nnz(c.tensor_shape.nnz) {}

  void decode(std::uint64_t first, std::size_t count, NonzeroBlock<Index, Value>& block) const {
    std::array<Index*, max_order> to = {};
    for (std::size_t m = 0; m < order; ++m) to[m] = block.index_room(static_cast<int>(m));
    Value* to_values = block.value_room();
    for (std::size_t k = 0; k < count; ++k) {
      if (first + k + distance < nnz) {
        const Position ahead = positions[first + k + distance];
        __builtin_prefetch(indices + ahead * order);
        __builtin_prefetch(values + ahead);
      }
      const Position at = positions[first + k];
      for (std::size_t m = 0; m < order; ++m) to[m][k] = indices[at * order + m];
      to_values[k] = values[at];
    }
  }
};

}  // namespace polyad
