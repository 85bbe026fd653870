// SPDX-License-Identifier: MIT
/// \file What the planner knows of a tensor: estimates from passes over the nonzeros that cost a tenth of counting
/// exactly, each made when it is first asked for.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "core/narrow_values.hpp"
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
  /// Indices of a mode that occur. Of modes that are not much longer than there are nonzeros, all of them.
  [[nodiscard]] double occurring(int mode) const;
  /// Fibres of a mode: distinct tuples of the others.
  [[nodiscard]] double fibres(int mode) const;
  /// The narrowest code of the values.
  [[nodiscard]] const ValueCode& value_code() const;
  /// The share of the nonzeros that the largest group of 2^shift neighbouring slices of a mode has, from 4,096 of them:
  /// what one thread has to do at least where the rows of such a group belong to one.
  [[nodiscard]] double largest_share(int mode, int shift = 0) const;
  /// Nonzeros per non-empty block of side 32: how near to each other they are.
  [[nodiscard]] double nonzeros_per_block() const;

 private:
  const CooTensor& x_;
  Context context_;
  mutable std::optional<ValueCode> value_code_;
  mutable std::map<std::pair<std::uint32_t, int>, double> known_;  // by the bits of the modes and the shift
};

}  // namespace polyad
