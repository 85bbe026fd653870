// SPDX-License-Identifier: MIT
#include "kernels/mttkrp/nonzero_loop.hpp"

#include "backends/cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/mttkrp/nonzero_loop.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/mttkrp/rows-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace polyad::HWY_NAMESPACE {

/// One pass over the nonzeros of a block for C columns. Inputs: number of factors when it is 2 or 3, else 0.
template <class Index, class T, int C, int Inputs, bool Runs>
struct Pass {
  const NonzeroLoop<Index, T>& l;
  std::uint64_t column;

  HWY_INLINE int inputs() const { return Inputs > 0 ? Inputs : l.inputs; }
  HWY_INLINE const T* row(int m, std::size_t k) const {
    return l.factors[static_cast<std::size_t>(m)] +
           l.indices[static_cast<std::size_t>(m)][k * l.index_stride] * l.stride + column;
  }
  HWY_INLINE void prefetch(std::size_t k) const {
    for (int m = 0; m < l.prefetched; ++m) prefetch_row<T, C>(row(m, k));
    if (l.prefetch_output) prefetch_row_to_write<T, C>(l.sink.out + l.rows[k * l.index_stride] * l.stride + column);
  }
  HWY_INLINE Cols<T, C> product(std::size_t k) const {
    Cols<T, C> p = Cols<T, C>::all(l.values[k]);
    for (int m = 0; m < inputs(); ++m) p.times(row(m, k));
    return p;
  }
  HWY_INLINE void flush(std::uint64_t at, const Cols<T, C>& sum) const {
    add_row<T, C>(l.sink, at, column, sum, l.cols);
  }

  template <bool Ahead>
  HWY_INLINE void each(std::size_t begin, std::size_t end) const {
    for (std::size_t k = begin; k < end; ++k) {
      if (Ahead) prefetch(k + prefetch_distance);
      flush(l.rows[k * l.index_stride], product(k));
    }
  }
  template <bool Ahead>
  HWY_INLINE void in_runs(std::size_t begin, std::size_t end) const {
    std::size_t k = begin;
    while (k < end) {
      const Index at = l.rows[k * l.index_stride];
      if (Ahead) prefetch(k + prefetch_distance);
      Cols<T, C> sum = product(k);
      for (++k; k < end && l.rows[k * l.index_stride] == at; ++k) {
        if (Ahead) prefetch(k + prefetch_distance);
        sum.add(product(k));
      }
      flush(at, sum);
    }
  }
  void run() const {
    const bool any = l.prefetched > 0 || l.prefetch_output;
    const std::size_t ahead =
        any && l.available > prefetch_distance ? std::min(l.count, l.available - prefetch_distance) : 0;
    if (Runs) {
      in_runs<true>(0, ahead);
      in_runs<false>(ahead, l.count);
    } else {
      each<true>(0, ahead);
      each<false>(ahead, l.count);
    }
  }
};

template <class Index, class T>
struct Passes {
  const NonzeroLoop<Index, T>& l;

  template <int C, int Inputs>
  HWY_INLINE void with(std::uint64_t column) const {
    if (l.runs) {
      Pass<Index, T, C, Inputs, true>{l, column}.run();
    } else {
      Pass<Index, T, C, Inputs, false>{l, column}.run();
    }
  }
  template <int C>
  HWY_INLINE void run(std::uint64_t column) const {
    if (l.inputs == 2) return with<C, 2>(column);
    if (l.inputs == 3) return with<C, 3>(column);
    with<C, 0>(column);
  }
};

void AddU32F32(const NonzeroLoop<std::uint32_t, float>& l) {
  for_column_blocks(l.stride, Passes<std::uint32_t, float>{l});
}
void AddU32F64(const NonzeroLoop<std::uint32_t, double>& l) {
  for_column_blocks(l.stride, Passes<std::uint32_t, double>{l});
}
void AddU64F32(const NonzeroLoop<std::uint64_t, float>& l) {
  for_column_blocks(l.stride, Passes<std::uint64_t, float>{l});
}
void AddU64F64(const NonzeroLoop<std::uint64_t, double>& l) {
  for_column_blocks(l.stride, Passes<std::uint64_t, double>{l});
}

}  // namespace polyad::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyad {

HWY_EXPORT(AddU32F32);
HWY_EXPORT(AddU32F64);
HWY_EXPORT(AddU64F32);
HWY_EXPORT(AddU64F64);

void add_nonzeros(const NonzeroLoop<std::uint32_t, float>& l) { HWY_DYNAMIC_DISPATCH(AddU32F32)(l); }
void add_nonzeros(const NonzeroLoop<std::uint32_t, double>& l) { HWY_DYNAMIC_DISPATCH(AddU32F64)(l); }
void add_nonzeros(const NonzeroLoop<std::uint64_t, float>& l) { HWY_DYNAMIC_DISPATCH(AddU64F32)(l); }
void add_nonzeros(const NonzeroLoop<std::uint64_t, double>& l) { HWY_DYNAMIC_DISPATCH(AddU64F64)(l); }

}  // namespace polyad
#endif
