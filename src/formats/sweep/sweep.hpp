// SPDX-License-Identifier: MIT
/// \file The format of the sweep engine: fibres of equal length side by side. What it is for and what was measured is
/// in the README beside it and in docs/design/0005-sweep.md.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "core/format.hpp"
#include "formats/sweep/split.hpp"
#include "formats/tiles/tiles.hpp"

namespace polyad {

/// Nonzeros sorted by the fibres' modes and cut into chunks; in a chunk the fibres are arranged by their length, so
/// that loops over fibres of one length have no surprises for the branch predictor. A fibre that is longer than
/// `longest_fibre`, or that a chunk cuts, is stored as several: nothing that uses it can tell.
///
/// A chunk has all nonzeros of its roots, so that their rows are complete when it is done; or, of a root with very many
/// nonzeros, a piece of those and nothing else: then it is cut.
struct Sweep {
  /// Nonzeros of a chunk, about; at most twice as many.
  static constexpr std::uint64_t chunk_nonzeros = std::uint64_t{1} << 14U;
  /// Nonzeros of a fibre.
  static constexpr std::size_t longest_fibre = 48;
  /// Elements behind the last one that loops may look at, ahead of what they do.
  static constexpr std::size_t padding = 64;

  using NarrowBuffer = std::variant<Buffer<std::uint16_t>, Buffer<std::uint32_t>, Buffer<std::uint64_t>>;
  /// Fibres of each length in a chunk.
  using Lengths = std::array<std::uint16_t, longest_fibre>;  // [length - 1]

  /// Indices of the root mode that the nonzeros of a chunk have, the smallest and the largest. They ascend from chunk
  /// to chunk.
  struct Roots {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
  };

  TensorShape tensor_shape;
  ModeSplit split;
  std::uint64_t leaf_rows = 0;     ///< rows of a table indexed by leaves
  NarrowBuffer leaves;             ///< [nnz + padding]
  ValueBuffer values;              ///< [nnz]
  std::vector<NarrowBuffer> ids;   ///< [mode of split.fibres][fibres + padding], all of one type
  Buffer<Lengths> lengths;         ///< [chunks]
  Buffer<std::uint64_t> begin;     ///< [chunks + 1] the first nonzero of each
  Buffer<std::uint64_t> first;     ///< [chunks + 1] the first fibre of each
  Buffer<std::uint8_t> occupied;   ///< [leaf_rows] of merged leaves: 1 where there is a nonzero; else empty
  Buffer<Roots> roots;             ///< [chunks]
  std::vector<std::uint64_t> cut;  ///< chunks that have a piece of one root, ascending
  std::optional<Tiles> leaf_copy;  ///< of sweep-two: the nonzeros once more, for the leaf mode

  /// \param leaf_copy one leaf mode, with a copy of its own
  [[nodiscard]] static Sweep build(const CooTensor& x, const FormatOptions& options, bool leaf_copy,
                                   const Context& context);

  [[nodiscard]] const TensorShape& shape() const { return tensor_shape; }
  [[nodiscard]] std::uint64_t bytes() const;
  [[nodiscard]] std::uint64_t chunks() const { return lengths.size(); }
  [[nodiscard]] std::uint64_t fibres() const { return chunks() == 0 ? 0 : first[chunks()]; }
  [[nodiscard]] bool is_cut(std::uint64_t chunk) const { return std::ranges::binary_search(cut, chunk); }
  /// Where a mode is among the fibres' modes; unset for a leaf mode.
  [[nodiscard]] std::optional<int> fibre_position(int mode) const;
  /// Where a mode is among the leaf modes.
  [[nodiscard]] std::optional<int> leaf_position(int mode) const;

  template <class Index, class Value>
  void decode(std::uint64_t first_nonzero, std::size_t count, NonzeroBlock<Index, Value>& block) const;
};

template <class Index, class Value>
void Sweep::decode(std::uint64_t first_nonzero, std::size_t count, NonzeroBlock<Index, Value>& block) const {
  block.index_stride = 1;
  block.values = typed<Value>(values) + first_nonzero;
  // Leaves: the digits of the merged index, the last mode's lowest.
  std::array<Index*, max_order> rooms = {};
  for (int m = 0; m < tensor_shape.order(); ++m) rooms[static_cast<std::size_t>(m)] = block.index_room(m);
  std::visit(
      [&](const auto& stored) {
        for (std::size_t i = 0; i < count; ++i) {
          std::uint64_t rest = stored[first_nonzero + i];
          for (std::size_t l = split.leaves.size(); l-- > 1;) {
            const auto mode = static_cast<std::size_t>(split.leaves[l]);
            rooms[mode][i] = static_cast<Index>(rest % tensor_shape.dims[mode]);
            rest /= tensor_shape.dims[mode];
          }
          rooms[static_cast<std::size_t>(split.leaves[0])][i] = static_cast<Index>(rest);
        }
      },
      leaves);
  // Fibres: from run to run of one length.
  for (std::uint64_t z = first_nonzero, end = first_nonzero + count; z < end;) {
    const auto chunk = static_cast<std::uint64_t>(std::upper_bound(begin.begin(), begin.end(), z) - begin.begin()) - 1;
    std::uint64_t fibre = first[chunk];
    std::uint64_t run = begin[chunk];
    std::size_t length = 1;
    for (; z >= run + lengths[chunk][length - 1] * length; ++length) {
      run += lengths[chunk][length - 1] * length;
      fibre += lengths[chunk][length - 1];
    }
    const std::uint64_t run_end = std::min(end, run + lengths[chunk][length - 1] * length);
    for (std::size_t h = 0; h < ids.size(); ++h)
      std::visit(
          [&](const auto& stored) {
            Index* to = rooms[static_cast<std::size_t>(split.fibres[h])] - first_nonzero;
            std::uint64_t at = (z - run) / length;
            for (std::uint64_t k = z; k < run_end; ++at) {
              const auto id = static_cast<Index>(stored[fibre + at]);
              for (const std::uint64_t fibre_end = std::min(run_end, run + (at + 1) * length); k < fibre_end; ++k)
                to[k] = id;
            }
          },
          ids[h]);
    z = run_end;
  }
}

}  // namespace polyad
