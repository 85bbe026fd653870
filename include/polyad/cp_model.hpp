// SPDX-License-Identifier: MIT
/// \file A CP model: weights and factor matrices with labels.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "polyad/context.hpp"
#include "polyad/coo_tensor.hpp"
#include "polyad/labels.hpp"
#include "polyad/large_vector.hpp"

namespace polyad {

/// Dense matrix, row-major: one row per index of a mode, one column per component.
struct Matrix {
  std::uint64_t rows = 0;
  std::uint64_t cols = 0;
  LargeVector<double> values;  // [rows][cols]

  /// No rows.
  Matrix() = default;
  /// All zero.
  Matrix(std::uint64_t rows_, std::uint64_t cols_) : rows(rows_), cols(cols_), values(count(rows_, cols_), 0.0) {}
  /// To be filled: the entries have no value.
  [[nodiscard]] static Matrix unset(std::uint64_t rows, std::uint64_t cols) {
    Matrix a;
    a.rows = rows;
    a.cols = cols;
    a.values = LargeVector<double>(count(rows, cols));
    return a;
  }

  /// Entry of row i, column r.
  [[nodiscard]] double& operator()(std::uint64_t i, std::uint64_t r) { return values[i * cols + r]; }
  [[nodiscard]] double operator()(std::uint64_t i, std::uint64_t r) const { return values[i * cols + r]; }

 private:
  /// Of the entries; more than any vector can have, where a product would begin again at 0.
  [[nodiscard]] static std::size_t count(std::uint64_t rows, std::uint64_t cols) {
    return cols > 0 && rows > ~std::size_t{0} / cols ? ~std::size_t{0} : rows * cols;
  }
};

/// sum_r weights[r] * factors[0](:,r) o factors[1](:,r) o ...
struct CpModel {
  std::vector<double> weights;     ///< one per component
  std::vector<Matrix> factors;     ///< per mode dims[n] x rank
  std::vector<ModeLabels> labels;  ///< empty, or one per mode

  /// Number of components.
  [[nodiscard]] std::uint64_t rank() const noexcept { return weights.size(); }
  /// Number of modes.
  [[nodiscard]] int order() const noexcept { return static_cast<int>(factors.size()); }
};

/// Gives every column the 2-norm 1 and its length to the weight, which keeps its sign; no number overflows on the way.
/// Columns of zeros stay and make their weight 0. A weight that no double can hold is an Error (limit), and the model
/// then stays as it was.
void normalise(CpModel& model, const Context& context = {});

/// normalise(), then one form of signs and order whatever gave the model. No weight is negative. In every column the
/// entry of largest magnitude (the first of equal ones) is positive; where the component would then change its sign,
/// that of the last mode is negative. Components stand by falling weight, equal ones in the order they had.
void arrange(CpModel& model, const Context& context = {});

/// How well component a of one model and b of another agree.
struct ComponentMatch {
  std::uint64_t a = 0;    ///< 0-based
  std::uint64_t b = 0;    ///< 0-based
  double congruence = 0;  ///< product over modes of the cosines of the columns; 0 with a column of zeros
  /// |congruence| * (1 - |wa - wb| / max(wa, wb)), where the length w of a component is |weight| times the norms of its
  /// columns; two lengths of 0 do not differ.
  double score = 0;
  std::vector<double> cosines;  ///< per mode
};

/// Factor match score of two models.
struct ModelScore {
  double score = 0;                     ///< mean of the matches' scores over the smaller rank
  std::vector<ComponentMatch> matches;  ///< the assignment with the largest sum of |congruence|, by a
};

/// Compares models of equal dims, normalised or not; the rank may differ. The best permutation is found exactly
/// (Hungarian method). Models of other dims are an Error (usage).
[[nodiscard]] ModelScore score(const CpModel& a, const CpModel& b);

/// The model's value at one coordinate (0-based, one index per mode).
[[nodiscard]] double value_at(const CpModel& model, std::span<const std::uint64_t> at);

/// The model's values at the coordinates of a tensor: the same tensor with other values, of the same precision. Error
/// (usage) unless the dims are equal.
[[nodiscard]] CooTensor reconstruct(const CpModel& model, const CooTensor& at, const Context& context = {});

/// Gives a mode of the model the rows of other labels: row i becomes the one that has label i, and rows of labels that
/// the model does not have become 0. Returns how many those are. Without labels on either side the mode stays.
std::uint64_t align(CpModel& model, int mode, const ModeLabels& labels);

/// A row of a factor.
struct TopEntry {
  std::uint64_t index = 0;  ///< 0-based
  double value = 0;
};
/// The `count` entries of largest magnitude of a component in a mode, largest first (ties: the lower index first).
[[nodiscard]] std::vector<TopEntry> top_entries(const CpModel& model, std::uint64_t component, int mode,
                                                std::uint64_t count);
/// The same for all components of a mode, in one pass over the rows.
[[nodiscard]] std::vector<std::vector<TopEntry>> top_entries_of_mode(const CpModel& model, int mode,
                                                                     std::uint64_t count, const Context& context = {});

/// Label of an index of a mode, its number from 1 when it has none or an empty one.
[[nodiscard]] std::string label_of(const CpModel& model, int mode, std::uint64_t index);
/// Name of a mode, "mode K" (from 1) when it has none.
[[nodiscard]] std::string mode_name(const CpModel& model, int mode);

/// A model of weights 1 whose factors are uniform in [0, 1): entry (i, r) of a mode is a function of the context's
/// seed, the mode, i, r and the rank, so that any number of threads gives the same.
[[nodiscard]] CpModel random_model(std::span<const std::uint64_t> dims, std::uint64_t rank,
                                   const Context& context = {});

}  // namespace polyad
