// SPDX-License-Identifier: MIT
#include "kernels/ttv/fibre_sums.hpp"

#include "backends/cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/ttv/fibre_sums.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace polyad::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Numbers of a vector at the places that indices name. f32 gathers take signed 32-bit indices, f64 ones 64-bit.
template <class Index, class T>
struct Gather {
  /// No gather takes 64-bit indices to 32-bit numbers.
  static constexpr bool possible = sizeof(Index) <= sizeof(T);
  using D = hn::CappedTag<T, 16>;
  using DI = hn::RebindToSigned<D>;
  using V = hn::Vec<D>;
  using VI = hn::Vec<DI>;

  static HWY_INLINE VI widened(const Index* p) {
    if constexpr (sizeof(Index) == sizeof(T)) {
      return hn::BitCast(DI(), hn::LoadU(hn::RebindToUnsigned<D>(), p));
    } else {
      const hn::Rebind<std::uint32_t, D> narrow;
      return hn::BitCast(DI(), hn::PromoteTo(hn::RebindToUnsigned<D>(), hn::LoadU(narrow, p)));
    }
  }
  static HWY_INLINE V at(const T* vector, VI index) { return hn::GatherIndex(D(), vector, index); }
};

/// Whether the indices of a vector of that length can be gathered.
template <class Index, class T>
HWY_INLINE bool gathers(std::uint64_t length) {
  return Gather<Index, T>::possible && (sizeof(T) == 8 || length <= std::uint64_t{1} << 31U);
}

/// Fibres shorter than this are summed one by one: they do not fill two f32 vectors of 512 bits.
inline constexpr std::uint64_t short_fibre = 32;

template <class Index, class T>
HWY_INLINE T dot(const Index* indices, const T* values, const T* vector, std::uint64_t n, bool gather) {
  T sum = 0;
  std::uint64_t k = 0;
  if constexpr (Gather<Index, T>::possible) {
    if (n >= short_fibre && gather) {
      using G = Gather<Index, T>;
      const typename G::D d;
      const std::uint64_t lanes = hn::Lanes(d);
      auto a = hn::Zero(d);
      auto b = hn::Zero(d);
      for (; k + 2 * lanes <= n; k += 2 * lanes) {
        a = hn::MulAdd(hn::LoadU(d, values + k), G::at(vector, G::widened(indices + k)), a);
        b = hn::MulAdd(hn::LoadU(d, values + k + lanes), G::at(vector, G::widened(indices + k + lanes)), b);
      }
      sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(a, b)));
    }
  }
  for (; k < n; ++k) sum += values[k] * vector[indices[k]];
  return sum;
}

template <class Index, class T>
HWY_INLINE T sum_piece(const FibrePiece<Index, T>& p) {
  const bool gather = gathers<Index, T>(p.vector_length);
  std::uint64_t k = 0;
  for (std::size_t f = 0; f < p.ends.size(); ++f) {
    const std::uint64_t end = p.ends[f];
    p.out[f] = dot(p.indices + k, p.values + k, p.vector, end - k, gather);
    k = end;
  }
  return dot(p.indices + k, p.values + k, p.vector, p.nonzeros - k, gather);
}

/// Lanes are rows: every row is summed in the order of its elements. Padding is left out by its mask, not by
/// multiplying with 0, which would turn an infinite number of the vector into NaN.
template <class Index, class T>
HWY_INLINE void sum_group(const EllGroup<Index, T>& g) {
  std::uint64_t r = 0;
  if constexpr (Gather<Index, T>::possible) {
    using G = Gather<Index, T>;
    const typename G::D d;
    const typename G::DI di;
    const std::uint64_t lanes = hn::Lanes(d);
    const auto padding =
        hn::Set(di, sizeof(Index) == sizeof(T) ? hwy::MakeSigned<T>(-1) : hwy::MakeSigned<T>(~Index{0}));
    if (gathers<Index, T>(g.vector_length)) {
      for (; r + lanes <= g.rows; r += lanes) {
        auto sum = hn::Zero(d);
        const Index* index = g.indices + r;
        const T* value = g.values + r;
        for (std::uint64_t e = 0; e < g.length; ++e, index += g.rows, value += g.rows) {
          const auto at = G::widened(index);
          const auto real = hn::Ne(at, padding);
          if (hn::AllFalse(di, real)) break;
          const auto product = hn::Mul(hn::LoadU(d, value), G::at(g.vector, hn::IfThenElseZero(real, at)));
          sum = hn::Add(sum, hn::IfThenElseZero(hn::RebindMask(d, real), product));
        }
        hn::StoreU(sum, d, g.out + r);
      }
    }
  }
  for (; r < g.rows; ++r) {
    T sum = 0;
    for (std::uint64_t e = 0; e < g.length; ++e) {
      const Index at = g.indices[e * g.rows + r];
      if (at == static_cast<Index>(~Index{0})) break;
      sum += g.values[e * g.rows + r] * g.vector[at];
    }
    g.out[r] = sum;
  }
}

float fibres_u32_f32(const FibrePiece<std::uint32_t, float>& p) { return sum_piece(p); }
double fibres_u32_f64(const FibrePiece<std::uint32_t, double>& p) { return sum_piece(p); }
float fibres_u64_f32(const FibrePiece<std::uint64_t, float>& p) { return sum_piece(p); }
double fibres_u64_f64(const FibrePiece<std::uint64_t, double>& p) { return sum_piece(p); }
void rows_u32_f32(const EllGroup<std::uint32_t, float>& g) { sum_group(g); }
void rows_u32_f64(const EllGroup<std::uint32_t, double>& g) { sum_group(g); }
void rows_u64_f32(const EllGroup<std::uint64_t, float>& g) { sum_group(g); }
void rows_u64_f64(const EllGroup<std::uint64_t, double>& g) { sum_group(g); }

}  // namespace polyad::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyad {

HWY_EXPORT(fibres_u32_f32);
HWY_EXPORT(fibres_u32_f64);
HWY_EXPORT(fibres_u64_f32);
HWY_EXPORT(fibres_u64_f64);
HWY_EXPORT(rows_u32_f32);
HWY_EXPORT(rows_u32_f64);
HWY_EXPORT(rows_u64_f32);
HWY_EXPORT(rows_u64_f64);

float sum_fibres(const FibrePiece<std::uint32_t, float>& p) { return HWY_DYNAMIC_DISPATCH(fibres_u32_f32)(p); }
double sum_fibres(const FibrePiece<std::uint32_t, double>& p) { return HWY_DYNAMIC_DISPATCH(fibres_u32_f64)(p); }
float sum_fibres(const FibrePiece<std::uint64_t, float>& p) { return HWY_DYNAMIC_DISPATCH(fibres_u64_f32)(p); }
double sum_fibres(const FibrePiece<std::uint64_t, double>& p) { return HWY_DYNAMIC_DISPATCH(fibres_u64_f64)(p); }
void sum_rows(const EllGroup<std::uint32_t, float>& g) { HWY_DYNAMIC_DISPATCH(rows_u32_f32)(g); }
void sum_rows(const EllGroup<std::uint32_t, double>& g) { HWY_DYNAMIC_DISPATCH(rows_u32_f64)(g); }
void sum_rows(const EllGroup<std::uint64_t, float>& g) { HWY_DYNAMIC_DISPATCH(rows_u64_f32)(g); }
void sum_rows(const EllGroup<std::uint64_t, double>& g) { HWY_DYNAMIC_DISPATCH(rows_u64_f64)(g); }

}  // namespace polyad
#endif
