// SPDX-License-Identifier: MIT
/// \file CFB: only the fibres that hold something, each a bucket of (index, value) (Yang, Li and Li 2019, section 5.3).
#pragma once

#include <algorithm>
#include <cstdint>
#include <variant>
#include <vector>

#include "core/format.hpp"
#include "formats/fibre_rows.hpp"
#include "formats/offsets.hpp"

namespace polyad {

/// CFB for products along one mode.
struct Cfb {
  /// Ids of the non-empty fibres (Tb) as one number each, in 32 or 64 bits; no bits when it would not fit 64.
  using Ids = std::variant<std::monostate, Buffer<std::uint32_t>, Buffer<std::uint64_t>>;

  TensorShape tensor_shape;
  int mode = 0;
  Ids ids;                          // Tb [fibres], increasing
  std::vector<IndexBuffer> coords;  // in place of ids when those do not fit: [order - 1][fibres]
  Offsets begins;                   // [fibres + 1] running sum of the counts Tn
  IndexBuffer indices;              // [nnz] index in `mode`
  ValueBuffer values;               // [nnz]

  [[nodiscard]] static Cfb build(const CooTensor& x, const FormatOptions& options, const Context& context);

  [[nodiscard]] const TensorShape& shape() const { return tensor_shape; }
  [[nodiscard]] std::uint64_t bytes() const;
  [[nodiscard]] std::uint64_t fibres() const { return begins.groups(); }

  /// Writes the indices of fibres begin .. end in the other modes (ascending) to out[m][0 ..].
  template <class Index>
  void fibre_indices(std::uint64_t begin, std::uint64_t end, const std::array<Index*, max_order>& out) const {
    if (std::holds_alternative<std::monostate>(ids)) {
      for (std::size_t m = 0; m < coords.size(); ++m)
        std::copy(typed<Index>(coords[m]) + begin, typed<Index>(coords[m]) + end, out[m]);
      return;
    }
    RowIndices at(tensor_shape.dims, mode);
    const auto write = [&](const auto* id) {
      for (std::uint64_t f = begin; f < end; ++f) {
        at.go(id[f]);
        for (std::size_t m = 0; m < at.size(); ++m) out[m][f - begin] = static_cast<Index>(at[m]);
      }
    };
    if (const auto* narrow = std::get_if<Buffer<std::uint32_t>>(&ids)) {
      write(narrow->data());
    } else {
      write(std::get<Buffer<std::uint64_t>>(ids).data());
    }
  }

  template <class Index, class Value>
  void decode(std::uint64_t first, std::size_t count, NonzeroBlock<Index, Value>& block) const {
    block.values = typed<Value>(values) + first;
    block.indices[static_cast<std::size_t>(mode)] = typed<Index>(indices) + first;
    if (count == 0) return;
    const std::vector<int> others = modes_without(tensor_shape.order(), mode);
    std::array<Index*, max_order> out = {};
    for (std::size_t m = 0; m < others.size(); ++m) out[m] = block.index_room(others[m]);
    // The fibres' own indices first, into the front of the room, then spread from the back: a fibre never has more
    // nonzeros behind it than places.
    const std::uint64_t fibre = begins.group_of(first);
    const std::uint64_t end = begins.group_after(fibre, first + count - 1) + 1;
    fibre_indices(fibre, end, out);
    std::size_t at = count;
    for (std::uint64_t f = end; f-- > fibre;) {
      const std::size_t from = begins[f] > first ? static_cast<std::size_t>(begins[f] - first) : 0;
      for (std::size_t m = 0; m < others.size(); ++m) {
        const Index index = out[m][f - fibre];
        std::fill(out[m] + from, out[m] + at, index);
      }
      at = from;
    }
  }
};

}  // namespace polyad
