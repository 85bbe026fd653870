// SPDX-License-Identifier: MIT
/// \file What a format is asked before it is built: the time of MTTKRPs in all modes in turn, and its size. The model
/// counts rows: where a row lies decides what reading it or adding to it costs (RowCost), and how near nonzeros are to
/// each other decides how often it has to come from there. docs/design/0006-planner.md has the formulas beside
/// measurements.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/row_cost.hpp"
#include "core/tensor_sample.hpp"
#include "polyad/machine.hpp"
#include "polyad/matrix.hpp"

namespace polyad {

/// Bytes of the second-level cache; the same for every machine where the same bits are promised.
[[nodiscard]] inline double second_cache(const Context& context) {
  return context.deterministic ? static_cast<double>(1U << 20U) : static_cast<double>(second_cache_bytes());
}

/// Copies with indices of 24 or 32 bits request rows of factors from here on; those of smaller ones come from the
/// caches as fast as they are used.
inline constexpr std::uint64_t out_of_reach = std::uint64_t{4} << 20U;
/// Rows of larger factors are requested twice where the copy has indices of 24 bits; with those of 16 bits once, with
/// wider ones twice, whatever their size.
inline constexpr std::uint64_t out_of_caches = std::uint64_t{24} << 20U;

/// Whether copies with indices of 16 bits request the rows of all their factors, which have so many bytes: where the
/// second-level cache holds little of them. Two tables together, f32, rank 16, nonzeros anywhere, ns of a thread
/// without and with requests (Zen 5, 1 MB of that cache, a throwaway loop): 0.5 MB 0.80 and 0.86, 1 MB 0.96 and 0.93, 2
/// MB 1.14 and 0.96, 3.75 MB 1.21 and 0.99. Of 1.4 to 2.6 MB on nell2, where one of two rows is the one before, 1.05 of
/// the time; of twice that 0.90.
[[nodiscard]] inline bool requests_rows(double bytes, const Context& context) {
  return bytes >= 2.5 * second_cache(context);
}

/// What rows from memory cost of what the calibration, which draws rows evenly, says: copies of deli took 0.81 (f32)
/// and 0.76 (f64) of their estimate (Zen 5).
inline constexpr double frequent_rows_are_near = 0.85;

/// The question.
struct EstimateRequest {
  const TensorSample& sample;
  std::uint64_t rank = 16;
  const RowCost& cost;
  int threads = 1;
  /// Formats that are certainly larger need not be estimated: they may answer with that size alone.
  double most_bytes = std::numeric_limits<double>::infinity();

  [[nodiscard]] double row_bytes() const {
    return static_cast<double>(padded_columns(rank) * bytes_of(sample.tensor().precision()));
  }
  [[nodiscard]] double lines() const { return std::max(1.0, row_bytes() / 64); }
  [[nodiscard]] double value_bytes() const { return static_cast<double>(bytes_of(sample.tensor().precision())); }
  [[nodiscard]] double index_bytes() const { return static_cast<double>(bytes_of(width_for(sample.tensor().dims))); }

  /// What rows that are not requested ahead cost of RowCost::pair, out of so many bytes.
  [[nodiscard]] double among_streams(double bytes) const {
    return bytes <= second_cache(sample.context()) ? 1 : cost.among_streams;
  }

  /// Reading a row of a mode's factor among other work (RowCost::reading_among).
  [[nodiscard]] double reading(int mode) const { return cost.reading_among(sample.dim(mode) * row_bytes(), lines()); }
  /// A row of a mode among those that a nonzero of a copy sorted by mode n multiplies (formats/copies). Of indices of
  /// 16 bits the rows of all modes are requested ahead or none, of wider ones those of long factors.
  [[nodiscard]] double multiplying(int mode, int n) const {
    double inputs = 0;
    bool narrow = true;  // indices of 16 bits
    for (int m = 0; m < sample.order(); ++m) {
      if (m == n) continue;
      inputs += sample.dim(m) * row_bytes();
      narrow &= sample.dim(m) <= 65536;
    }
    const double bytes = bytes_between_uses(mode, n);
    const double table = sample.dim(mode) * row_bytes();
    if (narrow && requests_rows(inputs, sample.context())) return cost.reading_alone(bytes, lines(), 1, 0);
    if (!narrow && table >= out_of_caches) return frequent_rows_are_near * cost.reading_alone(bytes, lines(), 1, 2);
    if (!narrow && table >= out_of_reach) return cost.reading_alone(bytes, lines(), 1, 1);
    return cost.multiplying(bytes, lines()) * among_streams(bytes);
  }
  /// Adding to a row of its output.
  [[nodiscard]] double adding(int mode) const { return cost.adding_among(sample.dim(mode) * row_bytes(), lines()); }
  /// Where every nonzero takes a row of each mode but `without` (-1: of all), what lies between two uses of a row of
  /// `mode`, itself included: as many rows of every mode as it has itself, or all of theirs. Caches hold that or not,
  /// whatever the size of a single table: with two tables of 3 MB rows come from where 6 MB lie.
  [[nodiscard]] double bytes_between_uses(int mode, int without) const {
    double rows = 0;
    for (int m = 0; m < sample.order(); ++m)
      if (m != without) rows += std::min(sample.dim(mode), sample.dim(m));
    return rows * row_bytes();
  }
  /// The same where nonzeros follow a line that stays in boxes, and boxes of boxes (ALTO, Morton order): a box whose
  /// nonzeros use every row of it once is left before its rows are used again. Of N equal modes of length I these are
  /// (I / nnz^(1/N))^(N/(N-1)) nonzeros: 3,500 of 10 million in a cube of 50,000; the power of two from there on is
  /// taken.
  [[nodiscard]] double bytes_between_uses_along_line() const {
    for (double side = 1;; side *= 2) {
      double nonzeros = sample.nnz();
      double rows = 0;
      bool whole = true;
      for (int m = 0; m < sample.order(); ++m) {
        const double here = std::min(side, std::max(1.0, sample.dim(m)));
        nonzeros *= here / std::max(1.0, sample.dim(m));
        rows += here;
        whole &= side >= sample.dim(m);
      }
      if (whole || nonzeros >= side) return rows * row_bytes();
    }
  }
};

/// Rows of a mode, one for every nonzero, which come from `between` bytes but for the first use of each: that comes
/// from where the whole table lies. Along a line, with 2.4 million rows for 10 million nonzeros (darpa), that is a
/// quarter of them, and half of the time.
///
/// \param reuse how often a row is used in turn \param cost_of nanoseconds of a row out of so many bytes, used so often
template <class CostOf>
[[nodiscard]] double with_first_uses(const EstimateRequest& q, int mode, double between, double reuse,
                                     const CostOf& cost_of) {
  const double table = q.sample.dim(mode) * q.row_bytes();
  if (between >= table) return cost_of(between, reuse);
  const double first = std::min(1.0, q.sample.dim(mode) / std::max(1.0, q.sample.nnz()));
  return first * cost_of(table, 1.0) + (1 - first) * cost_of(between, reuse);
}

/// The answer.
struct SweepEstimate {
  double ns = 0;  ///< MTTKRPs in all modes in turn, nanoseconds of one thread
  double build_ns =
      0;  ///< building it from coordinates, nanoseconds of one thread at the pace of RowCost::instructions
  double build_bytes =
      0;             ///< held at once while it is built, beside the coordinates; 0: its bytes and a record per nonzero
  double bytes = 0;  ///< of its arrays for all modes
  double kept = 0;   ///< bytes that its kernels keep between calls beside outputs
  bool deterministic = false;        ///< its kernels give the same bits for any number of threads in every mode
  bool repeats = false;              ///< it would be built as another format of the list: not worth trying beside it
  std::string why;                   ///< what the time is made of
  std::vector<int> leaf_modes = {};  ///< FormatOptions::leaf_modes, where the format has them
};

/// What a format that is built from SortedNonzeros holds meanwhile, beside the coordinates.
/// \param bytes of the format \param orders 1, or 2 if the nonzeros are sorted once more by another mode
[[nodiscard]] inline double bytes_from_sorted(const EstimateRequest& q, double bytes, int orders = 1) {
  int bits = 0;
  for (const std::uint64_t d : q.sample.tensor().dims) bits += std::bit_width(d == 0 ? d : d - 1);
  const double levels = q.sample.nnz();
  if (bits > 128) {  // a sorted copy of the coordinates
    const double copy = q.sample.nnz() * (q.index_bytes() * q.sample.order() + q.value_bytes());
    return orders * copy + std::max(bytes + levels, 24 * q.sample.nnz());
  }
  const double records = q.sample.nnz() * ((bits <= 64 ? 8 : 16) + q.value_bytes());
  // The sort may need room for as many records again, before anything is built from them.
  return orders * records + std::max(bytes + levels, records);
}

/// Writing the output of a mode whose rows are stored once.
[[nodiscard]] inline double stored_output_ns(const EstimateRequest& q, int mode) {
  return q.cost.streaming(q.sample.dim(mode) * q.row_bytes());
}

/// Preparing and summing an output that threads add to at any row: private copies, or, when these are larger than the
/// work (SharedOutput::affordable), every thread reads all nonzeros.
[[nodiscard]] inline double shared_output_ns(const EstimateRequest& q, int mode) {
  const double bytes = q.sample.dim(mode) * q.row_bytes();
  const double others = q.threads - 1;
  if (others * bytes / 100 <= q.sample.nnz()) return q.cost.streaming(bytes * (1 + 3 * others));
  return q.cost.streaming(bytes) + others * q.sample.nnz() * (1 + 0.5 * q.sample.order());
}

/// A loop over nonzeros for every mode: one row read for every other mode, one added to.
struct NonzeroLoops {
  double overhead = 0;      ///< nanoseconds of a nonzero beside its rows
  bool adds = true;         ///< false: nonzeros are sorted by the output mode and sums stay in registers
  bool along_line = false;  ///< nonzeros stay in boxes: where rows come from (bytes_between_uses_along_line)
  double reuse = 1;         ///< consecutive nonzeros that share a row: how often one comes from there
  int outputs = 1;          ///< private outputs that threads add to at any row: they share the last cache
};
[[nodiscard]] inline double nonzero_loops_ns(const EstimateRequest& q, const NonzeroLoops& loops) {
  const double most = loops.along_line ? q.bytes_between_uses_along_line() : std::numeric_limits<double>::infinity();
  double sum = 0;
  for (int n = 0; n < q.sample.order(); ++n) {
    const auto between = [&](int m) { return std::min(most, q.bytes_between_uses(m, loops.adds ? -1 : n)); };
    const double others = (loops.outputs - 1) * q.sample.dim(n) * q.row_bytes();
    const auto adding = [&](double bytes, double reuse) {
      return q.cost.adding_among(bytes + others, q.lines(), reuse);
    };
    const auto reading = [&](double bytes, double reuse) { return q.cost.reading_among(bytes, q.lines(), reuse); };
    double row =
        q.cost.instructions(loops.overhead) +
        (loops.adds ? with_first_uses(q, n, between(n), loops.reuse, adding) : q.cost.instructions(0.3 * q.lines()));
    for (int m = 0; m < q.sample.order(); ++m)
      if (m != n) row += with_first_uses(q, m, between(m), loops.reuse, reading);
    sum += row * q.sample.nnz() + (loops.adds ? shared_output_ns(q, n) : stored_output_ns(q, n));
  }
  return sum;
}

/// A loop over coordinates in the order they have, or what is decoded to them in so many nanoseconds a nonzero.
[[nodiscard]] inline double coordinates_ns(const EstimateRequest& q, double decode_ns = 0) {
  return nonzero_loops_ns(q, {.overhead = 0.9 + decode_ns, .outputs = q.threads});
}

/// What a nonzero costs more in loops that are not compiled for the number of inputs (RowPass: more than three).
/// Without it copies and tiles were estimated at 0.45 of their time on vast.
[[nodiscard]] inline double many_inputs_ns(const EstimateRequest& q) {
  const double inputs = q.sample.order() - 1;
  return inputs > 3 ? 0.65 * inputs : 0;
}

/// A loop over nonzeros sorted by mode n in the plainest form (formats/copies), with so many rows of the output: per
/// row a branch that is not foreseen, unless rows of one length come together, which saves 3 ns and more. The 0.2 ns of
/// a nonzero were 0.5: 24 ms for a mode of nell2 that takes 18.
[[nodiscard]] inline double sorted_copy_ns(const EstimateRequest& q, int n, double rows, bool by_length) {
  double row = q.cost.instructions(0.2 + many_inputs_ns(q));
  for (int m = 0; m < q.sample.order(); ++m)
    if (m != n) row += q.multiplying(m, n);
  return q.sample.nnz() * row + q.cost.instructions((by_length ? 1 : 4) * rows) + stored_output_ns(q, n);
}

/// How often a row is used again soon where nonzeros follow a line through the tensor (ALTO, Morton order).
[[nodiscard]] inline double reuse_along_line(const TensorSample& sample) {
  return std::cbrt(std::max(1.0, sample.nonzeros_per_block()));
}

}  // namespace polyad
