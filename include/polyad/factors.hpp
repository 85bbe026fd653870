// SPDX-License-Identifier: MIT
/// \file Factor matrices as the kernels want them: from a model, at random, and back.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "polyad/context.hpp"
#include "polyad/cp_model.hpp"
#include "polyad/matrix.hpp"

namespace polyad {

/// The factors of a model in the wanted precision. The weights are left out. A number that T cannot hold is an Error.
template <class T>
[[nodiscard]] std::vector<FactorMatrix<T>> factors_of(const CpModel& model, const Context& context = {});

/// How long the columns of random factors are.
enum class ColumnLengths : std::uint8_t {
  as_drawn,  ///< about sqrt(rows / 3): entries are uniform in [0, 1)
  about_1,   ///< the same numbers times a power of two
};

/// The factors of random_model(), rounded to T, without the model in between.
template <class T>
[[nodiscard]] std::vector<FactorMatrix<T>> random_factors(std::span<const std::uint64_t> dims, std::uint64_t rank,
                                                          const Context& context = {},
                                                          ColumnLengths lengths = ColumnLengths::as_drawn);

/// A factor matrix without its padding.
template <class T>
[[nodiscard]] Matrix matrix_of(const FactorMatrix<T>& factor, const Context& context = {});

/// Frobenius norm, summed in the order of the rows.
template <class T>
[[nodiscard]] double norm(const FactorMatrix<T>& factor);

}  // namespace polyad
