// SPDX-License-Identifier: MIT
/// \file Exponentials and logarithms with the same last bit on every machine: libm's differ between C libraries and
/// processors, IEEE + - * / and sqrt do not. Defined in portable_math.cpp, which is compiled without fused
/// multiply-add; inline they would be compiled again under the flags of whoever includes them.
#pragma once

namespace polyad::portable {

/// 2^x, within 2 units in the last place; 0 and infinity beyond the range of double (no subnormal results).
[[nodiscard]] double exp2(double x) noexcept;
/// e^x, as exp2.
[[nodiscard]] double exp(double x) noexcept;
/// Logarithm to base 2 of a positive normal x, within 4 units in the last place; exact for powers of two.
[[nodiscard]] double log2(double x) noexcept;
/// Natural logarithm, as log2.
[[nodiscard]] double log(double x) noexcept;
/// x^y = 2^(y log2 x) for positive x; the relative error grows with |y log2 x|, about that many times 2^-51.
[[nodiscard]] double power(double x, double y) noexcept;
/// The z with P(Z <= z) = p for a standard normal Z and 0 < p < 1, to about 1e-15 relative.
[[nodiscard]] double normal_quantile(double p) noexcept;

}  // namespace polyad::portable
