// SPDX-License-Identifier: MIT
#include "kernels/mttkrp/row_loop.hpp"

#include "backends/cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/mttkrp/row_loop.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/mttkrp/rows-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace polyad::HWY_NAMESPACE {

/// Rows are requested this many nonzeros ahead. 8 and 16 made no difference (rand, rank 16; nell2, rank 64).
constexpr std::uint64_t nonzeros_ahead = 16;
static_assert(nonzeros_ahead + 4 <= SortedCopy::padding);

/// One pass over the nonzeros of a chunk for C columns. Inputs: number of factors when it is 2 or 3, else 0. Whole: a
/// row is these C columns and nothing else, so that addresses need no multiplication. Ahead: rows are requested before
/// they are used. Everything is in locals: a vector store may alias anything, so members would be read again after
/// each.
template <class T, int C, class Index, class Value, int Inputs, bool Whole, bool Ahead>
struct RowPass {
  using Row = Cols<T, C>;
  static constexpr int most = Inputs > 0 ? Inputs : max_order;
  /// Sums of a long row: one would wait for itself at every nonzero. As many as leave registers for the rest.
  static constexpr int sums = Row::vectors == 1 ? 4 : Row::vectors == 2 ? 2 : 1;

  const T* factors[most];      // [inputs], at the first column
  const Index* indices[most];  // [inputs]
  const Value* values;
  std::uint64_t row_stride;
  int input_count;
  int prefetched;

  HWY_INLINE RowPass(const RowLoop<T>& l, std::uint64_t column)
      : row_stride(l.stride), input_count(l.inputs), prefetched(l.prefetched) {
    if constexpr (std::is_same_v<Value, T>) {
      values = l.values;
    } else {
      values = l.float_values;
    }
    for (int m = 0; m < inputs(); ++m) {
      factors[m] = l.factors[static_cast<std::size_t>(m)] + column;
      indices[m] = static_cast<const Index*>(l.indices[static_cast<std::size_t>(m)]);
    }
  }

  HWY_INLINE int inputs() const { return Inputs > 0 ? Inputs : input_count; }
  HWY_INLINE std::uint64_t stride() const { return Whole ? C : row_stride; }
  HWY_INLINE const T* row(int m, std::uint64_t z) const {
    return factors[m] + static_cast<std::uint64_t>(indices[m][z]) * stride();
  }
  HWY_INLINE void add(std::uint64_t z, Row& sum) const {
    if (Ahead)
      for (int m = 0; m < prefetched; ++m) prefetch_row<T, C>(row(m, z + nonzeros_ahead));
    Row product = Row::all(static_cast<T>(values[z]));
    for (int m = 0; m + 1 < inputs(); ++m) product.times(row(m, z));
    sum.add_product(product, row(inputs() - 1, z));
  }
  HWY_INLINE Row sum_of(std::uint64_t z, std::uint64_t end) const {
    Row sum = Row::zero();
    if (sums > 1 && end - z >= 2 * sums) {
      Row other[sums];
      for (int i = 1; i < sums; ++i) other[i] = sum;
      for (; z + sums <= end; z += sums) {
        add(z, sum);
        for (int i = 1; i < sums; ++i) add(z + static_cast<std::uint64_t>(i), other[i]);
      }
      for (int i = 1; i < sums; ++i) sum.add(other[i]);
    }
    for (; z < end; ++z) add(z, sum);
    return sum;
  }
};

/// One instance, one function: the register allocation of one loop does not suffer from the others.
template <class T, int C, class Index, class Value, int Inputs, bool Whole, bool Ahead>
HWY_NOINLINE void run_rows(const RowLoop<T>& l, std::uint64_t column) {
  const RowPass<T, C, Index, Value, Inputs, Whole, Ahead> pass(l, column);
  const Sink<T> sink = l.sink;
  const std::uint32_t* rows = l.rows;
  const Offsets& begin = *l.begin;
  const std::uint64_t stride = pass.stride();
  const std::uint64_t last = l.end_row - 1;
  const bool past_cache = l.past_cache;
  std::uint64_t next = l.clear_from;
  const auto clear_to = [&](std::uint64_t row) HWY_ATTR {
    for (; next < row; ++next)
      store_past_cache<T, C>(Cols<T, C>::zero(), sink.out + next * stride + column, past_cache);
  };
  std::uint64_t z = l.begin_nonzero;
  for (std::uint64_t i = l.first_row; i <= last; ++i) {
    const std::uint64_t end = std::min(begin[i + 1], l.end_nonzero);
    const Cols<T, C> sum = pass.sum_of(z, end);
    z = end;
    const std::uint64_t at = rows == nullptr ? i : rows[i];
    if (i == l.first_row || i == last) {
      sum.add_to(sink.at(at) + column);
      continue;
    }
    clear_to(at);
    store_past_cache<T, C>(sum, sink.out + at * stride + column, past_cache);
    next = at + 1;
  }
  clear_to(l.clear_to);
  if (past_cache) hwy::FlushStream();
}

/// The instance for a block of columns: narrow ones and many factors get the general one only.
template <class T>
struct RowPasses {
  const RowLoop<T>& l;

  template <int C, class Index, class Value, int Inputs, bool Whole>
  HWY_INLINE void with(std::uint64_t column) const {
    if (l.prefetched > 0) return run_rows<T, C, Index, Value, Inputs, Whole, true>(l, column);
    run_rows<T, C, Index, Value, Inputs, Whole, false>(l, column);
  }
  template <int C, class Index, class Value>
  HWY_INLINE void with_types(std::uint64_t column) const {
    if constexpr (C >= 16) {
      const bool whole = l.stride == C;
      if (l.inputs == 2)
        return whole ? with<C, Index, Value, 2, true>(column) : with<C, Index, Value, 2, false>(column);
      if (l.inputs == 3)
        return whole ? with<C, Index, Value, 3, true>(column) : with<C, Index, Value, 3, false>(column);
    }
    run_rows<T, C, Index, Value, 0, false, true>(l, column);
  }
  template <int C, class Value>
  HWY_INLINE void with_value(std::uint64_t column) const {
    l.short_indices ? with_types<C, std::uint16_t, Value>(column) : with_types<C, std::uint32_t, Value>(column);
  }
  template <int C>
  HWY_INLINE void run(std::uint64_t column) const {
    l.values != nullptr ? with_value<C, T>(column) : with_value<C, float>(column);
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
