// SPDX-License-Identifier: MIT
/// \file How the nonzeros of a copy are cut into tiles of input rows that a cache holds.
#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor_sample.hpp"
#include "polyad/tensor.hpp"

namespace polyad {

/// A grid over the input modes of one output mode, and bands of rows of the output.
struct Tiling {
  int mode = 0;                        ///< the output mode
  std::vector<std::uint64_t> lengths;  ///< [order] input rows of a tile, of cut modes whole granules; of the output 0
  std::vector<std::uint64_t> counts;   ///< [order] tiles of a mode; of the output mode 1
  std::uint64_t tiles = 1;             ///< all of them; 1: nothing is cut
  int band_bits = 0;                   ///< a band has 2^band_bits rows of the output
  std::uint64_t bands = 1;

  /// Rows whose tile is looked up together.
  static constexpr std::uint64_t granule = 64;
  /// Rows of a tile that an offset of 16 bits tells apart.
  static constexpr std::uint64_t most_rows = std::uint64_t{1} << 16U;
  /// Nonzeros that a row of the output has in a tile, on average, at least. 10 million nonzeros anywhere, f64, rank 16,
  /// take 130 ms uncut, 84 to 87 with 3.6 to 6.5 of them and 100 with 2.3; with 7 the counts of three copies in f32
  /// leave them within 1.5 times the coordinates.
  static constexpr double fewest_in_row = 7;

  /// For factors of options.rank columns and options.tile_bytes.
  [[nodiscard]] static Tiling choose(const TensorSample& sample, int mode, const FormatOptions& options);

  [[nodiscard]] std::uint64_t band_rows() const { return std::uint64_t{1} << static_cast<unsigned>(band_bits); }
  /// Rows of the output in every tile, those of the last band filled up.
  [[nodiscard]] std::uint64_t places() const { return (bands * tiles) << static_cast<unsigned>(band_bits); }
  /// Rows of the inputs that a tile has at most.
  [[nodiscard]] double input_rows() const;
  /// Input rows that are read anew on a walk through all tiles, the last mode's fastest.
  [[nodiscard]] double rows_of_walk() const;
  /// The first row of input mode m that tile t has.
  [[nodiscard]] std::uint64_t first_row(std::uint64_t t, std::size_t m) const;
};

}  // namespace polyad
