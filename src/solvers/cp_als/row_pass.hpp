// SPDX-License-Identifier: MIT
/// \file The dense part of an iteration: turns rows of an MTTKRP into rows of the factor and collects on the way what
/// the next steps need, while the MTTKRP that gives them is still under way (RowUpdate).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "polyad/buffer.hpp"
#include "polyad/context.hpp"
#include "polyad/kernels.hpp"
#include "polyad/large_vector.hpp"
#include "polyad/matrix.hpp"
#include "solvers/cp_als/row_blocks.hpp"

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

/// What a pass over the rows gives. Sums are taken part by part, in the order of parts; which rows a part has depends
/// on the tensor and its format, or on the shape alone: the same bits for any number of threads.
struct RowSums {
  Small gram;                 // A'A of the new rows
  std::vector<double> inner;  // per column, sum of V(i,r) * A(i,r)
};

/// Makes the rows of a factor A from those of an MTTKRP V, as they come.
template <class T>
class RowSolver : public RowUpdate<T> {
 public:
  /// Over all rows that were taken.
  [[nodiscard]] virtual RowSums sums() = 0;
  /// Seconds that threads spent with rows, all of them added.
  [[nodiscard]] virtual double seconds() const = 0;
};

/// Room that one pass after the other uses, of any modes of one rank: memory that every update asked for anew came page
/// by page, and went again, while other threads worked (1 to 2 ms of an iteration of 90 on darpa).
template <class T>
struct RowScratch {
  /// What lives from one call to the next: rows that are solved, until there are enough of them to be added up. Chunks
  /// of a tensor may have a few rows only.
  struct Part {
    LargeVector<T> memory;
    std::array<std::uint64_t, block_rows> indices = {};
    std::uint64_t rows = 0;
    double seconds = 0;
  };
  std::vector<Part> parts;
  Buffer<double> sums;  // [parts][columns * columns + columns]
};

/// A = V * solution, in place. Rows of zeros stay. \param rows, scratch must outlive what is returned
template <class T>
[[nodiscard]] std::unique_ptr<RowSolver<T>> least_squares(FactorMatrix<T>& rows, const Small& solution,
                                                          RowScratch<T>& scratch, const Context& context);

/// Non-negative rows a that approach the minimum of a G a' / 2 - v a' by coordinate descent (HALS: Cichocki, Phan: Fast
/// local algorithms for large scale nonnegative matrix and tensor factorizations, 2009), `sweeps` times over the
/// columns:  a_r = max(0, a_r + (v_r - (a G)_r) / G_rr).
struct DescentOptions {
  double v_scale = 1;               // v is V(i,:) times this
  Small gram;                       // G
  std::vector<double> start_scale;  // the start is A(i,r) * start_scale[r]
  std::vector<double> end_scale;    // what is stored is a_r * end_scale[r], and that is what the sums are of
  int sweeps = 1;
};
/// \param factor, scratch must outlive what is returned
template <class T>
[[nodiscard]] std::unique_ptr<RowSolver<T>> nonnegative_descent(FactorMatrix<T>& factor, const DescentOptions& options,
                                                                RowScratch<T>& scratch, const Context& context);

/// least_squares for rows that are all there.
template <class T>
RowSums solve_rows(FactorMatrix<T>& rows, const Small& solution, const Context& context);

/// A'A.
template <class T>
[[nodiscard]] Small gram_of(const FactorMatrix<T>& rows, const Context& context);

/// Column r times scale[r], in place.
template <class T>
void scale_columns(FactorMatrix<T>& rows, const std::vector<double>& scale, const Context& context);

}  // namespace polyad::cp_als_detail
