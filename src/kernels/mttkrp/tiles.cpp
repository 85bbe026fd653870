// SPDX-License-Identifier: MIT
/// \file MTTKRP on tiles: threads take groups of bands and go through all tiles with each, so that the input rows of a
/// tile serve all bands of a group before the next ones come. Rows of a band belong to one thread; what is added to a
/// row comes in the order of the tiles, so the result has the same bits for any number of threads.
#include "formats/tiles/tiles.hpp"

#include <numeric>
#include <vector>

#include "kernels/mttkrp/row_loop.hpp"
#include "kernels/mttkrp/tile_loop.hpp"

namespace polyad {

namespace {

/// Neighbours with about as many nonzeros each, `wanted` of them or fewer.
/// \param bands the first band of each neighbour, and the end \return the first neighbour of each, and the end
std::vector<std::uint64_t> joined(const Tiles& t, const std::vector<std::uint64_t>& bands, std::uint64_t wanted) {
  const double nnz = static_cast<double>(t.tensor_shape.nnz) / static_cast<double>(wanted);
  std::vector<std::uint64_t> first = {0};
  for (std::uint64_t i = 1; i + 1 < bands.size(); ++i)
    if (static_cast<double>(t.begin[bands[i] * t.tiling.tiles]) >= nnz * static_cast<double>(first.size()))
      first.push_back(i);
  first.push_back(bands.size() - 1);
  return first;
}

/// Bands in parts, one for each call of the caller's update: its sums depend on them, so they do not depend on the
/// number of threads. As many as row_sums_bytes counts on.
std::vector<std::uint64_t> parts_of(const Tiles& t, std::uint64_t rows) {
  std::vector<std::uint64_t> bands(t.tiling.bands + 1);
  std::iota(bands.begin(), bands.end(), 0);
  return joined(t, bands, std::min<std::uint64_t>(128, 1 + rows / 1024 + t.tensor_shape.nnz / 16384));
}

/// As many groups for each thread as cost little: every one reads the rows of all tiles anew. One where that is a
/// quarter of the nonzeros' bytes (10 million nonzeros anywhere: 31 to 33 ms with one, 33 to 36 with two, 41 with
/// four).
template <class T>
std::uint64_t groups_per_thread(const MttkrpRequest<T>& r, const Tiles& t) {
  const double walk = t.tiling.rows_of_walk() * static_cast<double>(r.stride() * sizeof(T));
  const double groups = 0.25 * static_cast<double>(t.bytes()) / (walk * static_cast<double>(r.threads()));
  return static_cast<std::uint64_t>(std::clamp(groups, 1.0, 8.0));
}

/// The lengths of the runs of a band, of 32 bits.
void copy_lengths(const Tiles& t, std::uint64_t block, std::vector<std::uint32_t>& to) {
  std::visit(
      [&](const auto& counts) {
        std::copy_n(counts.data() + (block << static_cast<unsigned>(t.tiling.band_bits)), to.size(), to.data());
      },
      t.counts);
}

template <class T>
void add_all_tiles(const MttkrpRequest<T>& r, const Tiles& t) {
  const InputModes input(t.tensor_shape.dims, t.tiling.mode);
  TileLoop<T> all;
  set_inputs(all, r, t, input);
  all.short_runs = t.tensor_shape.nnz / t.tiling.places() < 32;
  const std::vector<std::uint64_t> parts = parts_of(t, r.out.rows());
  const auto threads = static_cast<std::uint64_t>(r.threads());
  const std::vector<std::uint64_t> groups = joined(t, parts, threads == 1 ? 1 : threads * groups_per_thread(r, t));
  RowUpdate<T>* update = r.pending.take_on(parts.size() - 1);
  const auto band_row = [&](std::uint64_t band) { return std::min(band * t.tiling.band_rows(), r.out.rows()); };
  cpu::for_each_chunk(r.threads(), groups.size() - 1, [&](std::uint64_t g, int) {
    const std::uint64_t first_band = parts[groups[g]];
    const std::uint64_t end_band = parts[groups[g + 1]];
    std::fill(r.out.data() + band_row(first_band) * r.stride(), r.out.data() + band_row(end_band) * r.stride(), T{0});
    std::vector<std::uint32_t> lengths(t.tiling.band_rows());
    TileLoop<T> l = all;
    l.lengths = lengths.data();
    for (std::uint64_t tile = 0; tile < t.tiling.tiles; ++tile) {
      for (std::size_t i = 0; i < static_cast<std::size_t>(input.count); ++i)
        l.factors[i] = all.factors[i] + t.tiling.first_row(tile, static_cast<std::size_t>(input.modes[i])) * r.stride();
      for (std::uint64_t band = first_band; band < end_band; ++band) {
        const std::uint64_t block = band * t.tiling.tiles + tile;
        if (t.begin[block] == t.begin[block + 1]) continue;
        copy_lengths(t, block, lengths);
        l.begin_nonzero = t.begin[block];
        l.out = r.out.row(band_row(band));
        l.rows = band_row(band + 1) - band_row(band);
        add_tile(l);
      }
    }
    if (update == nullptr) return;
    for (std::uint64_t p = groups[g]; p < groups[g + 1]; ++p) {
      const std::uint64_t first = band_row(parts[p]);
      update->take(p, first, band_row(parts[p + 1]), r.out.row(first));
    }
  });
}

template <class T>
void run_tiles(const MttkrpRequest<T>& r) {
  sum_tiles(r, *get_if<Tiles>(r.tensor));
}

}  // namespace

void sum_tiles(const MttkrpRequest<float>& r, const Tiles& tiles) {
  tiles.plain ? sum_rows(r, *tiles.plain) : add_all_tiles(r, tiles);
}
void sum_tiles(const MttkrpRequest<double>& r, const Tiles& tiles) {
  tiles.plain ? sum_rows(r, *tiles.plain) : add_all_tiles(r, tiles);
}

extern const MttkrpKernel mttkrp_tiles_bands;
const MttkrpKernel mttkrp_tiles_bands = {
    {{"mttkrp/tiles/bands", "input rows of a tile stay in the cache for many rows of the output, which one thread has"},
     "mttkrp",
     "tiles",
     true},
    [](const MttkrpQuestion& q) {
      const auto* t = get_if<Tiles>(q.tensor);
      if (t == nullptr) return cannot("it works on tiles");
      if (t->tiling.mode != q.mode) return cannot("the tensor was built for another mode");
      if (t->plain && !sums_rows(*t->plain)) return cannot("it reads indices of up to 32 bits");
      return can(0.5 * row_cost(q),
                 t->plain ? "nothing is cut: every row is stored once" : "a tile's rows are read from a cache");
    },
    run_tiles<float>,
    run_tiles<double>};

}  // namespace polyad
