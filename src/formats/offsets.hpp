// SPDX-License-Identifier: MIT
/// \file Where groups begin: the pointer arrays of the compressed formats.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>

#include "polyad/buffer.hpp"
#include "polyad/context.hpp"

namespace polyad {

/// Offsets in 32 bits as long as all of them fit, else in 64. Reading one asks for the width, which costs nothing
/// beside what is done with it; loops over many take visit().
class Offsets {
 public:
  /// None.
  Offsets() = default;
  /// `count` offsets (0 at first), none above `largest`.
  Offsets(const Context& context, std::uint64_t count, std::uint64_t largest, std::string_view purpose) {
    if (largest <= std::numeric_limits<std::uint32_t>::max()) {
      narrow_ = Buffer<std::uint32_t>(context, count, purpose);
    } else {
      wide_ = Buffer<std::uint64_t>(context, count, purpose);
    }
  }

  /// Bytes of one offset.
  [[nodiscard]] static constexpr std::uint64_t width_of(std::uint64_t largest) {
    return largest <= std::numeric_limits<std::uint32_t>::max() ? 4 : 8;
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return narrow_.size() + wide_.size(); }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return narrow_.bytes() + wide_.bytes(); }
  [[nodiscard]] std::uint64_t operator[](std::uint64_t i) const noexcept {
    return wide_.empty() ? narrow_[i] : wide_[i];
  }
  void set(std::uint64_t i, std::uint64_t offset) noexcept { fill(i, i + 1, offset); }
  /// Sets offsets begin .. end.
  void fill(std::uint64_t begin, std::uint64_t end, std::uint64_t offset) noexcept {
    if (wide_.empty()) {
      std::fill(narrow_.data() + begin, narrow_.data() + end, static_cast<std::uint32_t>(offset));
    } else {
      std::fill(wide_.data() + begin, wide_.data() + end, offset);
    }
  }

  /// Calls f with the array in its own type.
  template <class F>
  decltype(auto) visit(F&& f) const {
    return wide_.empty() ? f(narrow_.data()) : f(wide_.data());
  }

  /// How many groups there are: one less than offsets.
  [[nodiscard]] std::uint64_t groups() const noexcept { return size() == 0 ? 0 : size() - 1; }
  /// What lies in group i.
  [[nodiscard]] std::uint64_t count(std::uint64_t i) const noexcept { return (*this)[i + 1] - (*this)[i]; }
  /// The group that item `at` lies in; `at` is below the last offset.
  [[nodiscard]] std::uint64_t group_of(std::uint64_t at) const { return group_after(0, at); }
  /// The same for an item of group `from` or a later one: fast when it is near.
  [[nodiscard]] std::uint64_t group_after(std::uint64_t from, std::uint64_t at) const {
    std::uint64_t step = 1;
    std::uint64_t low = from;  // (*this)[low] <= at
    while (low + step < groups() && (*this)[low + step] <= at) {
      low += step;
      step *= 2;
    }
    std::uint64_t high = std::min(low + step, groups());  // (*this)[high] > at, or there is none
    while (high - low > 1) {
      const std::uint64_t middle = low + (high - low) / 2;
      ((*this)[middle] <= at ? low : high) = middle;
    }
    return low;
  }

 private:
  Buffer<std::uint32_t> narrow_;
  Buffer<std::uint64_t> wide_;
};

}  // namespace polyad
