// SPDX-License-Identifier: MIT
/// \file Plain definitions of what operations and statistics of a CooTensor mean: slow, obviously right, and without
/// any helper of the library.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "polyad/coo_tensor.hpp"

namespace polyad::oracle {

using Coordinate = std::vector<std::uint64_t>;

struct Nonzero {
  Coordinate index;  // [order]
  double value = 0;

  friend bool operator==(const Nonzero&, const Nonzero&) = default;
};

/// The nonzeros of a tensor in their order.
std::vector<Nonzero> nonzeros(const CooTensor& x);

/// A tensor of the given nonzeros.
CooTensor tensor(std::vector<std::uint64_t> dims, const std::vector<Nonzero>& all, Precision precision,
                 const Context& context = {});

/// Stably sorted by modes, most significant first.
std::vector<Nonzero> sorted(std::vector<Nonzero> all, const std::vector<int>& mode_order);

/// Neighbours with equal coordinates added up from left to right in double.
std::vector<Nonzero> merged(const std::vector<Nonzero>& all);

/// Number of nonzeros per group that shares the indices of the given modes.
std::map<Coordinate, std::uint64_t> groups(const std::vector<Nonzero>& all, const std::vector<int>& modes);

/// Mean and population standard deviation of the sizes, in two passes.
struct Spread {
  double mean = 0;
  double stdev = 0;
  std::uint64_t max = 0;
};
Spread spread(const std::map<Coordinate, std::uint64_t>& sizes);

/// How random nonzeros are spread.
struct Shape {
  std::vector<std::uint64_t> dims;
  std::uint64_t nnz = 0;
  int giant_slice_percent = 0;  ///< of the nonzeros are in the middle slice of mode 0
  std::uint64_t few = 0;        ///< indices are among the first (and last) few of each mode: duplicates; 0: all
};

/// Random nonzeros with small whole values: any order of addition gives the same sum.
std::vector<Nonzero> random_nonzeros(const Shape& shape, std::uint64_t seed);

}  // namespace polyad::oracle
