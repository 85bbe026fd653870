// SPDX-License-Identifier: MIT
/// \file A stable counting sort of nonzeros by one index, straight into the narrow arrays of a copy: no records, no
/// sorted array that is only read to write another. Per nonzero 2 bytes are held beside the result.
///
///   1. count the nonzeros of granules, which are rows or a few neighbouring ones
///   2. cut granules into buckets that a second-level cache holds, and write every nonzero to its bucket, through
///      buffers of some cache lines per bucket, so that no page is touched for one element alone
///   3. put the nonzeros of each bucket in the order of their rows, inside the arrays
///
/// Shares of threads and buckets are written in the order of the nonzeros: the result does not depend on their number.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/narrow_values.hpp"
#include "polyad/context.hpp"
#include "polyad/types.hpp"

namespace polyad {

/// The rows that begin in a part of the sorted nonzeros.
struct RowsOfPart {
  std::vector<std::uint64_t> rows;
  std::vector<std::uint64_t> begin;  // their first nonzeros
};

/// Nonzeros in any order, read some at a time and in the types in which they are stored: the sort is compiled for these
/// alone, whatever the nonzeros come from. \tparam Code of the values, see encode_values
template <class Index, class Code>
class RowSource {
 public:
  /// The indices that are sorted by, of nonzeros begin .. begin + count.
  virtual void copy_rows(std::uint64_t begin, std::size_t count, std::uint32_t* to) const = 0;
  /// Their indices of another level.
  virtual void copy_indices(std::size_t level, std::uint64_t begin, std::size_t count, Index* to) const = 0;
  virtual void copy_codes(std::uint64_t begin, std::size_t count, Code* to) const = 0;

 protected:
  ~RowSource() = default;
};

/// Where sorted nonzeros go.
template <class Index>
struct NarrowArrays {
  std::array<Index*, max_order> indices = {};  // [level of the source but the one that is sorted by][nnz]
  NarrowValues* values = nullptr;              // [nnz]
};

/// What is sorted by.
struct RowSortLevels {
  std::size_t level = 0;   ///< of the rows
  std::size_t count = 0;   ///< of all levels
  std::uint64_t rows = 0;  ///< no row reaches that
};

/// Sorts, and says which rows there are, in parts that follow each other. Writes nothing and returns no part if the
/// rows are too many for the nonzeros. Index: 16, 24, 32 or 64 bits.
template <class Index, class Code>
[[nodiscard]] std::vector<RowsOfPart> sort_by_rows(const RowSource<Index, Code>& nonzeros, std::uint64_t nnz,
                                                   const RowSortLevels& levels, const NarrowArrays<Index>& to,
                                                   const Context& context);

}  // namespace polyad
