// SPDX-License-Identifier: MIT
#include "generate/uniform_draws.hpp"

#include "backends/cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "generate/uniform_draws.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace polyad::portable::HWY_NAMESPACE {

/// Draws 2 * block .. of `blocks` whole blocks of Philox, a block per lane of 64 bits. Its words are the lower halves
/// of four vectors; what is in the upper halves is of no account, as the products take the lower ones. Every step is of
/// whole numbers or exact. Returns how many blocks are done.
std::size_t draw_blocks(std::uint64_t key, std::uint64_t block, std::size_t blocks, double* HWY_RESTRICT out) {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  (void)key, (void)block, (void)blocks, (void)out;
  return 0;
#else
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<std::uint64_t> d;
  const hn::ScalableTag<std::uint32_t> halves;
  const hn::ScalableTag<double> numbers;
  const std::size_t lanes = hn::Lanes(d);
  const auto times = [&](auto a, auto b)
                         HWY_ATTR { return hn::MulEven(hn::BitCast(halves, a), hn::BitCast(halves, b)); };
  const auto unit = [&](auto low, auto high) HWY_ATTR {
    const auto word = hn::Or(hn::And(low, hn::Set(d, 0xFFFFFFFFU)), hn::ShiftLeft<32>(high));
    return hn::Mul(hn::ConvertTo(numbers, hn::ShiftRight<11>(word)), hn::Set(numbers, 0x1.0p-53));
  };
  const auto m0 = hn::Set(d, std::uint64_t{philox_factors[0]});
  const auto m1 = hn::Set(d, std::uint64_t{philox_factors[1]});
  std::size_t done = 0;
  for (; done + lanes <= blocks; done += lanes) {
    auto x0 = hn::Iota(d, block + done);
    auto x1 = hn::ShiftRight<32>(x0);
    auto x2 = hn::Zero(d);
    auto x3 = hn::Zero(d);
    auto k0 = static_cast<std::uint32_t>(key);
    auto k1 = static_cast<std::uint32_t>(key >> 32U);
    for (int round = 0; round < philox_rounds; ++round) {
      const auto a = times(m0, x0);
      const auto b = times(m1, x2);
      x0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(b), x1), hn::Set(d, std::uint64_t{k0}));
      x1 = b;
      x2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(a), x3), hn::Set(d, std::uint64_t{k1}));
      x3 = a;
      k0 += philox_steps[0];
      k1 += philox_steps[1];
    }
    hn::StoreInterleaved2(unit(x0, x1), unit(x2, x3), numbers, out + 2 * done);
  }
  return done;
#endif
}

}  // namespace polyad::portable::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyad::portable {

HWY_EXPORT(draw_blocks);

void uniform_draws(Key key, std::uint64_t first, std::size_t count, double* out) {
  Random random(key);
  random.seek(first);
  std::size_t i = 0;
  if (first % 2 != 0 && count > 0) out[i++] = random.uniform();
  i += 2 * HWY_DYNAMIC_DISPATCH(draw_blocks)(key.value, (first + i) / 2, (count - i) / 2, out + i);
  random.seek(first + i);
  for (; i < count; ++i) out[i] = random.uniform();
}

}  // namespace polyad::portable
#endif
