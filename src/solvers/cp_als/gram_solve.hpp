// SPDX-License-Identifier: MIT
/// \file The small symmetric systems of CP-ALS.
#pragma once

#include <cstdint>
#include <vector>

#include "solvers/cp_als/row_pass.hpp"

namespace polyad::cp_als_detail {

/// The pseudo-inverse of a Gram matrix.
struct PseudoInverse {
  Small matrix;
  std::uint64_t truncated = 0;  // directions that were left out because the Gram matrix says nothing about them
};

/// pinv(gram + ridge * I). Scaled to a unit diagonal first. Cholesky where the condition allows it; otherwise by
/// eigenvalues, those below `smallest` times the largest left out (they would turn rounding into components). A zero
/// on the diagonal, a component that vanished, gives a zero row and column.
[[nodiscard]] PseudoInverse pseudo_inverse(const Small& gram, double ridge, double smallest);

/// Eigenvalues, falling, and eigenvectors (columns of `vectors`) of a symmetric matrix.
struct SymmetricEigen {
  std::vector<double> values;
  Small vectors;
};
[[nodiscard]] SymmetricEigen eigenvectors(const Small& symmetric);

}  // namespace polyad::cp_als_detail
