// SPDX-License-Identifier: MIT
/// \file What the planner knows of a tensor: estimates from passes over the nonzeros that cost a tenth of counting
/// exactly, each made when it is first asked for.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "polyad/context.hpp"
#include "polyad/coo_tensor.hpp"

namespace polyad {

/// Estimated numbers of a tensor. The same for any number of threads and any order of the nonzeros.
class TensorSample {
 public:
  /// Keeps a reference to the tensor.
  TensorSample(const CooTensor& x, const Context& context) : x_(x), context_(context) {}

  [[nodiscard]] const CooTensor& tensor() const noexcept { return x_; }
  [[nodiscard]] const Context& context() const noexcept { return context_; }
  [[nodiscard]] int order() const noexcept { return x_.order(); }
  [[nodiscard]] double nnz() const noexcept { return static_cast<double>(x_.nnz()); }
  [[nodiscard]] double dim(int mode) const { return static_cast<double>(x_.dims[static_cast<std::size_t>(mode)]); }

  /// The number of distinct tuples of indices / 2^shift in `modes`, by the smallest values of a hash (Bar-Yossef et
  /// al., RANDOM 2002): exact below 4096 of them, above that within about 5 % (standard deviation 1.6 %).
  [[nodiscard]] double distinct(std::span<const int> modes, int shift = 0) const;
  /// What is known without looking: there are at least as many tuples as in fewer of the modes.
  [[nodiscard]] double at_least(std::span<const int> modes) const;
  /// Fibres of a mode: distinct tuples of the others.
  [[nodiscard]] double fibres(int mode) const;
  /// Whether floats can stand for the values (float_divisor): counts, ratings and prices.
  [[nodiscard]] bool values_fit_float() const;
  /// The share of the nonzeros that the largest group of 2^shift neighbouring slices of a mode has, from 4,096 of them:
  /// what one thread has to do at least where the rows of such a group belong to one.
  [[nodiscard]] double largest_share(int mode, int shift = 0) const;
  /// Nonzeros per non-empty block of side 32: how near to each other they are.
  [[nodiscard]] double nonzeros_per_block() const;

 private:
  const CooTensor& x_;
  Context context_;
  mutable std::optional<bool> values_fit_float_;
  mutable std::map<std::pair<std::uint32_t, int>, double> known_;  // by the bits of the modes and the shift
};

/// What floats have to be divided by to be the values of x, to the last bit: 1 where the values are normal floats,
/// as counts and ratings are, and all those of a tensor in f32; else a power of ten, of which all values are multiples,
/// as prices are of 1/100. Unset if none up to a million will do. A decimal of few digits is the quotient of two
/// numbers that both types hold exactly, and division rounds as reading it did.
[[nodiscard]] std::optional<double> float_divisor(const CooTensor& x, const Context& context);

/// The float that stands for a value.
[[nodiscard]] inline float float_code(double value, double divisor) {
  constexpr double ones = 0x1.8p52;  // added, it leaves no room for fractions: rounding without a call
  return static_cast<float>(divisor == 1 ? value : (value * divisor + ones) - ones);
}

}  // namespace polyad
