// SPDX-License-Identifier: MIT
#include "formats/sweep/split.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "formats/tiles/tiles.hpp"
#include "polyad/error.hpp"

namespace polyad {

std::uint64_t leaf_rows(const CooTensor& x, const std::vector<int>& modes) {
  std::uint64_t rows = 1;
  for (const int m : modes) {
    const std::uint64_t d = std::max<std::uint64_t>(1, x.dims[static_cast<std::size_t>(m)]);
    if (modes.size() > 1 && rows > most_merged_leaves / d) return 0;
    rows *= d;
  }
  return rows;
}

namespace {

/// Rows of a fibre's leaves are added to one after the other, and each addition waits for its row. Estimates of sweep
/// with 1.5 were 0.5 to 0.75 of what it takes on darpa, enron, vast and nell2 (Emerald Rapids), with 2 they were 1.2 to
/// 1.4 of it in f64 once leaves were requested ahead (Zen 5).
constexpr double scattering = 1.8;
/// What a pass over the nonzeros saves where leaves and values are requested ahead, at most 0.12 ns a line: vast takes
/// 0.86 of the time, nell2 0.93; rows from memory are waited for all the same (deli, darpa: 1.0).
constexpr double saved_by_requests = 0.12;
constexpr double from_caches = 1.0;  // nanoseconds of a line at most

double requested_ahead(double ns, double lines) { return ns - saved_by_requests * std::min(ns, from_caches * lines); }

/// Whether the mode after this one is one of the fibres' as well.
bool is_served_next(const ModeSplit& split, int mode) {
  const int order = static_cast<int>(split.leaves.size() + split.fibres.size());
  return split.fibres.size() > 1 && std::ranges::count(split.fibres, (mode + 1) % order) > 0;
}

}  // namespace

bool gathers_with_next(const CooTensor& x, const ModeSplit& split) {
  const auto next = static_cast<std::size_t>((split.fibres[0] + 1) % x.order());
  return is_served_next(split, split.fibres[0]) && x.dims[next] <= most_next_rows &&
         (split.fibres.size() == 2 || !worth_keeping(split.fibre_count, static_cast<double>(x.nnz())));
}

double cut_share(const TensorSample& sample, const ModeSplit& split) {
  return std::min(1.0, sample.nnz() / std::max(1.0, sample.dim(split.fibres[0])) / static_cast<double>(1U << 14U));
}

double sweep_ns(const EstimateRequest& q, const ModeSplit& split) {
  const CooTensor& x = q.sample.tensor();
  const RowCost& cost = q.cost;
  const double nnz = q.sample.nnz();
  const double row_bytes = q.row_bytes();
  const double lines = q.lines();
  const double fibres = split.fibre_count;
  const auto table = static_cast<double>(leaf_rows(x, split.leaves));
  // As EstimateRequest::bytes_between_uses: a row of the leaves for every nonzero, of the other modes for every fibre.
  const double fibres_of_nonzero = std::max(1.0, fibres) / std::max(1.0, nnz);
  double rows_of_fibre = 0;  // reading one row of each mode of a fibre
  double rows = 0;
  double rows_between_leaves = table;
  for (const int m : split.fibres) {
    const double dim = q.sample.dim(m);
    rows += dim;
    // Fibres are sorted by the root: what is in use of it is its own.
    double between = dim;
    if (m != split.fibres[0]) {
      for (const int other : split.fibres)
        if (other != m && other != split.fibres[0]) between += std::min(dim, q.sample.dim(other));
      // At least as many leaves as fibres; a bound that grows with them would spoil what choose_split leaves out.
      between += std::min(dim, table);
      rows_between_leaves += std::min(table * fibres_of_nonzero, dim);
    }
    rows_of_fibre += cost.reading_among(between * row_bytes, lines);
  }
  const double others = static_cast<double>(split.fibres.size()) - 1;
  // Per fibre: its rows but one, which is added to, and what a loop of its own costs.
  const double per_fibre = rows_of_fibre + cost.instructions(lines + 1);
  const double per_nonzero = cost.instructions(0.3);
  const double gather =
      nnz * requested_ahead(cost.reading_among(rows_between_leaves * row_bytes, lines) + per_nonzero, lines) +
      fibres * per_fibre;
  const double from_products = fibres * (per_fibre + cost.streaming(row_bytes));
  // Modes of the fibres beside the root: the next one from the root's gather, the others from products or by gathers of
  // their own.
  const bool with_next = gathers_with_next(x, split);
  const bool keep = split.fibres.size() > (with_next ? 2 : 1) && worth_keeping(fibres, nnz);
  double other_modes = (others - (with_next ? 1 : 0)) * (keep ? from_products : gather);
  if (with_next) {
    const double next = q.sample.dim((split.fibres[0] + 1) % x.order());
    // Products of a chunk are stored and read again, a line of each in about a nanosecond.
    other_modes +=
        fibres * (per_fibre + cost.instructions(lines) + cost.adding_among(q.threads * next * row_bytes, lines) +
                  cut_share(q.sample, split) * cost.streaming(2 * row_bytes));
  }
  const double tables = split.leaves.size() > 1 ? 4 * static_cast<double>(split.leaves.size()) * table * lines : 0;
  // The root's rows are stored; those of other modes and of leaves are private to threads, then summed.
  const double root = q.sample.dim(split.fibres[0]);
  const double outputs = cost.streaming((root + 4 * (rows - root)) * row_bytes);
  // Every thread scatters to a table of its own.
  FormatOptions options;
  options.rank = q.rank;
  const double leaves =
      split.leaf_copy
          ? tiles_ns(q, Tiling::choose(q.sample, split.leaves[0], options))
          : nnz * requested_ahead(per_nonzero + scattering * cost.adding_among(q.threads * table * row_bytes, lines),
                                  lines) +
                fibres * (rows_of_fibre + cost.instructions(1.5)) + cost.streaming(4 * table * row_bytes);
  return gather + (keep ? cost.streaming(fibres * row_bytes) : 0) + other_modes + leaves + tables + outputs;
}

namespace {

/// `count` leaves from mode `first` on, the others as fibres.
ModeSplit split_at(const CooTensor& x, int first, int count) {
  const int order = x.order();
  ModeSplit split;
  for (int k = 0; k < order; ++k) (k < count ? split.leaves : split.fibres).push_back((first + k) % order);
  const auto length = [&](int m) { return x.dims[static_cast<std::size_t>(m)]; };
  std::vector<int> roots;
  for (const int m : split.fibres)
    if (is_served_next(split, m) && length((m + 1) % order) <= most_next_rows) roots.push_back(m);
  if (roots.empty()) roots = split.fibres;
  const int root = *std::ranges::max_element(roots, {}, length);
  std::ranges::stable_sort(
      split.fibres, [&](int a, int b) { return (a == root) != (b == root) ? a == root : length(a) > length(b); });
  return split;
}

}  // namespace

ModeSplit split_with_leaves(const CooTensor& x, const std::vector<int>& leaves) {
  const auto count = static_cast<int>(leaves.size());
  if (count == 0 || count >= x.order() || leaves[0] < 0 || leaves[0] >= x.order())
    throw usage_error(fmt::format("{} leaf modes of a tensor of order {}", count, x.order()));
  ModeSplit split = split_at(x, leaves[0], count);
  if (split.leaves != leaves) throw usage_error("leaf modes have to follow each other: 2, 3 or, of four, 4, 1");
  if (leaf_rows(x, split.leaves) == 0)
    throw usage_error(fmt::format("leaf modes whose lengths multiply to more than {}", most_merged_leaves));
  return split;
}

ModeSplit choose_split(const TensorSample& sample, std::uint64_t rank, bool leaf_copy) {
  const CooTensor& x = sample.tensor();
  const RowCost cost;
  const EstimateRequest q{sample, rank, cost};
  const int order = x.order();
  ModeSplit best;
  best.sweep_ns = std::numeric_limits<double>::infinity();
  // Many leaves first: their fibres have few modes, and tuples of more modes are at least as many.
  for (int count = leaf_copy ? 1 : order - 1; count >= 1; --count)
    for (int first = 0; first < order; ++first) {
      ModeSplit split = split_at(x, first, count);
      if (leaf_rows(x, split.leaves) == 0) continue;
      split.leaf_copy = leaf_copy;
      split.fibre_count = sample.at_least(split.fibres);
      if (sweep_ns(q, split) >= best.sweep_ns) continue;
      split.fibre_count = sample.distinct(split.fibres);
      split.sweep_ns = sweep_ns(q, split);
      if (split.sweep_ns < best.sweep_ns) best = std::move(split);
    }
  return best;
}

}  // namespace polyad
