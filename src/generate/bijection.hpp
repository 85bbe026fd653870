// SPDX-License-Identifier: MIT
/// \file A random permutation of [0, n) in a few words of memory, for n of any size.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "generate/random.hpp"

namespace polyad::portable {

/// A permutation of {0, ..., n-1} chosen by a key. A Feistel network permutes the 2^b >= n words of b bits; numbers
/// that leave [0, n) are sent through again until they are back (cycle walking, Black and Rogaway, CT-RSA 2002), which
/// takes fewer than two turns on average because 2^b < 2n. Good enough to shuffle, not to encrypt.
class Bijection {
 public:
  /// \param n at least 1, at most 2^63
  constexpr Bijection(std::uint64_t n, Key key) noexcept
      : n_(n), low_bits_(static_cast<unsigned>(std::bit_width(n - 1)) / 2U) {
    const unsigned high_bits = static_cast<unsigned>(std::bit_width(n - 1)) - low_bits_;
    low_mask_ = (std::uint64_t{1} << low_bits_) - 1;
    high_mask_ = (std::uint64_t{1} << high_bits) - 1;
    Random random(key);
    for (Round& r : rounds_) r = {random.next() | 1U, random.next()};
  }

  /// The image of x < n.
  [[nodiscard]] constexpr std::uint64_t operator()(std::uint64_t x) const noexcept {
    do {
      std::uint64_t low = x & low_mask_;
      std::uint64_t high = x >> low_bits_;
      for (std::size_t r = 0; r < rounds_.size(); r += 2) {
        low ^= rounds_[r](high) & low_mask_;
        high ^= rounds_[r + 1](low) & high_mask_;
      }
      x = high << low_bits_ | low;
    } while (x >= n_);
    return x;
  }

 private:
  // Multiply-shift hashing of a half (at most 32 bits): the upper half of the product depends on every bit.
  struct Round {
    std::uint64_t factor = 1;
    std::uint64_t offset = 0;
    [[nodiscard]] constexpr std::uint64_t operator()(std::uint64_t half) const noexcept {
      return (half * factor + offset) >> 32U;
    }
  };

  std::uint64_t n_;
  unsigned low_bits_;
  std::uint64_t low_mask_ = 0;
  std::uint64_t high_mask_ = 0;
  std::array<Round, 6> rounds_;
};

}  // namespace polyad::portable
