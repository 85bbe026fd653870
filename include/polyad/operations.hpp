// SPDX-License-Identifier: MIT
/// \file What can be done to a CooTensor as data: sort, merge, transform, cut. All parallel, all deterministic. Arrays
/// that are views of foreign memory are copied before they are changed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "polyad/context.hpp"
#include "polyad/coo_tensor.hpp"

namespace polyad {

/// Sorts the nonzeros by the given modes, most significant first (all modes, each once). Stable: equal coordinates keep
/// their order, so the result does not depend on the number of threads. Needs a second copy of the tensor meanwhile.
void sort_nonzeros(CooTensor& x, std::span<const int> mode_order, const Context& context = {});

/// Sorts by modes 0, 1, ..., order-1 unless the tensor is known to be sorted by some order already.
void ensure_sorted(CooTensor& x, const Context& context = {});

/// Sums the values of equal coordinates, in their order of appearance. Sorts first if needed. Returns how many nonzeros
/// went away. A sum that the type of the values cannot hold is an Error.
std::uint64_t merge_duplicates(CooTensor& x, const Context& context = {});

/// Removes stored zeros. Returns how many nonzeros went away.
std::uint64_t drop_zeros(CooTensor& x, const Context& context = {});

/// Renumbers every mode so that each index occurs; labels follow. Returns per mode the old (0-based) index of each new
/// one.
std::vector<std::vector<std::uint64_t>> drop_empty_slices(CooTensor& x, const Context& context = {});

/// What to do to each value.
enum class ValueTransform : std::uint8_t {
  log1p,   ///< v -> sign(v) log(1 + |v|): tames heavy tails
  binary,  ///< v -> 1 for every nonzero value
};

/// Applies a transform to every value.
void transform_values(CooTensor& x, ValueTransform transform, const Context& context = {});

/// For counts: replaces each value v by how much it is above what is expected, e, if the modes were independent:
/// sqrt(2 (v log(v/e) - v + e)) where v > e (the deviance residual of a Poisson count; about 1 is chance), else 0. What
/// is frequent everywhere vanishes. e is the product of the sums of the cell's slices / (sum of all values)^(order-1);
/// with a mode given it is (sum of the cell's fibre along the mode) * (sum of its slice of the mode) / (sum of all), so
/// that only the dependence of that mode on the others together counts (words on documents). A negative value is an
/// Error. Duplicates are merged first; with a mode the nonzeros are sorted.
void to_deviance(CooTensor& x, std::optional<int> mode = std::nullopt, const Context& context = {});

/// A range of 0-based indices of one mode, [begin, end).
struct IndexRange {
  int mode = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// The nonzeros inside all of the ranges (several of one mode: inside each); an empty range is an Error; a restricted
/// mode is renumbered from 0 and gets the length of its range.
[[nodiscard]] CooTensor subset(const CooTensor& x, std::span<const IndexRange> ranges, const Context& context = {});

/// A copy, in the wanted precision. A value that f32 cannot hold, too large or so small that it would become 0, is an
/// Error.
[[nodiscard]] CooTensor copy_as(const CooTensor& x, Precision precision, const Context& context = {});

/// A copy.
[[nodiscard]] CooTensor clone(const CooTensor& x, const Context& context = {});

/// Same dims, same nonzeros in the same order with the same bits, whatever the index width. Labels are not compared.
[[nodiscard]] bool same_nonzeros(const CooTensor& a, const CooTensor& b);

}  // namespace polyad
