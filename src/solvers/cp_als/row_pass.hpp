// SPDX-License-Identifier: MIT
/// \file The dense part of an iteration: one pass over the rows of a factor that turns MTTKRP results into the factor
/// and collects on the way what the next steps need, so that every row is loaded and stored once.
#pragma once

#include <cstdint>
#include <vector>

#include "polyad/context.hpp"
#include "polyad/matrix.hpp"

namespace polyad::cp_als_detail {

/// Columns of the small matrices in memory: a multiple of 8 doubles, whole vectors on every machine.
[[nodiscard]] constexpr std::uint64_t small_columns(std::uint64_t rank) { return (rank + 7) / 8 * 8; }

/// A rank x rank matrix in double, rows padded with zeros to small_columns.
struct Small {
  std::uint64_t rank = 0;
  std::uint64_t columns = 0;   // of a row in memory
  std::vector<double> values;  // [columns][columns]

  Small() = default;
  explicit Small(std::uint64_t rank_)
      : rank(rank_), columns(small_columns(rank_)), values(small_columns(rank_) * small_columns(rank_)) {}
  [[nodiscard]] double& operator()(std::uint64_t r, std::uint64_t s) { return values[r * columns + s]; }
  [[nodiscard]] double operator()(std::uint64_t r, std::uint64_t s) const { return values[r * columns + s]; }
};

/// What a pass over the rows gives. Sums are taken over chunks of rows that depend on the shape alone, in their order:
/// the same bits for any number of threads.
struct RowSums {
  Small gram;                 // A'A of the new rows
  std::vector<double> inner;  // per column, sum of V(i,r) * A(i,r)
};

/// A = V * solution for every row of `rows`, in place. Rows of zeros stay.
template <class T>
[[nodiscard]] RowSums solve_rows(FactorMatrix<T>& rows, const Small& solution, const Context& context);

/// A'A.
template <class T>
[[nodiscard]] Small gram_of(const FactorMatrix<T>& rows, const Context& context);

/// Non-negative rows a that approach the minimum of a G a' / 2 - v a' by coordinate descent (HALS: Cichocki, Phan: Fast
/// local algorithms for large scale nonnegative matrix and tensor factorizations, 2009), `sweeps` times over the
/// columns:  a_r = max(0, a_r + (v_r - (a G)_r) / G_rr). The start is factor(i,r) * start_scale[r]; what is stored is
/// a_r * end_scale[r], and that is what the sums are of.
template <class T>
[[nodiscard]] RowSums descend_rows(const FactorMatrix<T>& v, FactorMatrix<T>& factor, double v_scale, const Small& gram,
                                   const std::vector<double>& start_scale, const std::vector<double>& end_scale,
                                   int sweeps, const Context& context);

/// Column r times scale[r], in place.
template <class T>
void scale_columns(FactorMatrix<T>& rows, const std::vector<double>& scale, const Context& context);

}  // namespace polyad::cp_als_detail
