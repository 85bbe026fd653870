// SPDX-License-Identifier: MIT
#include "formats/flycoo/flycoo.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "polyad/machine.hpp"

namespace polyad {

namespace {

/// The partition is made for this many threads when the result must not depend on their number.
constexpr std::uint64_t reproducible_threads = 16;

/// Keys with the indices side by side. The paper counts sum(log2 dims) bits for them, too.
BitLayout layout_for(std::span<const std::uint64_t> dims) {
  return BitLayout(largest_allowed(dims), {.skipped = 0, .plain = 64});
}

std::uint64_t bytes_of_nonzero(const BitLayout& layout, Precision precision) {
  return 8 * static_cast<std::uint64_t>(layout.words()) + bytes_of(precision);
}

FlycooParameters parameters_for(const CooTensor& x, const BitLayout& layout, const FormatOptions& options,
                                const Context& context) {
  const FlycooMachine machine{last_cache_bytes(), context.deterministic
                                                      ? reproducible_threads
                                                      : static_cast<std::uint64_t>(context.thread_count())};
  return flycoo_parameters(x, machine, bytes_of_nonzero(layout, x.precision()), options, context);
}

/// Of the tables of a mode with k super-shards, when the next has `next`.
std::uint64_t bytes_of_tables(std::uint64_t k, std::uint64_t next) {
  return k * next * sizeof(std::uint64_t) + 2 * (k + 1) * sizeof(std::uint64_t) + k * sizeof(std::uint32_t);
}

/// Counts per pair of super-shards of modes a and b: table[super-shard of a][super-shard of b].
std::vector<std::uint64_t> pair_counts(const CooTensor& x, const std::vector<Flycoo::Mode>& modes, std::size_t a,
                                       std::size_t b, const Context& context) {
  const std::uint64_t columns = modes[b].map.count();
  const std::uint64_t cells = modes[a].map.count() * columns;
  // A table per thread: no more threads than their tables together have cells for the nonzeros.
  const int threads = static_cast<int>(std::clamp<std::uint64_t>(x.nnz() / std::max<std::uint64_t>(cells, 1U << 15U), 1,
                                                                 static_cast<std::uint64_t>(context.thread_count())));
  std::vector<std::vector<std::uint64_t>> parts(static_cast<std::size_t>(threads));
  visit(x, [&]<class Index, class Value>(const CooView<Index, Value>& v) {
    cpu::run_team(threads, [&](int rank, int size) {
      std::vector<std::uint64_t> counts(cells);
      const cpu::Share s = cpu::share_of(v.nnz, rank, size);
      const SuperShardMap row = modes[a].map;
      const SuperShardMap column = modes[b].map;
      for (std::uint64_t k = s.begin; k < s.end; ++k)
        ++counts[row(v.indices[a][k]) * columns + column(v.indices[b][k])];
      parts[static_cast<std::size_t>(rank)] = std::move(counts);
    });
  });
  for (std::size_t t = 1; t < parts.size(); ++t)
    std::transform(parts[0].begin(), parts[0].end(), parts[t].begin(), parts[0].begin(), std::plus<>());
  return std::move(parts[0]);
}

/// Places of a stable distribution: counts[rows][columns] become the first place of each row in each column.
void counts_to_places(std::uint64_t* counts, std::uint64_t rows, std::uint64_t columns) {
  std::uint64_t sum = 0;
  for (std::uint64_t c = 0; c < columns; ++c)
    for (std::uint64_t r = 0; r < rows; ++r) sum += std::exchange(counts[r * columns + c], sum);
}

/// The coordinates in their order, distributed to the super-shards of a mode.
template <class Index, class Value>
void distribute_coordinates(const CooView<Index, const Value>& v, Flycoo& f, std::size_t mode, const Context& context) {
  const SuperShardMap map = f.modes[mode].map;
  const int team = v.nnz < (1U << 16U) ? 1 : context.thread_count();
  std::vector<std::uint64_t> places(static_cast<std::size_t>(team) * map.count());  // [team][count]
  const auto row = [&](int rank) { return places.data() + static_cast<std::size_t>(rank) * map.count(); };
  cpu::run_team(team, [&](int rank, int size) {
    const cpu::Share s = cpu::share_of(v.nnz, rank, size);
    for (std::uint64_t k = s.begin; k < s.end; ++k) ++row(rank)[map(v.indices[mode][k])];
  });
  counts_to_places(places.data(), static_cast<std::uint64_t>(team), map.count());
  Flycoo::Nonzeros& to = f.other_nonzeros();
  const std::size_t words = f.key_words();
  cpu::run_team(team, [&](int rank, int size) {
    const cpu::Share s = cpu::share_of(v.nnz, rank, size);
    Destinations destinations(map);
    destinations.begin(row(rank));
    std::vector<std::uint64_t> keys(words * Flycoo::block_nonzeros);
    std::array<std::uint64_t, Flycoo::block_nonzeros> one_word;
    for (std::uint64_t first = s.begin; first < s.end; first += Flycoo::block_nonzeros) {
      const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(s.end - first, Flycoo::block_nonzeros));
      for (std::size_t w = 0; w < words; ++w) {
        f.layout.encode(v.indices, first, n, static_cast<int>(w), one_word.data());
        for (std::size_t k = 0; k < n; ++k) keys[k * words + w] = one_word[k];
      }
      append(v.indices[mode] + first, keys.data(), words, v.values + first, n, destinations, to.keys.data(),
             typed<Value>(to.values));
    }
  });
  f.current = 1 - f.current;
  f.mode = static_cast<int>(mode);
}

}  // namespace

Flycoo Flycoo::build(const CooTensor& x, const FormatOptions& options, const Context& context) {
  Flycoo f;
  f.tensor_shape = shape_of(x);
  f.layout = layout_for(x.dims);
  f.reproducible = context.deterministic;
  const FlycooParameters p = parameters_for(x, f.layout, options, context);
  f.shard_nonzeros = p.shard_nonzeros;
  const std::size_t order = x.dims.size();
  f.modes.resize(order);
  for (std::size_t m = 0; m < order; ++m) {
    Mode& mode = f.modes[m];
    mode.map = SuperShardMap(x.dims[m], p.super_shards[m]);
    for (std::uint64_t s = 0; s < mode.map.count(); ++s) mode.first_row.push_back(mode.map.first_row(s));
    mode.first_row.push_back(x.dims[m]);
  }
  for (std::size_t m = 0; m < order; ++m) {
    Mode& mode = f.modes[m];
    const std::uint64_t columns = f.modes[(m + 1) % order].map.count();
    std::vector<std::uint64_t> counts = pair_counts(x, f.modes, m, (m + 1) % order, context);
    std::vector<std::uint64_t> sizes;
    mode.begin = {0};
    for (std::uint64_t s = 0; s < mode.map.count(); ++s) {
      const auto* first = counts.data() + s * columns;
      sizes.push_back(std::accumulate(first, first + columns, std::uint64_t{0}));
      mode.begin.push_back(mode.begin.back() + sizes.back());
    }
    mode.schedule = largest_first(sizes);
    counts_to_places(counts.data(), mode.map.count(), columns);
    mode.start = Buffer<std::uint64_t>(context, counts.size(), "the offsets of the FLYCOO remap");
    std::copy(counts.begin(), counts.end(), mode.start.data());
  }
  visit(x, [&]<class Index, class Value>(const CooView<Index, const Value>& v) {
    // Huge pages: in most runs a sweep took up to 12 % less time than on plain ones.
    for (Nonzeros& b : f.buffers) {
      b.keys = Buffer<std::uint64_t>(context, v.nnz * f.key_words(), "a buffer of the FLYCOO tensor");
      b.values = Buffer<Value>(context, v.nnz, "a buffer of the FLYCOO tensor");
    }
    // Orders by mode 1, 2, .., N-1, 0, each keeping the order before it: from here on the orders repeat.
    distribute_coordinates(v, f, 1, context);
  });
  f.bring_to(0, context);
  return f;
}

std::uint64_t Flycoo::bytes() const {
  std::uint64_t sum = 2 * tensor_shape.nnz * bytes_of_nonzero(layout, tensor_shape.precision);
  for (std::size_t m = 0; m < modes.size(); ++m)
    sum += bytes_of_tables(modes[m].map.count(), modes[(m + 1) % modes.size()].map.count());
  return sum;
}

void Flycoo::bring_to(int m, const Context& context) {
  with_types(tensor_shape, [&]<class Index, class Value>() {
    while (mode != m)
      advance(
          context, [](std::uint32_t) {},
          [&](std::uint64_t first, std::size_t count, Destinations& to) { move<Index, Value>(first, count, to); });
  });
}

extern const FormatClass flycoo_format;
const FormatClass flycoo_format = {
    {{"flycoo", "packed indices and values in two buffers; computing a mode reorders the nonzeros for the next"},
     "Wijeratne, Kannan and Prasanna, Dynasor (2023)",
     false,
     "one structure for all modes, no locks, no private outputs"},
    [](const CooTensor& x, const FormatOptions& options, const Context& context) {
      return erased(flycoo_format, options, Flycoo::build(x, options, context));
    },
    [](const CooTensor& x, const TensorStatistics&, const FormatOptions& options,
       const Context& context) -> StoragePrediction {
      const BitLayout layout = layout_for(x.dims);
      const FlycooParameters p = parameters_for(x, layout, options, context);
      const auto nnz = static_cast<double>(x.nnz());
      const double shards = std::max(2.0, nnz / static_cast<double>(p.shard_nonzeros));
      double bits =
          static_cast<double>(x.order()) * std::log2(shards) + 8.0 * static_cast<double>(bytes_of(x.precision()));
      for (const std::uint64_t d : x.dims) bits += std::log2(static_cast<double>(std::max<std::uint64_t>(d, 1)));
      std::uint64_t bytes = 2 * x.nnz() * bytes_of_nonzero(layout, x.precision());
      for (std::size_t m = 0; m < x.dims.size(); ++m)
        bytes += bytes_of_tables(p.super_shards[m], p.super_shards[(m + 1) % x.dims.size()]);
      return {2 * nnz * bits / 32.0,
              static_cast<double>(bytes),
              "2*nnz*(N*log2(nnz/g) + sum log2(dims) + value bits)/32",
              {}};
    },
    [](const EstimateRequest& q) {
      SweepEstimate e;
      // What ALTO does, and every nonzero is written again in each mode.
      e.ns = nonzero_loops_ns(q, {.overhead = 2, .along_line = true, .reuse = reuse_along_line(q.sample)});
      e.build_ns = 40 * q.sample.nnz();
      e.bytes =
          2 * q.sample.nnz() *
          static_cast<double>(bytes_of_nonzero(layout_for(q.sample.tensor().dims), q.sample.tensor().precision()));
      e.deterministic = true;
      e.why = "one pass per mode that also writes the nonzeros in the order of the next";
      return e;
    }};

}  // namespace polyad
