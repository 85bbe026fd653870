// SPDX-License-Identifier: MIT
#include "io/scientific_digits.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>

namespace polyad::io {
namespace {

std::string seventeen_digits(double value) {
  std::array<char, room_for_17_digits> text = {};
  return {text.data(), format_17_digits(text.data(), value)};
}

/// Does a number of either sign get the bytes that the standard library writes?
testing::AssertionResult as_to_chars(double magnitude) {
  for (const double value : {magnitude, -magnitude}) {
    std::array<char, 40> text = {};
    const auto end =
        std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::scientific, 16).ptr;
    const std::string expected(text.data(), end);
    const std::string written = seventeen_digits(value);
    if (written != expected)
      return testing::AssertionFailure() << "0x" << std::hex << std::bit_cast<std::uint64_t>(value) << " became "
                                         << written << ", to_chars writes " << expected;
  }
  return testing::AssertionSuccess();
}

/// Likewise for a number and the few on both sides of it.
testing::AssertionResult as_to_chars_around(double value) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  double below = value;
  double above = value;
  for (int i = 0; i < 3; ++i) {
    for (const double x : {below, above})
      if (const testing::AssertionResult result = as_to_chars(x); !result) return result;
    below = std::nextafter(below, -infinity);
    above = std::nextafter(above, infinity);
  }
  return testing::AssertionSuccess();
}

TEST(ScientificDigits, NumbersHave17DigitsAndAnExponentOfTwoAtLeast) {
  EXPECT_EQ(seventeen_digits(0.0), "0.0000000000000000e+00");
  EXPECT_EQ(seventeen_digits(-0.0), "-0.0000000000000000e+00");
  EXPECT_EQ(seventeen_digits(1.0), "1.0000000000000000e+00");
  EXPECT_EQ(seventeen_digits(-0.1), "-1.0000000000000001e-01");
  EXPECT_EQ(seventeen_digits(2.5e99), "2.5000000000000000e+99");
  EXPECT_EQ(seventeen_digits(1e100), "1.0000000000000000e+100");
  EXPECT_EQ(seventeen_digits(-1e-300), "-1.0000000000000000e-300");
  EXPECT_EQ(seventeen_digits(std::numeric_limits<double>::max()), "1.7976931348623157e+308");
  EXPECT_EQ(seventeen_digits(std::numeric_limits<double>::denorm_min()), "4.9406564584124654e-324");
  EXPECT_EQ(seventeen_digits(-std::numeric_limits<double>::infinity()), "-inf");
  EXPECT_EQ(seventeen_digits(std::numeric_limits<double>::quiet_NaN()), "nan");
  for (const double value : {0.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN(),
                             std::numeric_limits<double>::signaling_NaN(), std::numeric_limits<double>::max()})
    EXPECT_TRUE(as_to_chars(value));
  EXPECT_TRUE(as_to_chars_around(std::numeric_limits<double>::min()));
  EXPECT_TRUE(as_to_chars_around(std::numeric_limits<double>::denorm_min()));
}

TEST(ScientificDigits, AroundPowersOfTenAndOfTwo) {
  for (int k = -323; k <= 308; ++k)
    EXPECT_TRUE(as_to_chars_around(std::strtod(("1e" + std::to_string(k)).c_str(), nullptr))) << k;
  for (int e = -1074; e <= 1023; ++e) EXPECT_TRUE(as_to_chars_around(std::ldexp(1.0, e))) << e;
}

TEST(ScientificDigits, Integers) {
  std::mt19937_64 random(17);
  std::uint64_t most = 1;
  for (int digits = 1; digits <= 17; ++digits) {
    const std::uint64_t least = most;
    most *= 10;
    std::uniform_int_distribution<std::uint64_t> any(least, most - 1);
    for (const std::uint64_t x : {least, least + 1, most / 2, most - 1})
      EXPECT_TRUE(as_to_chars(static_cast<double>(x))) << x;
    for (int i = 0; i < 500; ++i) EXPECT_TRUE(as_to_chars(static_cast<double>(any(random))));
  }
}

TEST(ScientificDigits, TiesGoToTheEvenDigit) {
  EXPECT_EQ(seventeen_digits(0x1p-25), "2.9802322387695312e-08");              // 2.98023223876953125
  EXPECT_EQ(seventeen_digits(0x1.8p-24), "8.9406967163085938e-08");            // 8.94069671630859375
  EXPECT_EQ(seventeen_digits(2000000000000000.25), "2.0000000000000002e+15");  // 2.00000000000000025
  // 2 value 10^s = c 5^s is odd: value 10^s is an integer and a half.
  std::mt19937_64 random(18);
  double five_to_s = 1;
  for (int s = 1; s <= 24; ++s) {
    five_to_s *= 5;
    const double least = std::ceil(2e16 / five_to_s);
    const double most = std::min(0x1p53, std::floor(2e17 / five_to_s)) - 1;
    std::uniform_int_distribution<std::uint64_t> any(static_cast<std::uint64_t>(least),
                                                     static_cast<std::uint64_t>(std::max(least, most)));
    for (int i = 0; i < 500; ++i)
      EXPECT_TRUE(as_to_chars_around(std::ldexp(static_cast<double>(any(random) | 1U), -s - 1))) << s;
  }
}

/// Of all numbers those nearest to a tie without being one: the first by 2^-64.5 of the last digit, so that 128 bits of
/// the power of ten do not tell, the others by less than 2^-60. Found with continued fractions.
TEST(ScientificDigits, NearlyTies) {
  for (const double value :
       {0x1.3de005bd620dfp+216, 0x1.7c0747bd76fa1p-814, 0x1.3de005bd620dfp+215, 0x1.7c0747bd76fa1p-815,
        0x1.59a2783ce70abp-329, 0x1.348bd023ae858p+536, 0x1.81aec42c9a26ep+539, 0x1.edac8039173c0p+532,
        0x1.1d467e94b856ep-752, 0x1.6e22db4568793p-247, 0x1.e735b3003e352p+455, 0x1.e16ee5d60cf47p-785})
    EXPECT_TRUE(as_to_chars_around(value));
}

TEST(ScientificDigits, RandomBits) {
  std::mt19937_64 random(19);
  for (int i = 0; i < 200'000; ++i) ASSERT_TRUE(as_to_chars(std::bit_cast<double>(random())));
  for (int i = 0; i < 20'000; ++i) ASSERT_TRUE(as_to_chars(std::bit_cast<double>(random() >> (12 + random() % 52))));
}

TEST(ScientificDigits, RandomFloats) {
  std::mt19937_64 random(20);
  std::uniform_real_distribution<double> logarithm(std::log(1e-12), 0);
  for (int i = 0; i < 200'000; ++i)
    ASSERT_TRUE(as_to_chars(static_cast<double>(static_cast<float>(std::exp(logarithm(random))))));
}

}  // namespace
}  // namespace polyad::io
