// SPDX-License-Identifier: MIT
/// \file A CP model: weights and factor matrices with labels.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "polyad/context.hpp"
#include "polyad/labels.hpp"

namespace polyad {

/// Dense matrix, row-major: one row per index of a mode, one column per component.
struct Matrix {
  std::uint64_t rows = 0;
  std::uint64_t cols = 0;
  std::vector<double> values;  // [rows][cols]

  /// No rows.
  Matrix() = default;
  /// All zero.
  Matrix(std::uint64_t rows_, std::uint64_t cols_) : rows(rows_), cols(cols_), values(rows_ * cols_) {}

  /// Entry of row i, column r.
  [[nodiscard]] double& operator()(std::uint64_t i, std::uint64_t r) { return values[i * cols + r]; }
  [[nodiscard]] double operator()(std::uint64_t i, std::uint64_t r) const { return values[i * cols + r]; }
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

/// A model of weights 1 whose factors are uniform in [0, 1): entry (i, r) of a mode is a function of the context's
/// seed, the mode, i, r and the rank, so that any number of threads gives the same.
[[nodiscard]] CpModel random_model(std::span<const std::uint64_t> dims, std::uint64_t rank,
                                   const Context& context = {});

}  // namespace polyad
