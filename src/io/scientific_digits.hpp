// SPDX-License-Identifier: MIT
/// \file Numbers as %.16e writes them, from one multiplication by a power of ten instead of big integers.
#pragma once

#include <cstddef>

namespace polyad::io {

/// Bytes that format_17_digits may write to: the 24 of -1.2345678901234567e-300 and a few after its end.
inline constexpr std::size_t room_for_17_digits = 32;

/// Writes `value` at `to` (room for room_for_17_digits) with 17 significant digits, which read back to the same bits,
/// and returns the end. The bytes are those of std::to_chars(value, scientific, 16), also of -0, subnormals, infinities
/// and NaN: the exact value rounded to the nearest, ties to the even digit.
///
/// With value = M 2^(E-63), 2^63 <= M < 2^64, and k = floor(log10(value)) the digits are those of the integer next to
///
///   T = value 10^(16-k) = M 10^(16-k) 2^(E-63),   10^16 <= T < 10^17.
///
/// A table has P = floor(10^s 2^(127-e)) of 128 bits, e = floor(log2(10^s)), for every s = 16-k. The upper 128 bits of
/// the 192 of M P, H = floor(M P / 2^64), are T too small by less than two units of the last of them:
///
///   H <= T 2^(126-E-e) < H + 2.
///
/// T has at most 57 bits before its point, so at least 70 of H are after it and T lies in [F, F + 2 2^-64) for F = H
/// cut off 64 bits after the point. Only where the fraction of F is a half or 2^-64 less does this leave the rounding
/// open. Where P is exact (0 <= s <= 55: 5^55 < 2^128) the 192 bits decide, and these are all ties: 2 T = 2 10^s value
/// is odd and above 2^54, more than value has bits, so that s >= 1, and 5^s divides it, so that s <= 24. The rest
/// std::to_chars writes; a search by continued fractions finds no double there but +-0x1.3de005bd620dfp+216.
[[nodiscard]] char* format_17_digits(char* to, double value);

}  // namespace polyad::io
