// SPDX-License-Identifier: MIT
/// \file Where CP-ALS begins: at random, from a model, or from a sketch of the tensor.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "polyad/error.hpp"
#include "polyad/factors.hpp"
#include "solvers/cp_als/als.hpp"
#include "solvers/cp_als/gram_solve.hpp"

namespace polyad::cp_als_detail {

namespace {

/// More columns of a sketch than components wanted (Halko, Martinsson, Tropp: Finding structure with randomness, 2011,
/// section 4.2: 5 to 10).
constexpr std::uint64_t oversampling = 8;

/// Column r of `to` = |column r of `from`| or the column as it is.
template <class T>
void copy_columns(const FactorMatrix<T>& from, std::uint64_t count, bool magnitudes, FactorMatrix<T>& to) {
  for (std::uint64_t i = 0; i < to.rows(); ++i)
    for (std::uint64_t r = 0; r < count; ++r) to(i, r) = magnitudes ? std::abs(from(i, r)) : from(i, r);
}

}  // namespace

template <class T>
void Als<T>::start(std::uint64_t restart) {
  state_ = {};
  scratch_ = {};  // what a start needs comes beside it
  // What kernels kept is of other factors, and must not take the memory of what is needed; what is on a device has
  // memory of its own, and the tensor is there.
  if (context_.devices.empty()) workspace_.clear();
  dense_->replaced();
  for (std::size_t m = 0; m < order_; ++m)
    if (is_nonnegative(static_cast<int>(m)) && mttkrp_[m].rows() == 0)
      mttkrp_[m] = FactorMatrix<T>(context_, x_.dims()[m], rank_);
  state_.lambda.assign(rank_, 1.0);
  // Start k of a seed is the only start of seed + k: any of them can be had again by itself.
  Context seeded = context_;
  seeded.seed = options_.seed.value_or(context_.seed) + restart;
  // Random columns are long where modes are, and products of the squares of their lengths are too large for f32 from
  // some modes of 10,000 on: the first rows would be 0. ALS does not depend on the lengths it begins with, but descent
  // does on the scale of its start, and a ridge on all scales.
  const bool any_length = options_.nonnegative.empty() && options_.l2 == 0;
  state_.factors =
      random_factors<T>(x_.dims(), rank_, seeded, any_length ? ColumnLengths::about_1 : ColumnLengths::as_drawn);
  if (options_.start == CpStart::rsvd) start_from_sketch(seeded);
  if (options_.start == CpStart::model) start_from_model(seeded);
  for (const FactorMatrix<T>& factor : state_.factors) state_.grams.push_back(gram_of(factor, context_));
}

/// The random factors give way to those of the model where it has as many rows. Its weights go into the first free
/// mode.
template <class T>
void Als<T>::start_from_model(const Context& context) {
  const CpModel& model = *options_.initial;
  std::vector<FactorMatrix<T>> given = factors_of<T>(model, context);
  for (std::size_t m = 0; m < order_; ++m)
    if (given[m].rows() == state_.factors[m].rows()) state_.factors[m] = std::move(given[m]);
  int free = 0;
  while (is_fixed(free)) ++free;
  std::vector<double> weights = model.weights;
  for (double& w : weights) w = std::ldexp(w, -exponent_);
  scale_columns(state_.factors[static_cast<std::size_t>(free)], weights, context_);
  for (std::size_t m = 0; m < order_; ++m)
    if (is_nonnegative(static_cast<int>(m)) && !is_fixed(static_cast<int>(m)))
      for (std::uint64_t i = 0; i < state_.factors[m].rows(); ++i)
        for (std::uint64_t r = 0; r < rank_; ++r) state_.factors[m](i, r) = std::max(T{0}, state_.factors[m](i, r));
}

/// Range finder: Y = X_(n) * (Khatri-Rao product of random matrices) is an MTTKRP, so nothing dense is formed but Y
/// (dims[n] x (rank + 8)). Its leading left singular vectors Y * E * diag(1 / sqrt(eigenvalue)), with E the
/// eigenvectors of Y'Y, are the start of mode n; columns that Y does not have stay random.
template <class T>
void Als<T>::start_from_sketch(const Context& context) {
  const std::uint64_t columns = rank_ + oversampling;
  std::vector<FactorMatrix<T>> random = random_factors<T>(x_.dims(), columns, context);
  for (FactorMatrix<T>& a : random)
    for (std::uint64_t i = 0; i < a.rows(); ++i)
      for (std::uint64_t r = 0; r < columns; ++r) a(i, r) = 2 * a(i, r) - 1;
  for (std::size_t m = 0; m < order_; ++m) {
    const int mode = static_cast<int>(m);
    FactorMatrix<T> sketch(context_, x_.dims()[m], columns, "the sketch of a mode");
    mttkrp<T>(x_, std::span<const FactorMatrix<T>>(random), mode, sketch, workspace_, context_);
    scale_columns(sketch, std::vector<double>(columns, std::ldexp(1.0, -exponent_)), context_);
    SymmetricEigen eigen = eigenvectors(gram_of(sketch, context_));
    const double limit = eigen.values[0] * std::max<double>(1e-12, std::numeric_limits<T>::epsilon());
    std::uint64_t found = 0;
    for (std::uint64_t c = 0; c < columns; ++c) {
      const bool good = eigen.values[c] > limit && eigen.values[c] > 0;
      if (good && c < rank_) ++found;
      for (std::uint64_t r = 0; r < columns; ++r) eigen.vectors(r, c) *= good ? 1 / std::sqrt(eigen.values[c]) : 0;
    }
    (void)solve_rows(sketch, eigen.vectors, context_);
    copy_columns(sketch, found, is_nonnegative(mode), state_.factors[m]);
  }
  workspace_.clear();  // it was of another rank and of other factors
}

template void Als<float>::start(std::uint64_t);
template void Als<double>::start(std::uint64_t);
template void Als<float>::start_from_model(const Context&);
template void Als<double>::start_from_model(const Context&);
template void Als<float>::start_from_sketch(const Context&);
template void Als<double>::start_from_sketch(const Context&);

}  // namespace polyad::cp_als_detail
