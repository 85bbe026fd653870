// SPDX-License-Identifier: MIT
#include "generate/portable_math.hpp"

#include <array>
#include <cmath>
#include <limits>

namespace polyad::portable {

namespace {

constexpr double ln2 = 0x1.62e42fefa39efp-1;
constexpr double inverse_ln2 = 0x1.71547652b82fep+0;
// ln 2 = high + low; high has 32 bits, so that k * high is exact for every exponent k.
constexpr double ln2_high = 0x1.62e42feep-1;
constexpr double ln2_low = 0x1.a39ef35793c76p-33;

/// e^t for |t| <= ln(2)/2: Taylor, the first term left out is below 2^-57.
double exp_small(double t) {
  constexpr std::array<double, 15> inverse_factorial = {1.0,
                                                        1.0,
                                                        1.0 / 2,
                                                        1.0 / 6,
                                                        1.0 / 24,
                                                        1.0 / 120,
                                                        1.0 / 720,
                                                        1.0 / 5040,
                                                        1.0 / 40320,
                                                        1.0 / 362880,
                                                        1.0 / 3628800,
                                                        1.0 / 39916800,
                                                        1.0 / 479001600,
                                                        1.0 / 6227020800,
                                                        1.0 / 87178291200};
  double sum = inverse_factorial[14];
  for (std::size_t k = 14; k-- > 0;) sum = sum * t + inverse_factorial[k];
  return sum;
}

/// x = 2^exponent * m with m in [sqrt(1/2), sqrt(2)), and ln m = 2 artanh(s), s = (m - 1) / (m + 1).
struct SplitLogarithm {
  double exponent;
  double ln_mantissa;
};

SplitLogarithm split_logarithm(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent);  // [1/2, 1)
  if (m < 0x1.6a09e667f3bcdp-1) {       // sqrt(1/2)
    m *= 2;
    --exponent;
  }
  // artanh(s) = s + s^3/3 + s^5/5 + ...; |s| < 0.1716, the first term left out is below 2^-60 of the sum.
  const double s = (m - 1) / (m + 1);
  const double z = s * s;
  double sum = 0;
  for (int k = 23; k >= 3; k -= 2) sum = (sum + 1.0 / k) * z;
  return {static_cast<double>(exponent), 2 * (s + s * sum)};
}

/// Value of a polynomial, highest coefficient first.
double polynomial(const std::array<double, 8>& c, double x) {
  double sum = 0;
  for (const double a : c) sum = sum * x + a;
  return sum;
}

}  // namespace

double exp2(double x) noexcept {
  if (x >= 1024) return std::numeric_limits<double>::infinity();
  if (x < -1022) return 0;
  const double k = std::floor(x + 0.5);
  return std::ldexp(exp_small((x - k) * ln2), static_cast<int>(k));
}

double exp(double x) noexcept {
  if (x > 709.78) return std::numeric_limits<double>::infinity();
  if (x < -708.39) return 0;
  const double k = std::floor(x * inverse_ln2 + 0.5);
  return std::ldexp(exp_small((x - k * ln2_high) - k * ln2_low), static_cast<int>(k));
}

double log2(double x) noexcept {
  const SplitLogarithm s = split_logarithm(x);
  return s.exponent + s.ln_mantissa * inverse_ln2;
}

double log(double x) noexcept {
  const SplitLogarithm s = split_logarithm(x);
  return s.exponent * ln2_high + (s.exponent * ln2_low + s.ln_mantissa);
}

double power(double x, double y) noexcept { return exp2(y * log2(x)); }

// Wichura: Algorithm AS 241, the percentage points of the normal distribution, Applied Statistics 37 (1988), PPND16.
double normal_quantile(double p) noexcept {
  constexpr std::array<double, 8> a = {2.5090809287301226727e+3, 3.3430575583588128105e+4, 6.7265770927008700853e+4,
                                       4.5921953931549871457e+4, 1.3731693765509461125e+4, 1.9715909503065514427e+3,
                                       1.3314166789178437745e+2, 3.3871328727963666080e+0};
  constexpr std::array<double, 8> b = {
      5.2264952788528545610e+3, 2.8729085735721942674e+4, 3.9307895800092710610e+4, 2.1213794301586595867e+4,
      5.3941960214247511077e+3, 6.8718700749205790830e+2, 4.2313330701600911252e+1, 1.0};
  constexpr std::array<double, 8> c = {7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1,
                                       1.27045825245236838258e+0, 3.64784832476320460504e+0, 5.76949722146069140550e+0,
                                       4.63033784615654529590e+0, 1.42343711074968357734e+0};
  constexpr std::array<double, 8> d = {
      1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
      6.89767334985100004550e-1, 1.67638483018380384940e+0, 2.05319162663775882187e+0, 1.0};
  constexpr std::array<double, 8> e = {2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3,
                                       2.65321895265761230930e-2, 2.96560571828504891230e-1, 1.78482653991729133580e+0,
                                       5.46378491116411436990e+0, 6.65790464350110377720e+0};
  constexpr std::array<double, 8> f = {
      2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
      1.48753612908506148525e-2,  1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0};
  const double q = p - 0.5;
  if (std::fabs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * polynomial(a, r) / polynomial(b, r);
  }
  const double r = std::sqrt(-log(q < 0 ? p : 1 - p));
  const double z =
      r <= 5 ? polynomial(c, r - 1.6) / polynomial(d, r - 1.6) : polynomial(e, r - 5) / polynomial(f, r - 5);
  return q < 0 ? -z : z;
}

}  // namespace polyad::portable
