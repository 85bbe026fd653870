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
  const Sink<T> sink = l.sink;
  const std::uint32_t* rows = l.rows;
  const SortedCopy::RowInBlock* by_length = l.by_length;
  const Offsets& begin = *l.begin;
  const std::uint64_t stride = pass.stride();
  const std::uint64_t last = l.end_row - 1;
  const bool past_cache = l.past_cache;
  std::uint64_t next = l.clear_from;
  const auto clear_to = [&](std::uint64_t row) HWY_ATTR {
    for (; next < row; ++next)
      store_past_cache<T, C>(Cols<T, C>::zero(), sink.out + next * stride + column, past_cache);
  };
  const std::uint64_t begin_nonzero = l.begin_nonzero;
  const std::uint64_t end_nonzero = l.end_nonzero;
  std::uint64_t z = 0;
  for (std::uint64_t i = l.first_row; i <= last; ++i) {
    const std::uint64_t end = std::min(begin[i + 1], end_nonzero) - begin_nonzero;
    const Cols<T, C> sum = pass.sum_of(z, end);
    z = end;
    if (i == l.first_row || i == last) {
      sum.add_to(sink.at(rows == nullptr ? i : rows[i]) + column);
      continue;
    }
    if (by_length != nullptr) {
      // All rows up to the last one are stored here, in another order.
      clear_to(l.first_row + 1);
      next = last;
      const std::uint64_t at = SortedCopy::in_block_of(i, by_length[i]);
      store_past_cache<T, C>(sum, sink.out + at * stride + column, past_cache);
      continue;
    }
    const std::uint64_t at = rows == nullptr ? i : rows[i];
    clear_to(at);
    store_past_cache<T, C>(sum, sink.out + at * stride + column, past_cache);
    next = at + 1;
  }
  clear_to(l.clear_to);
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

HWY_EXPORT(sum_chunk_f32);
HWY_EXPORT(sum_chunk_f64);

void sum_chunk(const RowLoop<float>& l) { HWY_DYNAMIC_DISPATCH(sum_chunk_f32)(l); }
void sum_chunk(const RowLoop<double>& l) { HWY_DYNAMIC_DISPATCH(sum_chunk_f64)(l); }

}  // namespace polyad
#endif
