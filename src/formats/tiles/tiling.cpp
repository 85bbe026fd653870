// SPDX-License-Identifier: MIT
#include "formats/tiles/tiling.hpp"

#include <algorithm>

#include "polyad/machine.hpp"
#include "polyad/matrix.hpp"

namespace polyad {

namespace {

/// The part of a second-level cache of 2 MB that is best filled with input rows: 10 million nonzeros anywhere, f32,
/// rank 16, take 68 ms uncut, 36 to 39 with tiles of 1.5 MB, 31 to 35 with 1.2, 36 to 42 with 0.9 (two cores of Emerald
/// Rapids). The rest is for the output and for what streams through.
constexpr double share_of_cache = 0.6;
/// Where runs would become too short before a tile is that small, one of this part is better than none: at rank 64
/// those nonzeros take 187 ms in tiles of 3.3 MB, about 300 uncut.
constexpr double largest_share_of_cache = 2;
/// Where one band has more of the nonzeros, threads would wait for the one that its rows belong to.
constexpr double largest_share_of_band = 0.1;
constexpr std::uint64_t fewest_bands = 64;
/// Lengths of the runs of a band stay in the first-level cache; each tile of a band has 8 bytes of its own.
constexpr int most_band_bits = 12;
constexpr int fewest_band_bits = 4;

std::uint64_t divided(std::uint64_t a, std::uint64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

/// Bands of at most a tenth of the nonzeros each. False if there are none.
bool set_bands(Tiling& t, const TensorSample& sample) {
  const std::uint64_t rows = sample.tensor().dims[static_cast<std::size_t>(t.mode)];
  while (t.band_bits < most_band_bits && (rows >> static_cast<unsigned>(t.band_bits + 1)) >= fewest_bands)
    ++t.band_bits;
  while (t.band_bits > fewest_band_bits && sample.largest_share(t.mode, t.band_bits) > largest_share_of_band)
    --t.band_bits;
  t.bands = std::max<std::uint64_t>(1, divided(rows, t.band_rows()));
  return sample.largest_share(t.mode, t.band_bits) <= largest_share_of_band;
}

/// Cuts modes, always the one that has most rows in a tile, until tiles are small enough or runs would be too short.
void cut(Tiling& t, const TensorSample& sample, double most_input_rows) {
  const std::vector<std::uint64_t>& dims = sample.tensor().dims;
  const auto in_tile = static_cast<double>(t.bands) * static_cast<double>(t.band_rows()) * Tiling::fewest_in_row;
  while (true) {
    const auto longest = static_cast<std::size_t>(std::ranges::max_element(t.lengths) - t.lengths.begin());
    if (t.lengths[longest] <= Tiling::most_rows && t.input_rows() <= most_input_rows) return;
    // An eighth more ranges at a time, but for the first few.
    const std::uint64_t before = t.counts[longest];
    const std::uint64_t wanted =
        std::max(before + std::max<std::uint64_t>(1, before / 8), dims[longest] / Tiling::most_rows);
    const std::uint64_t shorter = (divided(t.lengths[longest], Tiling::granule) - 1) * Tiling::granule;
    const std::uint64_t length =
        std::min(divided(divided(dims[longest], wanted), Tiling::granule) * Tiling::granule, shorter);
    if (length == 0) return;
    const std::uint64_t more = divided(dims[longest], length);
    const std::uint64_t others = t.tiles / before;  // tiles of the other modes
    if (static_cast<double>(others) * static_cast<double>(more) * in_tile > sample.nnz()) return;
    t.tiles = others * more;
    t.counts[longest] = more;
    t.lengths[longest] = length;
  }
}

}  // namespace

Tiling Tiling::choose(const TensorSample& sample, int mode, const FormatOptions& options) {
  const CooTensor& x = sample.tensor();
  Tiling t;
  t.mode = mode;
  t.lengths = x.dims;
  t.lengths[static_cast<std::size_t>(mode)] = 0;
  t.counts.assign(x.dims.size(), 1);
  // The same for every machine where the same bits are promised.
  const std::uint64_t second_cache = sample.context().deterministic ? std::uint64_t{1} << 20U : second_cache_bytes();
  const double cache = options.tile_bytes > 0 ? static_cast<double>(options.tile_bytes) / share_of_cache
                                              : static_cast<double>(second_cache);
  const auto row_bytes = static_cast<double>(padded_columns(options.rank) * bytes_of(x.precision()));
  if (t.input_rows() * row_bytes <= share_of_cache * cache || !set_bands(t, sample)) return t;
  Tiling uncut = t;
  cut(t, sample, share_of_cache * cache / row_bytes);
  const bool small =
      *std::ranges::max_element(t.lengths) <= most_rows && t.input_rows() * row_bytes <= largest_share_of_cache * cache;
  return small ? t : uncut;
}

double Tiling::input_rows() const {
  double sum = 0;
  for (const std::uint64_t l : lengths) sum += static_cast<double>(l);
  return sum;
}

double Tiling::rows_of_walk() const {
  double sum = 0;
  double times = 1;
  for (std::size_t m = 0; m < lengths.size(); ++m) {
    times *= static_cast<double>(counts[m]);
    sum += static_cast<double>(lengths[m]) * (counts[m] > 1 ? times : 1);  // what is not cut stays
  }
  return sum;
}

std::uint64_t Tiling::first_row(std::uint64_t t, std::size_t m) const {
  for (std::size_t inner = counts.size(); --inner > m;) t /= counts[inner];
  return t % counts[m] * lengths[m];
}

}  // namespace polyad
