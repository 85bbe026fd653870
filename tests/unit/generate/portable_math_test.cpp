// SPDX-License-Identifier: MIT
#include "generate/portable_math.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "generate/random.hpp"

namespace polyad {
namespace {

/// |got - want| in units in the last place of `want`, a long double result of libm.
double ulps(double got, long double want) {
  const double w = std::fabs(static_cast<double>(want));
  const double ulp = std::nextafter(w, std::numeric_limits<double>::infinity()) - w;
  return static_cast<double>(std::fabs(static_cast<long double>(got) - want) / static_cast<long double>(ulp));
}

TEST(PortableMath, ExponentialsAreAccurate) {
  portable::Random random(portable::Key(1, "test"));
  double worst2 = 0;
  double worst = 0;
  for (int k = 0; k < 200000; ++k) {
    const double scale = k % 2 == 0 ? 2 : 2000;
    const double x = (random.uniform() - 0.5) * scale;
    worst2 = std::max(worst2, ulps(portable::exp2(x), std::exp2(static_cast<long double>(x))));
    const double y = x * 0.7;
    worst = std::max(worst, ulps(portable::exp(y), std::exp(static_cast<long double>(y))));
  }
  EXPECT_LT(worst2, 2);
  EXPECT_LT(worst, 2);
}

TEST(PortableMath, LogarithmsAreAccurate) {
  portable::Random random(portable::Key(2, "test"));
  double worst2 = 0;
  double worst = 0;
  for (int k = 0; k < 200000; ++k) {
    double x = 0.5 + 1.5 * random.uniform();  // around 1, where the result vanishes
    if (k % 3 == 1) x = 1 + (random.uniform() - 0.5) * 1e-6;
    if (k % 3 == 2) x = std::ldexp(x, static_cast<int>(random.below(2000)) - 1000);
    if (x == 1) continue;
    worst2 = std::max(worst2, ulps(portable::log2(x), std::log2(static_cast<long double>(x))));
    worst = std::max(worst, ulps(portable::log(x), std::log(static_cast<long double>(x))));
  }
  EXPECT_LT(worst2, 4);
  EXPECT_LT(worst, 4);
}

TEST(PortableMath, ExactWhereItCanBe) {
  for (int k = -1022; k < 1024; ++k) {
    EXPECT_EQ(portable::exp2(k), std::ldexp(1.0, k));
    EXPECT_EQ(portable::log2(std::ldexp(1.0, k)), k);
  }
  EXPECT_EQ(portable::log(1), 0);
  EXPECT_EQ(portable::exp(0), 1);
  EXPECT_EQ(portable::exp2(1024), std::numeric_limits<double>::infinity());
  EXPECT_EQ(portable::exp(800), std::numeric_limits<double>::infinity());
  EXPECT_EQ(portable::exp2(-2000), 0);
  EXPECT_EQ(portable::exp(-800), 0);
}

TEST(PortableMath, Power) {
  EXPECT_NEAR(portable::power(10, 3), 1000, 1e-11);
  EXPECT_NEAR(portable::power(2.5, -1.5), std::pow(2.5, -1.5), 1e-15);
}

TEST(PortableMath, NormalQuantileInvertsTheDistribution) {
  for (const double p :
       {1e-300, 1e-20, 1e-10, 1e-5, 0.01, 0.0749, 0.0751, 0.2, 0.4, 0.6, 0.9249, 0.9251, 0.99, 0.999999}) {
    const double z = portable::normal_quantile(p);
    const double back = 0.5 * std::erfc(-z / std::sqrt(2.0));
    EXPECT_NEAR(back / p, 1, 1e-14 * (1 + z * z)) << p;  // d(log p) = about z^2 d(log z)
  }
  EXPECT_EQ(portable::normal_quantile(0.5), 0);
  EXPECT_NEAR(portable::normal_quantile(0.975), 1.959963984540054, 1e-15 * 4);
}

// The same bits everywhere: hashed over many arguments on x86-64; another machine must find the same number.
TEST(PortableMath, SameBitsOnEveryMachine) {
  portable::Random random(portable::Key(3, "test"));
  std::uint64_t hash = 0;  // arguments are exact products, so that fusing them in this file changes nothing
  for (int k = 0; k < 10000; ++k) {
    const double u = random.uniform() + 0x1.0p-54;
    for (const double v : {portable::exp2(16 * u - 8), portable::exp(16 * u - 8), portable::log2(u), portable::log(u),
                           portable::power(1 + 8 * u, 0.3), portable::normal_quantile(u < 1 ? u : 0.5)})
      hash = portable::mix(hash ^ std::bit_cast<std::uint64_t>(v));
  }
  EXPECT_EQ(hash, 0xa216598c1434b1eU);
}

}  // namespace
}  // namespace polyad
