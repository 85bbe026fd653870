// SPDX-License-Identifier: MIT
#include "generate/supports.hpp"

#include <algorithm>
#include <cmath>

#include "generate/portable_math.hpp"

namespace polyad::synthetic {

// R blocks that each cover the share b of the cells leave (1-b)^R uncovered: nnz / cells = 1 - (1-b)^R.
double block_cells(std::span<const std::uint64_t> dims, std::uint64_t nnz, std::uint64_t rank) {
  double cells = 1;
  for (const std::uint64_t d : dims) cells *= static_cast<double>(d);
  const double share = static_cast<double>(nnz) / cells;
  if (share >= 1) return cells;
  if (share < 1e-4) return static_cast<double>(nnz) / static_cast<double>(rank);  // where 1 - (1-b)^R would cancel
  return cells * (1 - portable::power(1 - share, 1 / static_cast<double>(rank)));
}

std::vector<std::uint64_t> support_sizes(std::span<const std::uint64_t> dims, double cells) {
  const std::size_t order = dims.size();
  std::vector<double> least(order);
  for (const std::uint64_t l : {3, 2, 1}) {
    double smallest = 1;
    for (std::size_t m = 0; m < order; ++m) {
      least[m] = static_cast<double>(std::min(dims[m], l));
      smallest *= least[m];
    }
    if (smallest <= cells) break;
  }

  // size_m = t * dims_m with one t for all modes, except that modes where this is below `least` take that. Raising a
  // mode lowers t, which may push others below: again until none is. (t <= 1, so none is above its dim.)
  std::vector<double> size(order);
  std::vector<bool> is_fixed(order, false);
  for (bool changed = true; changed;) {
    changed = false;
    double fixed = 1;
    double free = 1;
    double free_modes = 0;
    for (std::size_t m = 0; m < order; ++m) {
      (is_fixed[m] ? fixed : free) *= is_fixed[m] ? least[m] : static_cast<double>(dims[m]);
      free_modes += is_fixed[m] ? 0 : 1;
    }
    const double t = free_modes > 0 ? portable::power(std::min(1.0, cells / fixed / free), 1 / free_modes) : 0;
    for (std::size_t m = 0; m < order; ++m) {
      size[m] = is_fixed[m] ? least[m] : t * static_cast<double>(dims[m]);
      if (is_fixed[m] || size[m] >= least[m]) continue;
      is_fixed[m] = true;
      changed = true;
    }
  }

  // Rounding: shortest first, where it costs most; the longer ones make up for it.
  std::vector<std::size_t> modes(order);
  for (std::size_t m = 0; m < order; ++m) modes[m] = m;
  std::stable_sort(modes.begin(), modes.end(), [&](std::size_t a, std::size_t b) { return size[a] < size[b]; });
  std::vector<std::uint64_t> rounded(order);
  double owed = 1;  // product of wanted sizes so far over that of the rounded ones
  for (const std::size_t m : modes) {
    const double wanted = size[m] * owed;
    const double r = std::clamp(std::floor(wanted + 0.5), least[m], static_cast<double>(dims[m]));
    owed = wanted / r;
    rounded[m] = static_cast<std::uint64_t>(r);
  }
  return rounded;
}

std::vector<std::uint64_t> active_lengths(std::span<const std::uint64_t> dims, std::uint64_t nnz, std::uint64_t rank) {
  const auto components = static_cast<double>(rank);
  const std::vector<std::uint64_t> sizes = support_sizes(dims, static_cast<double>(nnz) / components);
  // Four times the supports; more when 4^order < 2 * rank, since the cells must hold nnz with room to spare.
  double stretch = std::max(4.0, portable::power(2 * components, 1 / static_cast<double>(dims.size())));
  std::vector<std::uint64_t> lengths(dims.size());
  while (true) {
    double cells = 1;
    bool is_whole = true;
    for (std::size_t m = 0; m < dims.size(); ++m) {
      const double wanted = std::max(std::floor(stretch * static_cast<double>(sizes[m])), 2 * components);
      lengths[m] = wanted < static_cast<double>(dims[m]) ? static_cast<std::uint64_t>(wanted) : dims[m];
      is_whole = is_whole && lengths[m] == dims[m];
      cells *= static_cast<double>(lengths[m]);
    }
    if (is_whole || cells >= 2 * static_cast<double>(nnz)) return lengths;
    stretch *= 1.25;  // short modes gave all they have: the others give more
  }
}

}  // namespace polyad::synthetic
