// SPDX-License-Identifier: MIT
/// \file The loop over a tile of a band (formats/tiles): nonzeros of a row are summed in registers and added to it
/// once.
#pragma once

#include <cstdint>

#include "formats/tiles/tiles.hpp"
#include "kernels/mttkrp/row_inputs.hpp"

namespace polyad {

/// Everything the loop needs. Factors begin with the first row of the tile, indices have 16 bits.
template <class T>
struct TileLoop : RowInputs<T> {
  const std::uint32_t* lengths = nullptr;  // [rows] nonzeros of each row of the band
  std::uint64_t rows = 0;
  T* out = nullptr;         // [rows][stride] of the band
  bool short_runs = false;  // about 32 nonzeros or fewer: several sums cost more than one that waits for itself
};

/// out(i,:) += sum over its nonzeros in the tile of value * Hadamard product of the factors' rows.
void add_tile(const TileLoop<float>& loop);
void add_tile(const TileLoop<double>& loop);

/// The MTTKRP of the mode that tiles are for. The same bits for any number of threads.
void sum_tiles(const MttkrpRequest<float>& r, const Tiles& tiles);
void sum_tiles(const MttkrpRequest<double>& r, const Tiles& tiles);

}  // namespace polyad
