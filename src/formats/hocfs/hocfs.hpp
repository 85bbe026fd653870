// SPDX-License-Identifier: MIT
/// \file HOCFS, the high-order compressed format based on slices, with slices in CSR or in ELL (Yang, Li and Li 2019,
/// section 5.4).
#pragma once

#include <cstdint>
#include <vector>

#include "core/format.hpp"
#include "formats/hocfs/slices.hpp"

namespace polyad {

/// HOCFS whose slices are CSR matrices of their non-empty rows.
struct HocfsCsr {
  TensorShape tensor_shape;
  SortedFibres parts;

  [[nodiscard]] static HocfsCsr build(const CooTensor& x, const FormatOptions& options, const Context& context);

  [[nodiscard]] const TensorShape& shape() const { return tensor_shape; }
  [[nodiscard]] std::uint64_t bytes() const;
  /// The mode of the products it is for.
  [[nodiscard]] int mode() const { return parts.tree.modes.back(); }

  template <class Index, class Value>
  void decode(std::uint64_t first, std::size_t count, NonzeroBlock<Index, Value>& block) const {
    block.values = typed<Value>(parts.values) + first;
    block.indices[static_cast<std::size_t>(mode())] = typed<Index>(parts.indices) + first;
    if (count == 0) return;
    const std::span<const int> others = std::span<const int>(parts.tree.modes).first(parts.tree.modes.size() - 1);
    std::array<Index*, max_order> room = {};
    for (const int m : others) room[static_cast<std::size_t>(m)] = block.index_room(m);
    const std::uint64_t fibre = parts.begins.group_of(first);
    const std::uint64_t end = parts.begins.group_after(fibre, first + count - 1) + 1;
    parts.tree.fibre_indices(fibre, end, room);
    std::array<std::size_t, NonzeroBlock<Index, Value>::capacity> ends;
    for (std::uint64_t f = fibre; f < end; ++f)
      ends[f - fibre] = static_cast<std::size_t>(std::min<std::uint64_t>(parts.begins[f + 1] - first, count));
    spread_fibres<Index>(room, others, std::span<const std::size_t>(ends).first(end - fibre));
  }
};

/// HOCFS whose slices are ELL matrices: all rows of a slice padded to its longest, padding index -1 (all bits set) and
/// value 0. Rows lie interleaved in groups of up to `group_rows`: element e of row r of a group of w rows is at
/// begin of the group + e * w + r, so that a vector register takes the same element of neighbouring rows.
struct HocfsEll {
  static constexpr std::uint64_t group_rows = 16;
  /// A padded tensor is refused above so many elements per nonzero (and a little for small ones).
  static constexpr std::uint64_t most_padding = 64;
  static constexpr std::uint64_t free_padding = std::uint64_t{1} << 16U;
  /// Nonzeros from one entry of `marks` to the next.
  static constexpr std::uint64_t mark_distance = 512;

  /// The fibre that a nonzero lies in, and which of its nonzeros it is.
  struct Mark {
    std::uint64_t fibre = 0;
    std::uint64_t element = 0;
  };

  TensorShape tensor_shape;
  SlicesOfSlices tree;
  Offsets slice_elements;  // [innermost slices + 1] Ap: where a slice begins
  IndexBuffer indices;     // [elements] Aj, padding all bits set
  ValueBuffer values;      // [elements] Av, padding 0
  Buffer<Mark> marks;      // [nnz / mark_distance, rounded up] for decode

  [[nodiscard]] static HocfsEll build(const CooTensor& x, const FormatOptions& options, const Context& context);

  [[nodiscard]] const TensorShape& shape() const { return tensor_shape; }
  [[nodiscard]] std::uint64_t bytes() const;
  /// The mode of the products it is for.
  [[nodiscard]] int mode() const { return tree.modes.back(); }
  /// Elements of the padded slices.
  [[nodiscard]] std::uint64_t elements() const { return slice_elements[slice_elements.groups()]; }
  /// Length of the padded rows of an innermost slice (row_max of the paper's figure 10).
  [[nodiscard]] std::uint64_t row_length(std::uint64_t slice) const {
    const std::uint64_t rows = tree.first_fibre(slice + 1) - tree.first_fibre(slice);
    return rows == 0 ? 0 : slice_elements.count(slice) / rows;
  }

  /// The padded row of a fibre: element e is at begin + e * stride.
  struct Row {
    std::uint64_t begin = 0;
    std::uint64_t stride = 0;
    std::uint64_t length = 0;
  };
  [[nodiscard]] Row row(std::uint64_t slice, std::uint64_t fibre) const {
    const std::uint64_t rows = tree.first_fibre(slice + 1) - tree.first_fibre(slice);
    const std::uint64_t r = fibre - tree.first_fibre(slice);
    const std::uint64_t group = r / group_rows * group_rows;  // its first row
    const std::uint64_t length = slice_elements.count(slice) / rows;
    return {slice_elements[slice] + group * length + (r - group), std::min(group_rows, rows - group), length};
  }

  template <class Index, class Value>
  void decode(std::uint64_t first, std::size_t count, NonzeroBlock<Index, Value>& block) const {
    if (count == 0) return;
    const std::span<const int> others = std::span<const int>(tree.modes).first(tree.modes.size() - 1);
    std::array<Index*, max_order> room = {};
    for (const int m : tree.modes) room[static_cast<std::size_t>(m)] = block.index_room(m);
    Index* index_out = room[static_cast<std::size_t>(mode())];
    Value* value_out = block.value_room();
    const Index* aj = typed<Index>(indices);
    const Value* av = typed<Value>(values);
    Mark at = marks[first / mark_distance];
    std::uint64_t skip = first % mark_distance;
    std::uint64_t slice = tree.slice_of(at.fibre);
    std::uint64_t first_fibre = at.fibre;
    std::array<std::size_t, NonzeroBlock<Index, Value>::capacity> ends;
    std::size_t fibres = 0;
    std::size_t done = 0;
    for (std::uint64_t f = at.fibre, e = at.element; done < count; ++f, e = 0) {
      while (f >= tree.first_fibre(slice + 1)) ++slice;
      const Row r = row(slice, f);
      const std::size_t before = done;
      for (; e < r.length && done < count; ++e) {
        const std::uint64_t place = r.begin + e * r.stride;
        if (aj[place] == static_cast<Index>(~Index{0})) break;
        if (skip > 0) {
          --skip;
          continue;
        }
        index_out[done] = aj[place];
        value_out[done++] = av[place];
      }
      if (done == before) {
        first_fibre = f + 1;
      } else {
        ends[fibres++] = done;
      }
    }
    tree.fibre_indices(first_fibre, first_fibre + fibres, room);
    spread_fibres<Index>(room, others, std::span<const std::size_t>(ends).first(fibres));
  }
};

}  // namespace polyad
