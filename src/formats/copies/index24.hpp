// SPDX-License-Identifier: MIT
/// \file An index of three bytes: modes of up to 16.8 million indices, which are most of the long ones.
#pragma once

#include <array>
#include <cstdint>

namespace polyad {

/// The low byte first.
class Index24 {
 public:
  /// Indices that it tells apart.
  static constexpr std::uint64_t count = std::uint64_t{1} << 24U;

  Index24() = default;
  constexpr explicit Index24(std::uint64_t i)
      : bytes_{static_cast<std::uint8_t>(i), static_cast<std::uint8_t>(i >> 8U), static_cast<std::uint8_t>(i >> 16U)} {}

  constexpr operator std::uint32_t() const {
    return bytes_[0] | std::uint32_t{bytes_[1]} << 8U | std::uint32_t{bytes_[2]} << 16U;
  }

 private:
  std::array<std::uint8_t, 3> bytes_;
};
static_assert(sizeof(Index24) == 3);

}  // namespace polyad
