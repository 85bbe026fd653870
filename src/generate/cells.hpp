// SPDX-License-Identifier: MIT
/// \file Coordinates as cells of the whole index space, numbered with the last mode running fastest, and operations on
/// sorted sets of them. Tensors here are sets: their values are 0 until the end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "polyad/context.hpp"
#include "polyad/coo_tensor.hpp"

namespace polyad::synthetic {

/// Number of cells, the product of the dims; 2^64 - 1 when it is more.
[[nodiscard]] std::uint64_t cell_count(std::span<const std::uint64_t> dims);

/// `count` coordinates, numbers `first`, `first` + 1, ... of a sequence drawn from the seed; unsorted. When there are
/// at most 2^63 cells, the sequence visits each but the last once, in random order (first + count <= cells - 1);
/// otherwise its members are independent and equal only by a rare chance.
[[nodiscard]] CooTensor draw_cells(std::span<const std::uint64_t> dims, std::uint64_t first, std::uint64_t count,
                                   const Context& context);

/// `count` cells chosen from all of them, sorted, the last among them. Looks at every cell: for dense tensors.
[[nodiscard]] CooTensor choose_cells(std::span<const std::uint64_t> dims, std::uint64_t count, const Context& context);

/// Calls f(cell, coordinates) for cells [begin, end) in order; coordinates are counted up, not divided out.
template <class F>
void for_each_cell(std::span<const std::uint64_t> dims, std::uint64_t begin, std::uint64_t end, const F& f) {
  std::array<std::uint64_t, max_order> at = {};
  std::uint64_t rest = begin;
  for (std::size_t m = dims.size(); m-- > 0;) {
    at[m] = rest % dims[m];
    rest /= dims[m];
  }
  for (std::uint64_t cell = begin; cell < end; ++cell) {
    f(cell, std::span<const std::uint64_t>(at.data(), dims.size()));
    for (std::size_t m = dims.size(); m-- > 0;) {
      if (++at[m] < dims[m]) break;
      at[m] = 0;
    }
  }
}

/// Adds the cell at the last index of every mode, at the end.
void append_last_cell(CooTensor& x);

/// Sorts by modes 0, 1, ... and keeps each coordinate once.
void make_set(CooTensor& x, const Context& context);

/// x becomes the union of two sets; `more` is used up.
void unite(CooTensor& x, CooTensor& more, const Context& context);

/// Takes nonzeros chosen by the seed away from a set until `count` are left; never the last one.
void thin(CooTensor& x, std::uint64_t count, const Context& context);

}  // namespace polyad::synthetic
