// SPDX-License-Identifier: MIT
/// \file Copies whose nonzeros go tile by tile through the rows that they read, so that these stay in a
/// cache. README.md beside it has the layout.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "core/format.hpp"
#include "formats/copies/copies.hpp"
#include "formats/tiles/tiling.hpp"

namespace polyad {

/// A copy of the tensor for one output mode: bands of output rows, in a band tiles of input rows, in a tile the
/// nonzeros of each row side by side.
struct Tiles {
  using Counts = std::variant<Buffer<std::uint8_t>, Buffer<std::uint16_t>, Buffer<std::uint32_t>>;

  TensorShape tensor_shape;
  Tiling tiling;
  std::vector<SortedCopy::NarrowBuffer> indices;  ///< [order][nnz] 16 bits, from the first row of the tile on
  NarrowValues values;                            ///< [nnz]
  Counts counts;                                  ///< [band][tile][row of the band] nonzeros, in the narrowest type
  Buffer<std::uint64_t> begin;                    ///< [bands * tiles + 1] the first nonzero
  std::optional<SortedCopy> plain;                ///< instead of all that, where nothing is to be cut

  [[nodiscard]] static Tiles build(const CooTensor& x, const FormatOptions& options, const Context& context);
  /// A copy that is not cut.
  [[nodiscard]] static Tiles uncut(SortedCopy copy);
  /// Bytes of a copy.
  [[nodiscard]] static double predicted_bytes(const TensorSample& sample, const Tiling& tiling, const ValueCode& code);

  [[nodiscard]] const TensorShape& shape() const { return tensor_shape; }
  [[nodiscard]] std::uint64_t bytes() const;
  [[nodiscard]] const NarrowValues* stored_values() const { return plain ? &plain->values : &values; }

  template <class Index, class Value>
  void decode(std::uint64_t first, std::size_t count, NonzeroBlock<Index, Value>& block) const;

 private:
  /// Sorts nonzeros into the arrays. False if there are too many places for the sort.
  bool fill(const CooTensor& x, const ValueCode& code, const Context& context);
};

template <class Index, class Value>
void Tiles::decode(std::uint64_t first, std::size_t count, NonzeroBlock<Index, Value>& block) const {
  if (plain) return plain->decode(first, count, block);
  block.index_stride = 1;
  block.values = values.get(first, count, block.value_room());
  std::array<Index*, max_order> rooms = {};
  for (int m = 0; m < tensor_shape.order(); ++m) rooms[static_cast<std::size_t>(m)] = block.index_room(m);
  const auto output = static_cast<std::size_t>(tiling.mode);
  for (std::uint64_t z = first, end = first + count; z < end;) {
    const auto at = static_cast<std::uint64_t>(std::upper_bound(begin.begin(), begin.end(), z) - begin.begin()) - 1;
    const std::uint64_t block_end = std::min(end, begin[at + 1]);
    for (std::size_t m = 0; m < indices.size(); ++m) {
      if (m == output) continue;
      const std::uint16_t* offsets = typed<std::uint16_t>(indices[m]);
      const std::uint64_t row = tiling.first_row(at % tiling.tiles, m);
      for (std::uint64_t k = z; k < block_end; ++k) rooms[m][k - first] = static_cast<Index>(row + offsets[k]);
    }
    std::visit(
        [&](const auto& lengths) {
          std::uint64_t row = at << static_cast<unsigned>(tiling.band_bits);
          std::uint64_t row_end = begin[at] + lengths[row];
          const std::uint64_t band_first = at / tiling.tiles * tiling.band_rows();
          const std::uint64_t first_place = row;
          for (std::uint64_t k = z; k < block_end; ++k) {
            while (k >= row_end) row_end += lengths[++row];
            rooms[output][k - first] = static_cast<Index>(band_first + (row - first_place));
          }
        },
        counts);
    z = block_end;
  }
}

/// Nanoseconds of one thread for the MTTKRP of a mode.
[[nodiscard]] double tiles_ns(const EstimateRequest& q, const Tiling& tiling);

}  // namespace polyad
