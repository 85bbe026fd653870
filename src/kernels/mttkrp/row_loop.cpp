// SPDX-License-Identifier: MIT
#include "kernels/mttkrp/row_loop.hpp"

#include "backends/cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/mttkrp/row_loop.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/mttkrp/row_pass-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace polyad::HWY_NAMESPACE {

/// One instance, one function: the register allocation of one loop does not suffer from the others.
template <class T, int C, class Index, class Value, int Inputs, bool Whole, Requests ahead>
HWY_NOINLINE void run_rows(const RowLoop<T>& l, std::uint64_t column) {
  const RowPass<T, C, Index, Value, Inputs, Whole, ahead> pass(l, column);
  const std::uint64_t stride = pass.stride();
  T* out = l.sink.out + column;
  const bool past_cache = l.past_cache;
  const auto clear = [&](std::uint64_t begin, std::uint64_t end) HWY_ATTR {
    for (; begin < end; ++begin) store_past_cache<T, C>(Cols<T, C>::zero(), out + begin * stride, past_cache);
  };
  const std::uint64_t last = l.end_row - 1;
  const std::uint64_t nonzeros = l.end_nonzero - l.begin_nonzero;
  auto at = pass.begin();
  pass.template sum_to<true>(std::min((*l.begin)[l.first_row + 1] - l.begin_nonzero, nonzeros), at)
      .add_to(l.sink.at(l.row_at(l.first_row)) + column);
  std::uint64_t next = l.clear_from;
  if (l.first_row < last) {
    RowBlock block;
    for (std::uint64_t row = l.first_row + 1; row < last; row += RowBlock::most) {
      const std::uint64_t count = std::min(last - row, RowBlock::most);
      l.list(row, count, l.begin_nonzero, block);
      if (l.rows != nullptr)  // those between do not occur
        for (std::uint64_t k = 0; k < count; next = block.at[k++] + 1) clear(next, block.at[k]);
      for (std::uint64_t k = 0; k < count; ++k)
        store_past_cache<T, C>(pass.template sum_to<true>(block.end[k], at), out + block.at[k] * stride, past_cache);
    }
    if (l.rows == nullptr) {
      clear(next, l.first_row + 1);
      next = last;
    }
    pass.template sum_to<true>(nonzeros, at).add_to(l.sink.at(l.row_at(last)) + column);
  }
  clear(next, l.clear_to);
  if (past_cache) hwy::FlushStream();
}

/// The instance for a block of columns: narrow ones and many factors get the general one only, and of indices of more
/// than 16 bits matrices do, and several blocks of 32-bit ones: two thirds of what all would take to compile.
template <class T>
struct RowPasses {
  const RowLoop<T>& l;

  /// A row of at most 65,536 comes from a cache as a rule, a row of more than 16.8 million from memory.
  template <class Index>
  static constexpr Requests usual = sizeof(Index) == 2 ? Requests::once : Requests::twice;

  /// With several blocks of columns requests are a small part, so there is no loop for each kind.
  template <int C, class Index, class Value, int Inputs>
  HWY_INLINE void with(std::uint64_t column) const {
    if (l.stride != C) {
      constexpr int particular = sizeof(Index) < 4 ? Inputs : 0;
      return run_rows<T, C, Index, Value, particular, false, usual<Index>>(l, column);
    }
    if constexpr (sizeof(Index) == 2) {
      if (l.prefetched == 0) return run_rows<T, C, Index, Value, Inputs, true, Requests::none>(l, column);
    }
    if constexpr (sizeof(Index) == 3) {
      if (!l.far_away) return run_rows<T, C, Index, Value, Inputs, true, Requests::once>(l, column);
    }
    run_rows<T, C, Index, Value, Inputs, true, usual<Index>>(l, column);
  }
  template <int C, class Index, class Value>
  HWY_INLINE void with_index(std::uint64_t column) const {
    if constexpr (C >= 16) {
      if constexpr (sizeof(Index) == 2) {
        if (l.inputs == 1) return with<C, Index, Value, 1>(column);
      }
      if (l.inputs == 2) return with<C, Index, Value, 2>(column);
      if (l.inputs == 3) return with<C, Index, Value, 3>(column);
    }
    run_rows<T, C, Index, Value, 0, false, usual<Index>>(l, column);
  }
  template <int C, class Value>
  HWY_INLINE void with_value(std::uint64_t column) const {
    if (l.index_bytes == 2) return with_index<C, std::uint16_t, Value>(column);
    if (l.index_bytes == 3) return with_index<C, Index24, Value>(column);
    with_index<C, std::uint32_t, Value>(column);
  }
  template <int C>
  HWY_INLINE void run(std::uint64_t column) const {
    with_value_type<T, C>(*l.values, *this, column);
  }
};

void sum_chunk_f32(const RowLoop<float>& l) { for_column_blocks(l.stride, RowPasses<float>{l}); }
void sum_chunk_f64(const RowLoop<double>& l) { for_column_blocks(l.stride, RowPasses<double>{l}); }

}  // namespace polyad::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyad {

void ChunkRows::list(std::uint64_t first, std::uint64_t count, std::uint64_t begin_nonzero, RowBlock& block) const {
  begin->visit([&](const auto* begins) {
    for (std::uint64_t k = 0; k < count; ++k)
      block.end[k] = static_cast<std::uint32_t>(begins[first + k + 1] - begin_nonzero);
  });
  for (std::uint64_t k = 0; k < count; ++k) {
    const std::uint64_t i = first + k;
    block.at[k] = by_length == nullptr ? row_at(i) : SortedCopy::in_block_of(i, by_length[i]);
  }
}

HWY_EXPORT(sum_chunk_f32);
HWY_EXPORT(sum_chunk_f64);

void sum_chunk(const RowLoop<float>& l) { HWY_DYNAMIC_DISPATCH(sum_chunk_f32)(l); }
void sum_chunk(const RowLoop<double>& l) { HWY_DYNAMIC_DISPATCH(sum_chunk_f64)(l); }

}  // namespace polyad
#endif
