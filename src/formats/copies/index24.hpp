// SPDX-License-Identifier: MIT
/// \file An index of three bytes: modes of up to 16.8 million indices, which are most of the long ones.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

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

/// Element z of an array of indices.
template <class Index>
[[nodiscard]] inline std::uint64_t index_at(const Index* array, std::uint64_t z) {
  return array[z];
}
/// Three bytes out of four: one load in place of two or three, on which loops over nonzeros spend a third of their
/// time. The array has an element behind the last one that is asked for.
[[nodiscard]] inline std::uint64_t index_at(const Index24* array, std::uint64_t z) {
  if constexpr (std::endian::native != std::endian::little) return array[z];
  std::uint32_t four = 0;
  std::memcpy(&four, reinterpret_cast<const std::byte*>(array) + 3 * z, sizeof four);
  return four & (Index24::count - 1);
}

}  // namespace polyad
