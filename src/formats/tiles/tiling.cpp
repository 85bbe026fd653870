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
/// Where one slice has more of the nonzeros, threads would wait for the one that its row belongs to.
constexpr double largest_share = 0.1;
constexpr std::uint64_t fewest_bands = 64;
/// Lengths of the runs of a band stay in the first-level cache.
constexpr int most_band_bits = 12;

std::uint64_t divided(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

}  // namespace

Tiling Tiling::choose(const TensorSample& sample, int mode, const FormatOptions& options) {
  const CooTensor& x = sample.tensor();
  Tiling t;
  t.mode = mode;
  t.lengths = x.dims;
  t.counts.assign(x.dims.size(), 1);
  const auto output = static_cast<std::size_t>(mode);
  t.lengths[output] = 0;
  const std::uint64_t rows = x.dims[output];
  while (t.band_bits < most_band_bits && (rows >> static_cast<unsigned>(t.band_bits + 1)) >= fewest_bands)
    ++t.band_bits;
  t.bands = std::max<std::uint64_t>(1, divided(rows, t.band_rows()));
  const double cache = options.tile_bytes > 0 ? static_cast<double>(options.tile_bytes)
                                              : share_of_cache * static_cast<double>(second_cache_bytes());
  const auto row_bytes = static_cast<double>(padded_columns(options.rank) * bytes_of(x.precision()));
  if (static_cast<double>(t.input_rows()) * row_bytes <= cache) return t;
  const auto enough = [&](std::uint64_t tiles) {
    return static_cast<double>(t.bands << static_cast<unsigned>(t.band_bits)) * static_cast<double>(tiles) *
               fewest_in_row <=
           sample.nnz();
  };
  while (true) {
    const auto longest = static_cast<std::size_t>(std::ranges::max_element(t.lengths) - t.lengths.begin());
    if (t.lengths[longest] <= most_rows && static_cast<double>(t.input_rows()) * row_bytes <= cache) break;
    const std::uint64_t length = divided(divided(x.dims[longest], t.counts[longest] + 1), granule) * granule;
    const std::uint64_t more = divided(x.dims[longest], length);
    if (length >= t.lengths[longest] || !enough(t.tiles / t.counts[longest] * more)) break;
    t.tiles = t.tiles / t.counts[longest] * more;
    t.counts[longest] = more;
    t.lengths[longest] = length;
  }
  if (t.tiles > 1 &&
      (*std::ranges::max_element(t.lengths) > most_rows || sample.largest_slice_share(mode) > largest_share)) {
    t.lengths = x.dims;
    t.lengths[output] = 0;
    t.counts.assign(x.dims.size(), 1);
    t.tiles = 1;
  }
  return t;
}

std::uint64_t Tiling::input_rows() const {
  std::uint64_t sum = 0;
  for (const std::uint64_t l : lengths) sum += l;
  return sum;
}

double Tiling::rows_of_walk(const std::vector<std::uint64_t>& dims) const {
  double sum = 0;
  double times = 1;
  for (std::size_t m = 0; m < dims.size(); ++m) {
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
