// SPDX-License-Identifier: MIT
#include "io/scientific_digits.hpp"

#include <array>
#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "io/text_numbers.hpp"

namespace polyad::io {

namespace {

__extension__ using Wide128 = unsigned __int128;

constexpr int least_ten_power = -323;  // compared with the least subnormals
constexpr int most_ten_power = 340;    // 16 + 324: these multiplied
constexpr int most_exact_ten_power = 55;

/// floor(log10(2^e)), |e| < 1100.
constexpr int log10_of_two_power(int e) { return (e * 78913) >> 18; }

/// floor(log2(10^s)), |s| < 1100.
constexpr int log2_of_ten_power(int s) { return (s * 217706) >> 16; }

/// An integer of 960 bits, the lowest word first. Powers of ten have the bits of powers of five: 5^340 has 790, and
/// 2^959 / 5^323 still 210 before the point.
class PowerOfFive {
 public:
  constexpr explicit PowerOfFive(std::size_t bit) { words_[bit / 64] = std::uint64_t{1} << bit % 64; }

  constexpr void multiply() {
    std::uint64_t carry = 0;
    for (std::uint64_t& word : words_) {
      const Wide128 x = static_cast<Wide128>(word) * 5 + carry;
      word = static_cast<std::uint64_t>(x);
      carry = static_cast<std::uint64_t>(x >> 64U);
    }
  }

  /// Rounds down; floor(floor(x / 5) / 5) = floor(x / 25), so that many divisions round no more than one does.
  constexpr void divide() {
    std::uint64_t rest = 0;
    for (std::size_t i = words_.size(); i-- > 0;) {
      const Wide128 x = static_cast<Wide128>(rest) << 64U | words_[i];
      words_[i] = static_cast<std::uint64_t>(x / 5);
      rest = static_cast<std::uint64_t>(x % 5);
    }
  }

  /// Its bit `highest`, the highest that is set, and the 127 below.
  [[nodiscard]] constexpr Wide128 upper_bits(int highest) const {
    if (word_at(highest) != 1) throw "log2_of_ten_power is wrong";  // does not compile as it is a constant
    return static_cast<Wide128>(word_at(highest - 63)) << 64U | word_at(highest - 127);
  }

 private:
  /// The 64 bits from `bit` up.
  [[nodiscard]] constexpr std::uint64_t word_at(int bit) const {
    const auto word = [&](int i) { return i < 0 || i >= 15 ? 0 : words_[static_cast<std::size_t>(i)]; };
    const int i = bit >> 6;
    const auto shift = static_cast<unsigned>(bit & 63);
    return shift == 0 ? word(i) : word(i) >> shift | word(i + 1) << (64 - shift);
  }

  std::array<std::uint64_t, 15> words_ = {};
};

/// The 128 upper bits of each power of ten, the first of them set, what follows cut off.
constexpr auto ten_powers = [] {
  std::array<Wide128, most_ten_power - least_ten_power + 1> table = {};
  PowerOfFive five(0);
  for (int s = 0; s <= most_ten_power; ++s, five.multiply())
    table[static_cast<std::size_t>(s - least_ten_power)] = five.upper_bits(log2_of_ten_power(s) - s);
  PowerOfFive inverse(959);
  for (int s = -1; s >= least_ten_power; --s) {
    inverse.divide();
    table[static_cast<std::size_t>(s - least_ten_power)] = inverse.upper_bits(959 + log2_of_ten_power(s) - s);
  }
  return table;
}();

Wide128 ten_power(int s) { return ten_powers[static_cast<std::size_t>(s - least_ten_power)]; }

char* format_the_slow_way(char* to, double value) {
  return std::to_chars(to, to + room_for_17_digits, value, std::chars_format::scientific, 16).ptr;
}

}  // namespace

char* format_17_digits(char* to, double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const auto field = static_cast<int>(bits >> 52U & 0x7FFU);
  std::uint64_t m = bits << 11U;
  int e = field - 1023;
  if (field == 0) {  // zero or subnormal
    *to = '-';
    if (m == 0) {
      to += bits >> 63U;
      constexpr std::string_view zero = "0.0000000000000000e+00";
      return to + zero.copy(to, zero.size());
    }
    const int zeros = std::countl_zero(m);
    m <<= static_cast<unsigned>(zeros);
    e = -1022 - zeros;
  } else if (field == 0x7FF) {
    return format_the_slow_way(to, value);
  } else {
    m |= std::uint64_t{1} << 63U;
  }

  // If a power of ten is between 2^e and 2^(e+1), the values from it on have a k of one more.
  int k = log10_of_two_power(e);
  const bool beyond = static_cast<Wide128>(m) << 64U >= ten_power(k + 1);
  k += static_cast<int>(log2_of_ten_power(k + 1) == e) & static_cast<int>(beyond);

  const int s = 16 - k;
  const Wide128 power = ten_power(s);
  const Wide128 lower = static_cast<Wide128>(m) * static_cast<std::uint64_t>(power);
  const Wide128 h = static_cast<Wide128>(m) * static_cast<std::uint64_t>(power >> 64U) + (lower >> 64U);
  const auto h_high = static_cast<std::uint64_t>(h >> 64U);
  const auto h_low = static_cast<std::uint64_t>(h);
  const auto below = static_cast<unsigned>(62 - e - log2_of_ten_power(s));  // bits of h below the fraction's; 6 to 10
  std::uint64_t digits = h_high >> below;
  const std::uint64_t fraction = h_high << (64 - below) | h_low >> below;
  constexpr std::uint64_t half = std::uint64_t{1} << 63U;
  std::uint64_t up = fraction >> 63U;
  if (fraction - (half - 1) <= 1) [[unlikely]] {
    if (s < 0 || s > most_exact_ten_power) return format_the_slow_way(to, value);
    const bool tie = (h_low << (64 - below) | static_cast<std::uint64_t>(lower)) == 0;
    if (fraction == half && tie) up = digits & 1U;
  }
  digits += up;
  if (digits == 100'000'000'000'000'000) [[unlikely]] {
    digits /= 10;
    ++k;
  }

  constexpr std::uint64_t ascii = 0x3030303030303030U;
  *to = '-';
  to += bits >> 63U;
  const std::uint64_t upper = digits / 100'000'000;
  to[0] = static_cast<char>('0' + upper / 100'000'000);
  to[1] = '.';
  store_word(to + 2, digits_of(upper % 100'000'000) | ascii);
  store_word(to + 10, digits_of(digits % 100'000'000) | ascii);
  const auto exponent = static_cast<std::size_t>(k < 0 ? -k : k);
  const unsigned longer = exponent < 100 ? 0 : 1;
  const std::uint64_t exponent_digits = (four_digits[exponent] | 0x30303030U) >> (16 - 8 * longer);
  const std::uint64_t sign = k < 0 ? std::uint64_t{'-'} : std::uint64_t{'+'};
  store_word(to + 18, exponent_digits << 16U | sign << 8U | 'e');
  return to + 22 + longer;
}

}  // namespace polyad::io
