// SPDX-License-Identifier: MIT
/// \file CP-ALS as its definition says, for small tensors: dense loops, Gaussian elimination, the residual cell by
/// cell. Shares nothing with the library but the interchange form.
#pragma once

#include <cstdint>
#include <polyad/coo_tensor.hpp>
#include <polyad/cp_model.hpp>
#include <vector>

namespace polyad::oracle {

/// ||X - M|| over every cell, zeros included.
double residual(const CooTensor& x, const CpModel& model);

/// 1 - ||X - M|| / ||X||.
double fit(const CooTensor& x, const CpModel& model);

/// Solves a * g = v for every row v of the right-hand side (g symmetric, not singular).
void solve(std::vector<std::vector<double>> g, Matrix& rows);

/// `iterations` of alternating least squares from a model of weights 1, without any normalisation.
CpModel als(const CooTensor& x, CpModel model, int iterations);

}  // namespace polyad::oracle
