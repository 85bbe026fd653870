// SPDX-License-Identifier: MIT
#include "kernels/mttkrp/tile_loop.hpp"

#include "backends/cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/mttkrp/tile_loop.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/mttkrp/row_pass-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace polyad::HWY_NAMESPACE {

/// One instance, one function: the register allocation of one loop does not suffer from the others.
template <class T, int C, class Value, int Inputs, bool Whole>
HWY_NOINLINE void add_rows(const TileLoop<T>& l, std::uint64_t column) {
  const RowPass<T, C, std::uint16_t, Value, Inputs, Whole, Requests::none> pass(l, column);
  const std::uint32_t* lengths = l.lengths;
  const std::uint64_t stride = pass.stride();
  T* out = l.out + column;
  const bool short_runs = l.short_runs;
  auto at = pass.begin();
  for (const std::uint32_t* const lengths_end = lengths + l.rows; lengths < lengths_end; ++lengths, out += stride) {
    if (*lengths == 0) continue;
    const std::uint64_t end = at.z + *lengths;
    const Cols<T, C> sum = short_runs ? pass.short_sum_to(end, at) : pass.template sum_to<false>(end, at);
    sum.add_to(out);
  }
}

/// The instance for a block of columns: narrow ones and many factors get the general one only.
template <class T>
struct TilePasses {
  const TileLoop<T>& l;

  template <int C, class Value, int Inputs>
  HWY_INLINE void with(std::uint64_t column) const {
    if (l.stride == C) return add_rows<T, C, Value, Inputs, true>(l, column);
    add_rows<T, C, Value, Inputs, false>(l, column);
  }
  template <int C, class Value>
  HWY_INLINE void with_value(std::uint64_t column) const {
    if constexpr (C >= 16) {
      if (l.inputs == 1) return with<C, Value, 1>(column);
      if (l.inputs == 2) return with<C, Value, 2>(column);
      if (l.inputs == 3) return with<C, Value, 3>(column);
    }
    add_rows<T, C, Value, 0, false>(l, column);
  }
  template <int C>
  HWY_INLINE void run(std::uint64_t column) const {
    with_value_type<T, C>(*l.values, *this, column);
  }
};

void add_tile_f32(const TileLoop<float>& l) { for_column_blocks(l.stride, TilePasses<float>{l}); }
void add_tile_f64(const TileLoop<double>& l) { for_column_blocks(l.stride, TilePasses<double>{l}); }

}  // namespace polyad::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyad {

HWY_EXPORT(add_tile_f32);
HWY_EXPORT(add_tile_f64);

void add_tile(const TileLoop<float>& l) { HWY_DYNAMIC_DISPATCH(add_tile_f32)(l); }
void add_tile(const TileLoop<double>& l) { HWY_DYNAMIC_DISPATCH(add_tile_f64)(l); }

}  // namespace polyad
#endif
