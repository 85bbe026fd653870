// SPDX-License-Identifier: MIT
#include "core/tuple_hash.hpp"

#include "backends/cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/tuple_hash.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace polyad::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class Index>
std::size_t hashes_of(const TupleSource<Index>& source, std::uint64_t begin, std::size_t count, std::uint64_t most,
                      std::uint64_t* out) {
  const hn::CappedTag<std::uint64_t, hash_padding> d;
  const hn::Rebind<Index, decltype(d)> narrow;
  const auto limit = hn::Set(d, most);
  const auto first = hn::Set(d, 0xBF58476D1CE4E5B9U);
  const auto second = hn::Set(d, 0x94D049BB133111EBU);
  std::size_t found = 0;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) {
    auto sum = hn::Zero(d);
    for (std::size_t m = 0; m < source.modes; ++m) {
      const auto loaded = hn::LoadU(narrow, source.indices[m] + begin + i);
      hn::Vec<decltype(d)> index;
      if constexpr (sizeof(Index) == 8) {
        index = loaded;
      } else {
        index = hn::PromoteTo(d, loaded);
      }
      sum = hn::Add(sum, hn::Mul(hn::ShiftRightSame(index, source.shift), hn::Set(d, source.factors[m])));
    }
    auto x = hn::Mul(hn::Xor(sum, hn::ShiftRight<30>(sum)), first);
    x = hn::Mul(hn::Xor(x, hn::ShiftRight<27>(x)), second);
    x = hn::Xor(x, hn::ShiftRight<31>(x));
    const auto small = hn::Not(hn::Gt(x, limit));
    if (hn::AllFalse(d, small)) continue;
    found += hn::CompressStore(x, small, d, out + found);
  }
  for (; i < count; ++i) {
    std::uint64_t sum = 0;
    for (std::size_t m = 0; m < source.modes; ++m)
      sum += (std::uint64_t{source.indices[m][begin + i]} >> source.shift) * source.factors[m];
    out[found] = mixed(sum);
    found += out[found] <= most ? 1 : 0;
  }
  return found;
}

std::size_t small_hashes_u32(const TupleSource<std::uint32_t>& source, std::uint64_t begin, std::size_t count,
                             std::uint64_t most, std::uint64_t* out) {
  return hashes_of(source, begin, count, most, out);
}
std::size_t small_hashes_u64(const TupleSource<std::uint64_t>& source, std::uint64_t begin, std::size_t count,
                             std::uint64_t most, std::uint64_t* out) {
  return hashes_of(source, begin, count, most, out);
}

}  // namespace polyad::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyad {

HWY_EXPORT(small_hashes_u32);
HWY_EXPORT(small_hashes_u64);

std::size_t small_hashes(const TupleSource<std::uint32_t>& source, std::uint64_t begin, std::size_t count,
                         std::uint64_t most, std::uint64_t* out) {
  return HWY_DYNAMIC_DISPATCH(small_hashes_u32)(source, begin, count, most, out);
}
std::size_t small_hashes(const TupleSource<std::uint64_t>& source, std::uint64_t begin, std::size_t count,
                         std::uint64_t most, std::uint64_t* out) {
  return HWY_DYNAMIC_DISPATCH(small_hashes_u64)(source, begin, count, most, out);
}

}  // namespace polyad
#endif
