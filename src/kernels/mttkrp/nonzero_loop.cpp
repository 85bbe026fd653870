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

/// How the products of a pass reach the output.
enum class Adding {
  own,      // each by itself, to rows that only this thread writes
  shared,   // each by itself, to whatever the sink is
  in_runs,  // summed in registers while the row stays the same
};

/// One pass over the nonzeros of a block for C columns. Inputs: number of factors when it is 2, 3 or 4, else 0. Whole:
/// a row is these C columns and nothing else, and indices lie side by side, so that addresses need no multiplication.
/// Everything is copied into locals first: a vector store may alias anything, so members would be read again after
/// each.
template <class Index, class T, int C, int Inputs, Adding adding, bool Whole>
struct Pass {
  static constexpr int most = Inputs > 0 ? Inputs : max_order;

  const T* factors[most];      // [inputs], at the first column
  const Index* indices[most];  // [inputs]
  const Index* rows;
  const T* values;
  T* out;
  std::size_t stride_of_indices;
  std::uint64_t row_stride;
  std::uint64_t column;
  std::uint64_t cols;
  int input_count;
  int prefetched;
  bool prefetch_output;
  Sink<T> sink;

  HWY_INLINE Pass(const NonzeroLoop<Index, T>& l, std::uint64_t first_column)
      : rows(l.rows),
        values(l.values),
        out(l.sink.out + first_column),
        stride_of_indices(l.index_stride),
        row_stride(l.stride),
        column(first_column),
        cols(l.cols),
        input_count(l.inputs),
        prefetched(l.prefetched),
        prefetch_output(l.prefetch_output),
        sink(l.sink) {
    for (int m = 0; m < inputs(); ++m) {
      factors[m] = l.factors[static_cast<std::size_t>(m)] + first_column;
      indices[m] = l.indices[static_cast<std::size_t>(m)];
    }
  }

  HWY_INLINE int inputs() const { return Inputs > 0 ? Inputs : input_count; }
  HWY_INLINE std::uint64_t stride() const { return Whole ? C : row_stride; }
  HWY_INLINE std::size_t index_stride() const { return Whole ? 1 : stride_of_indices; }
  HWY_INLINE const T* row(int m, std::size_t at) const { return factors[m] + indices[m][at] * stride(); }
  HWY_INLINE void prefetch(std::size_t k) const {
    const std::size_t at = (k + prefetch_distance) * index_stride();
    for (int m = 0; m < prefetched; ++m) prefetch_row<T, C>(row(m, at));
    if (prefetch_output) prefetch_row_to_write<T, C>(out + rows[at] * stride());
  }
  HWY_INLINE Cols<T, C> product(std::size_t k) const {
    Cols<T, C> p = Cols<T, C>::all(values[k]);
    for (int m = 0; m < inputs(); ++m) p.times(row(m, k * index_stride()));
    return p;
  }
  HWY_INLINE void flush(std::uint64_t at, const Cols<T, C>& sum) const {
    if (adding == Adding::own) {
      sum.add_to(out + at * stride());
    } else {
      add_row<T, C>(sink, at, column, sum, cols);
    }
  }

  template <bool Ahead>
  HWY_INLINE void each(std::size_t begin, std::size_t end) const {
    for (std::size_t k = begin; k < end; ++k) {
      if (Ahead) prefetch(k);
      flush(rows[k * index_stride()], product(k));
    }
  }
  /// A long run is summed in four sums: one would wait for itself at every nonzero.
  template <bool Ahead>
  HWY_INLINE void in_runs(std::size_t begin, std::size_t end) const {
    std::size_t k = begin;
    while (k < end) {
      const Index at = rows[k * index_stride()];
      std::size_t stop = k + 1;
      while (stop < end && rows[stop * index_stride()] == at) ++stop;
      if (Ahead) prefetch(k);
      Cols<T, C> sum = product(k++);
      if (stop - k >= 8) {
        Cols<T, C> second = Cols<T, C>::all(T{0});
        Cols<T, C> third = second;
        Cols<T, C> fourth = second;
        for (; k + 4 <= stop; k += 4) {
          if (Ahead)
            for (std::size_t i = 0; i < 4; ++i) prefetch(k + i);
          sum.add(product(k));
          second.add(product(k + 1));
          third.add(product(k + 2));
          fourth.add(product(k + 3));
        }
        second.add(third);
        sum.add(fourth);
        sum.add(second);
      }
      for (; k < stop; ++k) {
        if (Ahead) prefetch(k);
        sum.add(product(k));
      }
      flush(at, sum);
    }
  }
  HWY_INLINE void run(std::size_t count, std::size_t available) const {
    const bool any = prefetched > 0 || prefetch_output;
    const std::size_t ahead = any && available > prefetch_distance ? std::min(count, available - prefetch_distance) : 0;
    if (adding == Adding::in_runs) {
      in_runs<true>(0, ahead);
      in_runs<false>(ahead, count);
    } else {
      each<true>(0, ahead);
      each<false>(ahead, count);
    }
  }
};

/// One instance, one function: the register allocation of one loop does not suffer from the others.
template <class Index, class T, int C, int Inputs, Adding adding, bool Whole>
HWY_NOINLINE void run_pass(const NonzeroLoop<Index, T>& l, std::uint64_t column) {
  const Pass<Index, T, C, Inputs, adding, Whole> pass(l, column);
  pass.run(l.count, l.available);
}

/// The instance for a block of columns. 64-bit indices and blocks of at most 4 columns get the general ones only,
/// narrow blocks of longer rows those of two inputs beside them: two thirds of what all would take to compile.
template <class Index, class T>
struct Passes {
  const NonzeroLoop<Index, T>& l;

  template <int C, int Inputs, bool Whole>
  HWY_INLINE void with(std::uint64_t column) const {
    if (l.runs) return run_pass<Index, T, C, Inputs, Adding::in_runs, Whole>(l, column);
    run_pass<Index, T, C, Inputs, Adding::own, Whole>(l, column);
  }
  template <int C, bool Whole>
  HWY_INLINE void with_inputs(std::uint64_t column) const {
    if (!l.runs && l.sink.kind != SinkKind::own) return run_pass<Index, T, C, 0, Adding::shared, false>(l, column);
    if constexpr (sizeof(Index) == 4 && C > 4 && !POLYAD_FEW_INSTANCES) {
      if (l.inputs == 2) return with<C, 2, Whole>(column);
      if constexpr (Whole || C >= 16 || HWY_TARGET == HWY_SCALAR) {
        if (l.inputs == 3) return with<C, 3, Whole>(column);
        if (l.inputs == 4) return with<C, 4, Whole>(column);
      }
    }
    with<C, 0, Whole>(column);
  }
  template <int C>
  HWY_INLINE void run(std::uint64_t column) const {
    if constexpr (sizeof(Index) == 4 && C > 4) {
      if (l.stride == C && l.index_stride == 1) return with_inputs<C, true>(column);
    }
    with_inputs<C, false>(column);
  }
};

void add_u32_f32(const NonzeroLoop<std::uint32_t, float>& l) {
  for_column_blocks(l.stride, Passes<std::uint32_t, float>{l});
}
void add_u32_f64(const NonzeroLoop<std::uint32_t, double>& l) {
  for_column_blocks(l.stride, Passes<std::uint32_t, double>{l});
}
void add_u64_f32(const NonzeroLoop<std::uint64_t, float>& l) {
  for_column_blocks(l.stride, Passes<std::uint64_t, float>{l});
}
void add_u64_f64(const NonzeroLoop<std::uint64_t, double>& l) {
  for_column_blocks(l.stride, Passes<std::uint64_t, double>{l});
}

}  // namespace polyad::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyad {

HWY_EXPORT(add_u32_f32);
HWY_EXPORT(add_u32_f64);
HWY_EXPORT(add_u64_f32);
HWY_EXPORT(add_u64_f64);

void add_nonzeros(const NonzeroLoop<std::uint32_t, float>& l) { HWY_DYNAMIC_DISPATCH(add_u32_f32)(l); }
void add_nonzeros(const NonzeroLoop<std::uint32_t, double>& l) { HWY_DYNAMIC_DISPATCH(add_u32_f64)(l); }
void add_nonzeros(const NonzeroLoop<std::uint64_t, float>& l) { HWY_DYNAMIC_DISPATCH(add_u64_f32)(l); }
void add_nonzeros(const NonzeroLoop<std::uint64_t, double>& l) { HWY_DYNAMIC_DISPATCH(add_u64_f64)(l); }

}  // namespace polyad
#endif
