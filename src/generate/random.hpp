// SPDX-License-Identifier: MIT
/// \file Random numbers by counting: draw k of a stream is a function of (seed, purpose, stream, k) and of nothing
/// else, so that any thread can make any part of a sequence and every machine makes the same one.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace polyad::portable {

/// Four words that look independent for every value of the counter.
using Block = std::array<std::uint32_t, 4>;

/// Of Philox4x32-10: what words are multiplied with, and what its keys grow by in a round.
inline constexpr int philox_rounds = 10;
inline constexpr std::array<std::uint32_t, 2> philox_factors = {0xD2511F53U, 0xCD9E8D57U};
inline constexpr std::array<std::uint32_t, 2> philox_steps = {0x9E3779B9U, 0xBB67AE85U};

/// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3, SC11, section 4.3).
[[nodiscard]] constexpr Block philox(Block x, std::array<std::uint32_t, 2> key) noexcept {
  for (int round = 0; round < philox_rounds; ++round) {
    const std::uint64_t a = std::uint64_t{philox_factors[0]} * x[0];
    const std::uint64_t b = std::uint64_t{philox_factors[1]} * x[2];
    x = {static_cast<std::uint32_t>(b >> 32U) ^ x[1] ^ key[0], static_cast<std::uint32_t>(b),
         static_cast<std::uint32_t>(a >> 32U) ^ x[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += philox_steps[0];
    key[1] += philox_steps[1];
  }
  return x;
}

/// A bijection of 64-bit words without visible structure (the finaliser of SplitMix64).
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t x) noexcept {
  x += 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31U);
}

/// floor(a * b / 2^64).
[[nodiscard]] constexpr std::uint64_t multiply_high(std::uint64_t a, std::uint64_t b) noexcept {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(a) * b) >> 64U);
}

/// [0, 2^64) to [0, 1): the upper 53 bits, exactly.
[[nodiscard]] constexpr double to_unit(std::uint64_t x) noexcept { return static_cast<double>(x >> 11U) * 0x1.0p-53; }

/// What the numbers are for. Two keys of different seed, purpose or part give unrelated numbers; a purpose is a name
/// ("cp-als/start"), so that no list of numbers has to be kept.
struct Key {
  std::uint64_t value = 0;

  constexpr Key(std::uint64_t seed, std::string_view purpose, std::uint64_t part = 0) noexcept {
    std::uint64_t name = 0xCBF29CE484222325U;  // FNV-1a
    for (const char c : purpose) name = (name ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
    value = mix(mix(mix(seed) ^ name) ^ part);
  }
};

/// Block number `position` of a stream.
[[nodiscard]] constexpr Block block_at(Key key, std::uint64_t stream, std::uint64_t position) noexcept {
  return philox({static_cast<std::uint32_t>(position), static_cast<std::uint32_t>(position >> 32U),
                 static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32U)},
                {static_cast<std::uint32_t>(key.value), static_cast<std::uint32_t>(key.value >> 32U)});
}

/// The numbers of one stream, one after the other.
class Random {
 public:
  /// Stands before draw 0.
  constexpr explicit Random(Key key, std::uint64_t stream = 0) noexcept : key_(key), stream_(stream) {}

  /// The next draw is number k: random access, so that threads can share a stream.
  constexpr void seek(std::uint64_t k) noexcept {
    draw_ = k;
    if (k % 2 != 0) refill();
  }

  /// 64 random bits.
  constexpr std::uint64_t next() noexcept {
    if (draw_ % 2 == 0) refill();
    return pair_[draw_++ % 2];
  }
  /// Uniform in [0, 1), a multiple of 2^-53.
  constexpr double uniform() noexcept { return to_unit(next()); }
  /// Uniform in {0, ..., n-1} up to a bias of n / 2^64; always one draw, so that draws can be counted.
  constexpr std::uint64_t below(std::uint64_t n) noexcept { return multiply_high(next(), n); }

 private:
  constexpr void refill() noexcept {
    const Block b = block_at(key_, stream_, draw_ / 2);
    pair_ = {b[0] | std::uint64_t{b[1]} << 32U, b[2] | std::uint64_t{b[3]} << 32U};
  }

  Key key_;
  std::uint64_t stream_;
  std::uint64_t draw_ = 0;
  std::array<std::uint64_t, 2> pair_ = {};  // the block of draw_
};

}  // namespace polyad::portable
