// SPDX-License-Identifier: MIT
/// \file Numbers in text, read eight digits at a time and written without detours. The functions read up to 8 bytes
/// past the number: callers pad their buffers.
#pragma once

#include <fast_float/fast_float.h>
#include <fmt/compile.h>
#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <limits>

namespace polyad::io {

/// Bytes that must be readable after the end of any text given to these functions.
inline constexpr std::size_t text_padding = 128;

inline constexpr double powers_of_ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                           1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

inline constexpr std::uint64_t integer_powers_of_ten[] = {1,      10,      100,      1000,     10000,
                                                          100000, 1000000, 10000000, 100000000};

/// Below this every integer is a T.
template <class T>
inline constexpr std::uint64_t exact_integers =
    std::uint64_t{1} << static_cast<unsigned>(std::numeric_limits<T>::digits);

/// The value of 8 digits in v, the first in the lowest byte; bytes of zero count as digits 0.
inline std::uint64_t eight_digits_value(std::uint64_t v) {
  v = (v & 0x0F0F0F0F0F0F0F0FU) * 2561 >> 8U;
  v = (v & 0x00FF00FF00FF00FFU) * 6553601 >> 16U;
  return (v & 0x0000FFFF0000FFFFU) * 42949672960001U >> 32U;
}

/// Up to 8 digits at p. Returns how many (0..8) and sets x to their value: one load and three multiplications, without
/// a branch per digit (a loop over the digits mispredicts at the end of almost every number).
inline unsigned eight_digits(const char* p, std::uint64_t& x) {
  std::uint64_t v = 0;
  std::memcpy(&v, p, 8);
  if constexpr (std::endian::native == std::endian::big) v = __builtin_bswap64(v);
  // The top bit of a byte is set when it is no digit; borrows and carries only spoil the bytes after the first such.
  const std::uint64_t other = ((v + 0x4646464646464646U) | (v - 0x3030303030303030U)) & 0x8080808080808080U;
  const auto n = static_cast<unsigned>(std::countr_zero(other)) / 8;  // 8 when there is none
  if (n == 0) {
    x = 0;
    return 0;
  }
  x = eight_digits_value(v << (64 - 8 * n));
  return n;
}

/// An unsigned integer at p of at most 19 digits, so that it fits 64 bits. Returns the end, or null when there is none
/// or it is longer.
inline const char* parse_index(const char* p, std::uint64_t& x) {
  unsigned n = eight_digits(p, x);
  if (n < 8) return n == 0 ? nullptr : p + n;
  p += 8;
  std::uint64_t y = 0;
  n = eight_digits(p, y);
  x = x * integer_powers_of_ten[n] + y;
  if (n < 8) return p + n;
  p += 8;
  n = eight_digits(p, y);
  if (n > 3) return nullptr;
  x = x * integer_powers_of_ten[n] + y;
  return p + n;
}

/// Is a digit of the mantissa other than 0?
inline bool has_nonzero_digit(const char* begin, const char* end) {
  for (; begin < end && *begin != 'e' && *begin != 'E'; ++begin)
    if (*begin >= '1' && *begin <= '9') return true;
  return false;
}

/// A finite decimal number at p that T can hold, correctly rounded. Returns the end, or null when it is none.
template <std::floating_point T>
inline const char* parse_value(const char* p, const char* end, T& value) {
  const char* q = p;
  const bool negative = *q == '-';
  q += negative ? 1 : 0;
  std::uint64_t whole = 0;
  std::uint64_t mantissa = 0;
  const unsigned n = eight_digits(q, whole);
  // Clinger's fast path: mantissa and power of ten both exact, one correctly rounded division.
  if (n > 0 && n < 8) {
    q += n;
    unsigned decimals = 0;
    if (*q == '.') {
      decimals = eight_digits(q + 1, mantissa);
      if (decimals < 8) {
        q += 1 + decimals;
        mantissa += whole * integer_powers_of_ten[decimals];
      }
    } else {
      mantissa = whole;
    }
    if (decimals < 8 && mantissa < exact_integers<T> && (*q == '\n' || *q == ' ' || *q == '\r' || *q == '\t')) {
      const T magnitude = static_cast<T>(mantissa) / static_cast<T>(powers_of_ten[decimals]);
      value = negative ? -magnitude : magnitude;
      return q;
    }
  }
  q = p + (*p == '+' ? 1 : 0);
  if (q != p && (*q == '+' || *q == '-')) return nullptr;
  const auto result = fast_float::from_chars(q, end, value);
  if (result.ec != std::errc() || !std::isfinite(value)) return nullptr;
  if (value == 0 && has_nonzero_digit(q, result.ptr)) return nullptr;  // too small for T: not silently a zero
  return result.ptr;
}

/// The four digits of each number below 10^4, the first in the lowest byte, as numbers 0 to 9.
inline constexpr auto four_digits = [] {
  std::array<std::uint32_t, 10000> table = {};
  for (std::uint32_t x = 0; x < 10000; ++x)
    table[x] = x / 1000 | x / 100 % 10 << 8U | x / 10 % 10 << 16U | x % 10 << 24U;
  return table;
}();

/// The 8 digits of x < 10^8, likewise. Two look-ups are half the time of computing them.
inline std::uint64_t digits_of(std::uint64_t x) {
  return four_digits[x / 10000] | static_cast<std::uint64_t>(four_digits[x % 10000]) << 32U;
}

/// Writes 8 bytes, the lowest first.
inline void store_word(char* p, std::uint64_t v) {
  if constexpr (std::endian::native == std::endian::big) v = __builtin_bswap64(v);
  std::memcpy(p, &v, 8);
}

/// Writes an unsigned integer at p (room for 20 bytes) and returns the end.
inline char* format_index(char* p, std::uint64_t x) {
  constexpr std::uint64_t zeros = 0x3030303030303030U;
  if (x < 100'000'000) {
    const std::uint64_t digits = digits_of(x);
    // Leading zeros are the low bytes; of 0 itself the last digit stays.
    const auto leading = static_cast<unsigned>(std::countr_zero(digits | std::uint64_t{1} << 56U)) / 8;
    store_word(p, (digits | zeros) >> (8 * leading));
    return p + (8 - leading);
  }
  const fmt::format_int digits(x);
  std::memcpy(p, digits.data(), digits.size());
  return p + digits.size();
}

/// Writes the shortest decimal that reads back to the same bits at p (room for 40 bytes) and returns the end.
template <std::floating_point T>
inline char* format_value(char* p, T value) {
  // Most real data are integers or have few decimals: value * 10^4 is then an integer k with k / 10^4 == value, and the
  // decimal k / 10^4 without trailing zeros is unique. Several times as fast as the general algorithm.
  const double scaled = static_cast<double>(value) * 1e4;
  constexpr double most = std::same_as<T, double> ? 1e15 : 1e7;
  if (std::abs(scaled) < most && scaled != 0) {
    const auto k = static_cast<std::int64_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
    if (static_cast<T>(static_cast<double>(k) / 1e4) == value) {
      *p = '-';
      p += k < 0 ? 1 : 0;
      const auto magnitude = static_cast<std::uint64_t>(k < 0 ? -k : k);
      p = format_index(p, magnitude / 10000);
      const std::uint64_t rest = magnitude % 10000;
      if (rest == 0) return p;
      const std::uint64_t digits = four_digits[rest];
      const auto trailing = static_cast<unsigned>(std::countl_zero(digits << 32U)) / 8;
      *p++ = '.';
      store_word(p, digits | 0x30303030U);
      return p + (4 - trailing);
    }
  }
  return fmt::format_to(p, FMT_COMPILE("{}"), value);
}

}  // namespace polyad::io
