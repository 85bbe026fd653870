// SPDX-License-Identifier: MIT
#include "formats/tiles/tiles.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>

#include "backends/cpu/threads.hpp"
#include "formats/copies/row_sort.hpp"

namespace polyad {

namespace {

constexpr std::string_view purpose = "a copy of the tensor in tiles";

/// Nonzeros as the sort by rows wants them: the index of the output mode is a place, those of the input modes are
/// offsets in the tile.
template <class Index, class Value, class Code>
class PlacedNonzeros final : public RowSource<std::uint16_t, Code> {
 public:
  PlacedNonzeros(const CooTensor& x, const Tiling& tiling, const ValueCode& code)
      : values_(typed<Value>(x.values)),
        code_(code),
        output_(static_cast<std::size_t>(tiling.mode)),
        tiles_(tiling.tiles),
        band_bits_(static_cast<unsigned>(tiling.band_bits)),
        in_band_(tiling.band_rows() - 1) {
    std::uint64_t weight = 1;
    for (std::size_t m = x.dims.size(); m-- > 0;) {
      modes_[m].indices = typed<Index>(x.indices[m]);
      if (m == output_ || tiling.counts[m] == 1) continue;
      Granules& granules = modes_[m].granules.emplace();
      for (std::uint64_t first = 0; first < x.dims[m]; first += Tiling::granule) {
        const std::uint64_t tile = first / tiling.lengths[m];
        granules.tile.push_back(static_cast<std::uint32_t>(tile * weight));
        granules.first_row.push_back(static_cast<std::uint16_t>(tile * tiling.lengths[m]));
      }
      weight *= tiling.counts[m];
      cut_[cut_count_++] = m;
    }
  }

  /// Offsets in an input mode of nonzeros begin .. begin + count.
  void copy_indices(std::size_t level, std::uint64_t begin, std::size_t count, std::uint16_t* to) const override {
    const Index* indices = modes_[level].indices + begin;
    if (!modes_[level].granules) {
      std::copy_n(indices, count, to);
      return;
    }
    const std::uint16_t* first_row = modes_[level].granules->first_row.data();
    for (std::size_t j = 0; j < count; ++j)
      to[j] = static_cast<std::uint16_t>(indices[j] - first_row[indices[j] / Tiling::granule]);
  }
  /// Their places. All modes that are cut in one loop where these are one or two: with a loop for each, places would be
  /// read and written again.
  void copy_rows(std::uint64_t begin, std::size_t count, std::uint32_t* to) const override {
    const Index* rows = modes_[output_].indices + begin;
    const unsigned bits = band_bits_;
    const auto in_band = static_cast<std::uint32_t>(in_band_);
    const auto tiles = static_cast<std::uint32_t>(tiles_);
    const auto place = [&](std::size_t j, std::uint32_t tile) {
      const auto row = static_cast<std::uint32_t>(rows[j]);
      const auto band = static_cast<std::uint32_t>(rows[j] >> bits);
      return ((band * tiles + tile) << bits) + (row & in_band);
    };
    const auto tile_in = [&](std::size_t c) {
      const Mode& mode = modes_[cut_[c]];
      return [tile = mode.granules->tile.data(), indices = mode.indices + begin](std::size_t j) {
        return tile[indices[j] / Tiling::granule];
      };
    };
    const auto first = tile_in(0);
    if (cut_count_ == 1) {
      for (std::size_t j = 0; j < count; ++j) to[j] = place(j, first(j));
      return;
    }
    const auto second = tile_in(1);
    if (cut_count_ == 2) {
      for (std::size_t j = 0; j < count; ++j) to[j] = place(j, first(j) + second(j));
      return;
    }
    for (std::size_t j = 0; j < count; ++j) to[j] = first(j) + second(j);
    for (std::size_t c = 2; c < cut_count_; ++c) {
      const auto tile = tile_in(c);
      for (std::size_t j = 0; j < count; ++j) to[j] += tile(j);
    }
    for (std::size_t j = 0; j < count; ++j) to[j] = place(j, to[j]);
  }
  void copy_codes(std::uint64_t begin, std::size_t count, Code* to) const override {
    encode_values(
        code_, count, [from = values_ + begin](std::size_t i) { return from[i]; }, to);
  }

 private:
  /// Rows whose tile is looked up together.
  struct Granules {
    std::vector<std::uint32_t> tile;       // times the tiles of the modes behind
    std::vector<std::uint16_t> first_row;  // of the tile, modulo 2^16: so many rows it has at most
  };
  struct Mode {
    const Index* indices = nullptr;
    std::optional<Granules> granules;  // of a mode that is cut
  };

  const Value* values_;
  ValueCode code_;
  std::array<Mode, max_order> modes_ = {};
  std::array<std::size_t, max_order> cut_ = {};  // modes that are cut
  std::size_t cut_count_ = 0;
  std::size_t output_;
  std::uint64_t tiles_;
  unsigned band_bits_;
  std::uint64_t in_band_;
};

/// Calls f(place, its first nonzero, the first one of the next place) for the places of a part.
template <class F>
void for_places(const std::vector<RowsOfPart>& parts, std::size_t part, std::uint64_t nnz, const F& f) {
  std::uint64_t end = nnz;  // of the part
  for (std::size_t next = part + 1; next < parts.size(); ++next)
    if (!parts[next].begin.empty()) {
      end = parts[next].begin[0];
      break;
    }
  const RowsOfPart& p = parts[part];
  for (std::size_t i = 0; i < p.rows.size(); ++i)
    f(p.rows[i], p.begin[i], i + 1 < p.rows.size() ? p.begin[i + 1] : end);
}

template <class Count>
void set_counts(Tiles& t, const std::vector<RowsOfPart>& parts, const Context& context) {
  Buffer<Count> counts(context, t.tiling.places(), purpose, Paging::plain);
  cpu::for_each_chunk(context.thread_count(), parts.size(), [&](std::uint64_t part, int) {
    for_places(parts, part, t.tensor_shape.nnz, [&](std::uint64_t place, std::uint64_t begin, std::uint64_t end) {
      counts[place] = static_cast<Count>(end - begin);
    });
  });
  t.counts = std::move(counts);
}

/// Where the nonzeros of each tile of each band begin: with those of its first place, or of the next tile that has any.
void set_begins(Tiles& t, const std::vector<RowsOfPart>& parts, const Context& context) {
  t.begin = Buffer<std::uint64_t>(context, t.tiling.bands * t.tiling.tiles + 1, purpose);
  std::uint64_t next = 0;
  for (const RowsOfPart& p : parts)
    for (std::size_t i = 0; i < p.rows.size(); ++i)
      for (const std::uint64_t at = p.rows[i] >> static_cast<unsigned>(t.tiling.band_bits); next <= at; ++next)
        t.begin[next] = p.begin[i];
  for (; next < t.begin.size(); ++next) t.begin[next] = t.tensor_shape.nnz;
}

}  // namespace

bool Tiles::fill(const CooTensor& x, const ValueCode& code, const Context& context) {
  std::vector<RowsOfPart> parts;
  values = NarrowValues(context, code, x.nnz(), purpose);
  const auto sort = [&]<class Index, class Value, class Code>() {
    NarrowArrays<std::uint16_t> to;
    indices.resize(x.dims.size());
    for (std::size_t m = 0; m < x.dims.size(); ++m) {
      if (static_cast<int>(m) == tiling.mode) continue;
      indices[m] = Buffer<std::uint16_t>(context, x.nnz(), purpose, Paging::plain, Content::any);
      to.indices[m] = typed<std::uint16_t>(indices[m]);
    }
    to.values = &values;
    const PlacedNonzeros<Index, Value, Code> nonzeros(x, tiling, values.code());
    parts = sort_by_rows(nonzeros, x.nnz(), {static_cast<std::size_t>(tiling.mode), x.dims.size(), tiling.places()}, to,
                         context);
  };
  context.report({"sorting", 0, x.nnz(), "nonzeros"});
  // As they are stored: 64 bits also where the lengths of modes need fewer.
  polyad::visit(x, [&]<class Index, class Value>(const CooView<const Index, const Value>&) {
    if constexpr (std::is_same_v<Value, double>) {
      if (values.code().bytes == sizeof(double)) return sort.template operator()<Index, Value, std::uint64_t>();
    }
    sort.template operator()<Index, Value, std::uint32_t>();
  });
  context.report({"sorting", x.nnz(), x.nnz(), "nonzeros"});
  if (parts.empty()) return false;
  std::vector<std::uint64_t> longest(parts.size(), 0);
  cpu::for_each_chunk(context.thread_count(), parts.size(), [&](std::uint64_t part, int) {
    for_places(parts, part, x.nnz(), [&](std::uint64_t, std::uint64_t from, std::uint64_t to) {
      longest[part] = std::max(longest[part], to - from);
    });
  });
  const std::uint64_t most = *std::ranges::max_element(longest);
  if (most > std::numeric_limits<std::uint32_t>::max()) return false;
  if (most <= std::numeric_limits<std::uint8_t>::max()) {
    set_counts<std::uint8_t>(*this, parts, context);
  } else if (most <= std::numeric_limits<std::uint16_t>::max()) {
    set_counts<std::uint16_t>(*this, parts, context);
  } else {
    set_counts<std::uint32_t>(*this, parts, context);
  }
  set_begins(*this, parts, context);
  return true;
}

Tiles Tiles::build(const CooTensor& x, const FormatOptions& options, const Context& context) {
  const int mode = options.mode.value_or(0);
  if (Tiling tiling = Tiling::choose(TensorSample(x, context), mode, options); tiling.tiles > 1) {
    Tiles t;
    t.tensor_shape = shape_of(x);
    t.tiling = std::move(tiling);
    if (t.fill(x, value_code(x, options, context), context)) return t;
  }
  return uncut(SortedCopy::build(x, options, context));
}

Tiles Tiles::uncut(SortedCopy copy) {
  Tiles t;
  t.tensor_shape = copy.tensor_shape;
  t.tiling.mode = copy.mode;
  t.plain = std::move(copy);
  return t;
}

std::uint64_t Tiles::bytes() const {
  if (plain) return plain->bytes();
  std::uint64_t sum = values.bytes() + bytes_in(counts) + begin.bytes();
  for (const SortedCopy::NarrowBuffer& b : indices) sum += bytes_in(b);
  return sum;
}

double Tiles::predicted_bytes(const TensorSample& sample, const Tiling& tiling, const ValueCode& code) {
  const CooTensor& x = sample.tensor();
  const auto nnz = static_cast<double>(x.nnz());
  if (tiling.tiles == 1) return SortedCopy::predicted_bytes(x, tiling.mode, sample.occurring(tiling.mode), code);
  const auto places = static_cast<double>(tiling.places());
  // The longest run is taken for eight times as long as the mean one.
  const double count = nnz / places <= 32 ? 1 : nnz / places <= 8192 ? 2 : 4;
  return NarrowValues::predicted_bytes(code, nnz) + static_cast<double>(x.order() - 1) * nnz * 2 + places * count +
         8 * static_cast<double>(tiling.bands * tiling.tiles + 1);
}

double tiles_ns(const EstimateRequest& q, const Tiling& t) {
  const int n = t.mode;
  if (t.tiles == 1) {
    const double rows = q.sample.occurring(n);
    return sorted_copy_ns(q, n, rows, SortedCopy::orders_rows(shape_of(q.sample.tensor()), n, rows));
  }
  // Input rows share the cache with the output and with what streams through: they come from where a table lies that
  // is larger by that.
  const double tile = t.input_rows() * q.row_bytes() / 0.6;
  // Nonzeros of a row come as in the tensor; where that is sorted, those of a fibre of the last mode share their other
  // rows, as far as they are in one tile.
  const int last = n == q.sample.order() - 1 ? n - 1 : q.sample.order() - 1;
  const double in_fibre = q.sample.nnz() / std::max(1.0, q.sample.fibres(last)) /
                          std::sqrt(static_cast<double>(t.counts[static_cast<std::size_t>(last)]));
  double row = q.cost.instructions(0.2 + many_inputs_ns(q));  // as in sorted_copy_ns
  for (int m = 0; m < q.sample.order(); ++m)
    if (m != n) row += q.cost.multiplying(tile, q.lines(), m == last ? 1 : std::max(1.0, in_fibre));
  const double read = t.input_rows() * q.row_bytes();
  row *= q.among_streams(read);
  // Where a run ends is not foreseen, and its row of the output is added to: 4 to 5 ns with one line, 9 to 12 with two.
  const double runs = std::min(q.sample.nnz(), static_cast<double>(t.places()));
  // What a tile reads for the first time comes at random from where the tables lie, or as fast as memory is streamed.
  double longest = 0;
  for (int m = 0; m < q.sample.order(); ++m)
    if (m != n) longest = std::max(longest, q.sample.dim(m));
  const double walk =
      t.rows_of_walk() * q.threads *
      std::max(q.cost.streaming(q.row_bytes()), q.cost.reading_among(longest * q.row_bytes(), q.lines()));
  const double balance = std::max(1.0, q.sample.largest_share(n, t.band_bits) * q.threads);
  return balance *
         (q.sample.nnz() * row + q.cost.instructions(runs * (1 + 4 * q.lines())) + walk + stored_output_ns(q, n));
}

extern const FormatClass tiles_format;
const FormatClass tiles_format = {
    {{"tiles", "a copy per mode that goes tile by tile through the rows it reads"},
     "polyad's own; cache blocking of sparse matrices is Im and Yelick's (ICCS 2001)",
     true,
     "factors that the caches do not hold, rows of many nonzeros: what is read stays near"},
    [](const CooTensor& x, const FormatOptions& options, const Context& context) {
      return erased(tiles_format, options, Tiles::build(x, options, context));
    },
    [](const CooTensor& x, const TensorStatistics&, const FormatOptions& options,
       const Context& context) -> StoragePrediction {
      const TensorSample sample(x, context);
      const Tiling t = Tiling::choose(sample, options.mode.value_or(0), options);
      const ValueCode code = sample.value_code();
      const double bytes = Tiles::predicted_bytes(sample, t, code);
      return {(bytes - NarrowValues::predicted_bytes(code, sample.nnz())) / 4,
              bytes,
              "nnz*(N-1)/2 + count/4*tiles*I + 2*tiles*bands (an estimate)",
              {}};
    },
    [](const EstimateRequest& q) {
      SweepEstimate e;
      FormatOptions options;
      options.rank = q.rank;
      std::uint64_t most_tiles = 1;
      for (int n = 0; n < q.sample.order(); ++n) {
        const Tiling t = Tiling::choose(q.sample, n, options);
        e.bytes += Tiles::predicted_bytes(q.sample, t, q.sample.value_code());
        e.ns += tiles_ns(q, t);
        most_tiles = std::max(most_tiles, t.tiles);
      }
      e.repeats = most_tiles == 1;
      e.build_ns = 17 * q.sample.nnz() * q.sample.order();
      e.build_bytes = bytes_from_sorted(q, e.bytes);
      e.deterministic = true;
      e.why = most_tiles == 1 ? "nothing to cut into tiles: the same as copies"
                              : "one narrow copy per mode, in tiles whose rows stay in a cache";
      return e;
    },
    true};

}  // namespace polyad
