// SPDX-License-Identifier: MIT
/// \file HOCSR: CSR of the matrix whose rows are all combinations of the other modes (Yang, Li and Li 2019,
/// section 5.2).
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/format.hpp"
#include "formats/fibre_rows.hpp"
#include "formats/offsets.hpp"

namespace polyad {

/// HOCSR for products along one mode: row pointers over the dense product of the other modes, empty rows too.
struct Hocsr {
  /// More rows than this are refused: 2^28 pointers are 1 GiB.
  static constexpr std::uint64_t most_rows = std::uint64_t{1} << 28U;

  TensorShape tensor_shape;
  int mode = 0;
  Offsets rows;         // Tj [product of the other dims + 1], row-major over the other modes, ascending
  IndexBuffer indices;  // Tk [nnz] index in `mode`
  ValueBuffer values;   // Tv [nnz]

  [[nodiscard]] static Hocsr build(const CooTensor& x, const FormatOptions& options, const Context& context);

  [[nodiscard]] const TensorShape& shape() const { return tensor_shape; }
  [[nodiscard]] std::uint64_t bytes() const;

  template <class Index, class Value>
  void decode(std::uint64_t first, std::size_t count, NonzeroBlock<Index, Value>& block) const {
    block.values = typed<Value>(values) + first;
    block.indices[static_cast<std::size_t>(mode)] = typed<Index>(indices) + first;
    const std::vector<int> others = modes_without(tensor_shape.order(), mode);
    std::array<Index*, max_order> out = {};
    for (std::size_t m = 0; m < others.size(); ++m) out[m] = block.index_room(others[m]);
    RowIndices at(tensor_shape.dims, mode);
    std::uint64_t row = count > 0 ? rows.group_of(first) : 0;
    for (std::size_t k = 0; k < count;) {
      row = rows.group_after(row, first + k);
      const auto end = static_cast<std::size_t>(std::min<std::uint64_t>(rows[row + 1] - first, count));
      at.go(row);
      for (std::size_t m = 0; m < at.size(); ++m) std::fill(out[m] + k, out[m] + end, static_cast<Index>(at[m]));
      k = end;
    }
  }
};

}  // namespace polyad
