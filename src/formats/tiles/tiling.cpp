// SPDX-License-Identifier: MIT
#include "formats/tiles/tiling.hpp"

#include <algorithm>
#include <optional>

#include "core/estimate.hpp"
#include "polyad/matrix.hpp"

namespace polyad {

namespace {

/// Tiles near the processor: the part of a second-level cache of 2 MB that is best filled with input rows. 10 million
/// nonzeros anywhere, f32, rank 16, take 68 ms uncut, 36 to 39 with tiles of 1.5 MB, 31 to 35 with 1.2, 36 to 42 with
/// 0.9 (two cores of Emerald Rapids). The rest is for the output and for what streams through.
constexpr double share_of_cache = 0.6;
/// Where runs would become too short before a tile fits that cache: tiles that stay in the part of a third-level cache
/// that is left to one by others, for inputs that do not. Those nonzeros on two cores of Zen 3 (512 kB of second-level
/// cache): in f64 138 ms uncut (11.5 MB), 93 in tiles of 3.3 MB; at rank 64 in f32 533 and 282; in f32 (5.8 MB) 44 and
/// 55. On Emerald Rapids at rank 64 in f32 about 300 uncut, 187 in tiles of 3.3 MB.
constexpr double bytes_of_far_tile = 3e6;
constexpr double bytes_worth_far_tiles = 6e6;
/// A size that was asked for is reached but for this.
constexpr double most_of_asked = 3;
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
  const auto row_bytes = static_cast<double>(padded_columns(options.rank) * bytes_of(x.precision()));
  const auto bytes = [&](const Tiling& of) { return of.input_rows() * row_bytes; };
  const double cache = second_cache(sample.context());
  const double wanted = options.tile_bytes > 0 ? static_cast<double>(options.tile_bytes) : share_of_cache * cache;
  if (bytes(t) <= wanted || !set_bands(t, sample)) return t;
  // Cut as far as runs allow; accepted if that is small enough and offsets of 16 bits tell rows apart.
  const auto cut_to = [&](double size, double accepted) -> std::optional<Tiling> {
    Tiling of = t;
    cut(of, sample, size / row_bytes);
    if (*std::ranges::max_element(of.lengths) > most_rows || bytes(of) > accepted) return std::nullopt;
    return of;
  };
  if (options.tile_bytes > 0) return cut_to(wanted, most_of_asked * wanted).value_or(t);
  if (const std::optional<Tiling> near = cut_to(wanted, cache)) return *near;
  if (bytes(t) <= bytes_worth_far_tiles) return t;
  return cut_to(bytes_of_far_tile, bytes(t) / 2).value_or(t);
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
