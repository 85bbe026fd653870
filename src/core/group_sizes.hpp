// SPDX-License-Identifier: MIT
/// \file How many nonzeros share the indices of some modes: slices (one mode), fibres (all modes but one), duplicates
/// (all).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/radix_sort.hpp"
#include "polyad/context.hpp"
#include "polyad/coo_tensor.hpp"
#include "polyad/statistics.hpp"

namespace polyad {

/// Sums over groups, all whole numbers: the order in which threads add does not matter.
struct alignas(64) GroupTally {
  std::uint64_t count = 0;
  std::uint64_t nnz = 0;
  std::uint64_t max = 0;
  radix::uint128 squares = 0;  ///< sum of size^2
  std::array<std::uint64_t, 64> histogram = {};

  void add(std::uint64_t size) {
    ++count;
    nnz += size;
    max = size > max ? size : max;
    squares += static_cast<radix::uint128>(size) * size;
    ++histogram[static_cast<std::size_t>(radix::width_of(size) - 1)];
  }
  void add(const GroupTally& other);
  [[nodiscard]] GroupStatistics statistics() const;
};

/// Counts groups of the nonzeros of one tensor. Peak memory next to the tensor: 4, 8 or 16 bytes per nonzero (by the
/// bits of the indices), twice that when one group of keys does not fit the cache; 12 or 16 (twice 24 or 32) above 128
/// bits.
class GroupCounter {
 public:
  /// Which way to count; anything but the default is for tests.
  enum class Path : std::uint8_t { automatic, sort, hash };

  /// \param hash_mask bits of the hash that are used; fewer than all force collisions
  GroupCounter(const CooTensor& x, const Context& context, Path path = Path::automatic,
               std::uint64_t hash_mask = ~std::uint64_t{0});

  /// The groups of nonzeros whose indices agree in all of the given modes (each at most once, any order).
  [[nodiscard]] GroupTally count(std::span<const int> modes) const;

 private:
  const CooTensor& x_;
  const Context& context_;
  Path path_;
  std::uint64_t hash_mask_;
  std::vector<int> sorted_by_;          // modes the nonzeros are sorted by, empty when they are not
  std::vector<std::uint64_t> largest_;  // [order] largest index
};

}  // namespace polyad
