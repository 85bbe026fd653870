// SPDX-License-Identifier: MIT
#include "kernels/mttkrp/fibre_loop.hpp"

#include "formats/sweep/sweep.hpp"

#include "backends/cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/mttkrp/fibre_loop.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/mttkrp/rows-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace polyad::HWY_NAMESPACE {

/// Rows are requested this many leaves and fibres ahead; 16 to 32 leaves made no difference, 64 cost 8 %.
constexpr std::uint64_t leaves_ahead = 32;
constexpr std::uint64_t fibres_ahead = 8;
static_assert(leaves_ahead <= Sweep::padding && fibres_ahead <= Sweep::padding);

/// The product of the rows of N modes (0: as many as there are) of a fibre, all in local variables: a vector store may
/// alias anything, and what is read through a reference would be loaded again after each.
/// Whole: a row is these C columns and nothing else, so that addresses need no multiplication: 0.91 to 1.0 of the time
/// of a sweep (vast, uber, nell2 at ranks 16 to 64, Zen 5, in turn).
template <class T, int C, class Id, int N, bool Whole>
struct FibreRows {
  static constexpr std::size_t room = N == 0 ? max_order : N;
  std::array<FibreMode<T>, room> modes;
  std::uint64_t row_stride;
  int count;

  HWY_INLINE FibreRows(const FibreLoop<T>& l, std::uint64_t column)
      : row_stride(l.stride), count(N == 0 ? l.input_count : N) {
    for (int m = 0; m < count; ++m) {
      modes[static_cast<std::size_t>(m)] = l.inputs[static_cast<std::size_t>(m)];
      modes[static_cast<std::size_t>(m)].factor += column;
    }
  }

  HWY_INLINE std::uint64_t stride() const { return Whole ? C : row_stride; }
  HWY_INLINE const T* row(const FibreMode<T>& mode, std::uint64_t fibre) const {
    return mode.factor + std::uint64_t{static_cast<const Id*>(mode.ids)[fibre]} * stride();
  }
  HWY_INLINE void multiply(std::uint64_t fibre, Cols<T, C>& row_so_far, int from) const {
    for (int m = from; m < count; ++m) {
      const FibreMode<T>& mode = modes[static_cast<std::size_t>(m)];
      if (mode.prefetched) prefetch_row<T, C>(row(mode, fibre + fibres_ahead));
      row_so_far.times(row(mode, fibre));
    }
  }
  /// this *= all rows
  HWY_INLINE void multiply(std::uint64_t fibre, Cols<T, C>& row_so_far) const { multiply(fibre, row_so_far, 0); }
  HWY_INLINE Cols<T, C> product(std::uint64_t fibre) const {
    if (modes[0].prefetched) prefetch_row<T, C>(row(modes[0], fibre + fibres_ahead));
    Cols<T, C> p = Cols<T, C>::load(row(modes[0], fibre));
    multiply(fibre, p, 1);
    return p;
  }
};

/// Rows that fibres add to, by the index of each.
template <class T, int C, class Id, bool Whole>
struct FibreOutput {
  const Id* ids;
  T* out;
  std::uint64_t row_stride;
  bool requested;
  bool halves;

  HWY_INLINE FibreOutput(const FibreLoop<T>& l, T* rows, std::uint64_t column)
      : ids(static_cast<const Id*>(l.output_ids)),
        out(rows + column),
        row_stride(l.stride),
        requested(l.prefetch_output),
        halves(cpu::halve_wide_stores) {}

  HWY_INLINE T* row(std::uint64_t fibre) const { return out + std::uint64_t{ids[fibre]} * (Whole ? C : row_stride); }
  HWY_INLINE void add(std::uint64_t fibre, const Cols<T, C>& sum) const {
    if (requested) prefetch_row_to_write<T, C>(row(fibre + fibres_ahead));
    sum.add_to(row(fibre), halves);
  }
};

/// sums(leaf) += x * row; as Cols::add_to
template <class T, int C>
HWY_INLINE void add_scaled_to(T x, const Cols<T, C>& row, T* HWY_RESTRICT to, [[maybe_unused]] bool halves) {
  using Row = Cols<T, C>;
  const typename Row::D d;
  for (int i = 0; i < Row::vectors; ++i, to += Row::lanes) {
#if HWY_CAP_GE512
    if (Row::lanes * sizeof(T) == 64 && halves) {
      const hn::Half<typename Row::D> half;
      const auto s = hn::Set(half, x);
      hn::StoreU(hn::MulAdd(s, hn::LowerHalf(half, row.v[i]), hn::LoadU(half, to)), half, to);
      T* upper = to + Row::lanes / 2;
      hn::StoreU(hn::MulAdd(s, hn::UpperHalf(half, row.v[i]), hn::LoadU(half, upper)), half, upper);
      continue;
    }
#endif
    hn::StoreU(hn::MulAdd(hn::Set(d, x), row.v[i], hn::LoadU(d, to)), d, to);
  }
}

/// Requests leaves and values ahead, once for every stream_step of them or once a fibre: of long fibres the processor
/// sees the rest by itself. \return the leaf at which to do it again
template <class Leaf, class T>
HWY_INLINE const Leaf* request_leaves(const Leaf* leaf, const T* values) {
  request_elements(leaf, sizeof(Leaf));
  request_elements(values, sizeof(T));
  return leaf + stream_step;
}

template <class T, int C, class Leaf, class Id, int N, bool Whole>
HWY_NOINLINE void gather(const FibreLoop<T>& l, const FibreChunk& chunk, T* out, const Leaf* leaves,
                         std::uint64_t column) {
  using Row = Cols<T, C>;
  const FibreRows<T, C, Id, N, Whole> rows(l, column);
  const FibreOutput<T, C, Id, Whole> output(l, out, column);
  const T* values = l.values + chunk.first_nonzero;
  const Leaf* leaf = leaves + chunk.first_nonzero;
  const T* table = l.table + column;
  const std::uint64_t stride = rows.stride();
  T* products = l.products == nullptr ? nullptr : l.products + (chunk.first_fibre - l.first_product) * stride + column;
  const bool past_cache =
      l.products_past_cache && stride * sizeof(T) % 64 == 0 && reinterpret_cast<std::uintptr_t>(products) % 64 == 0;
  const bool prefetch_leaves = l.prefetch_leaves;
  const Leaf* next_request = leaf;
  std::uint64_t fibre = chunk.first_fibre;
  for (std::size_t length = 1; length <= chunk.lengths.size(); ++length) {
    const std::uint64_t end = fibre + chunk.lengths[length - 1];
    for (; fibre < end; ++fibre) {
      if (leaf >= next_request) next_request = request_leaves(leaf, values);
      Row sum = Row::zero();
      if (prefetch_leaves) {
        for (std::size_t i = 0; i < length; ++i) {
          prefetch_row<T, C>(table + leaf[i + leaves_ahead] * stride);
          sum.add_scaled(values[i], table + leaf[i] * stride);
        }
      } else {
        for (std::size_t i = 0; i < length; ++i) sum.add_scaled(values[i], table + leaf[i] * stride);
      }
      leaf += length;
      values += length;
      if (products != nullptr) {
        store_past_cache<T, C>(sum, products, past_cache);
        products += stride;
      }
      rows.multiply(fibre, sum);
      output.add(fibre, sum);
    }
  }
  if (past_cache) hwy::FlushStream();
}

template <class T, int C, class Id, int N, bool Whole>
HWY_NOINLINE void add_kept(const FibreLoop<T>& l, std::uint64_t begin, std::uint64_t end, T* out,
                           std::uint64_t column) {
  const FibreRows<T, C, Id, N, Whole> rows(l, column);
  const FibreOutput<T, C, Id, Whole> output(l, out, column);
  const std::uint64_t stride = rows.stride();
  const T* products = l.products + (begin - l.first_product) * stride + column;
  for (std::uint64_t fibre = begin; fibre < end; ++fibre, products += stride) {
    Cols<T, C> sum = Cols<T, C>::load(products);
    rows.multiply(fibre, sum);
    output.add(fibre, sum);
  }
}

template <class T, int C, class Leaf, class Id, int N, bool Whole>
HWY_NOINLINE void scatter(const FibreLoop<T>& l, const FibreChunk& chunk, T* all, const Leaf* leaves,
                          std::uint64_t column) {
  const FibreRows<T, C, Id, N, Whole> rows(l, column);
  T* sums = all + column;
  const T* values = l.values + chunk.first_nonzero;
  const Leaf* leaf = leaves + chunk.first_nonzero;
  const std::uint64_t stride = rows.stride();
  const bool prefetch_leaves = l.prefetch_leaves;
  const bool halves = cpu::halve_wide_stores;
  const Leaf* next_request = leaf;
  std::uint64_t fibre = chunk.first_fibre;
  for (std::size_t length = 1; length <= chunk.lengths.size(); ++length) {
    const std::uint64_t end = fibre + chunk.lengths[length - 1];
    for (; fibre < end; ++fibre) {
      if (leaf >= next_request) next_request = request_leaves(leaf, values);
      const Cols<T, C> product = rows.product(fibre);
      if (prefetch_leaves) {
        for (std::size_t i = 0; i < length; ++i) {
          prefetch_row_to_write<T, C>(sums + leaf[i + leaves_ahead] * stride);
          add_scaled_to<T, C>(values[i], product, sums + leaf[i] * stride, halves);
        }
      } else {
        for (std::size_t i = 0; i < length; ++i)
          add_scaled_to<T, C>(values[i], product, sums + leaf[i] * stride, halves);
      }
      leaf += length;
      values += length;
    }
  }
}

/// Calls f with the type of the fibres' indices, the number of modes that are multiplied as constants (1, 2, or 0 for
/// any other), and whether a row is one block of columns. Narrow blocks have the general loop only.
template <int C, class Id, int N, class T, class F>
HWY_INLINE void with_stride(const FibreLoop<T>& l, const F& f) {
  if constexpr (C >= 16) {
    if (l.stride == C) return f.template run<Id, N, true>();
  }
  f.template run<Id, N, false>();
}
template <int C, class Id, class T, class F>
HWY_INLINE void with_inputs(const FibreLoop<T>& l, const F& f) {
  if constexpr (C >= 16) {
    if (l.input_count == 1) return with_stride<C, Id, 1>(l, f);
    if (l.input_count == 2) return with_stride<C, Id, 2>(l, f);
  }
  with_stride<C, Id, 0>(l, f);
}
template <int C, class T, class F>
HWY_INLINE void with_ids(const FibreLoop<T>& l, const F& f) {
  l.short_ids ? with_inputs<C, std::uint16_t>(l, f) : with_inputs<C, std::uint32_t>(l, f);
}

template <class T, int C>
struct GatherCall {
  const FibreLoop<T>& l;
  const FibreChunk& chunk;
  T* out;
  std::uint64_t column;
  template <class Id, int N, bool Whole>
  HWY_INLINE void run() const {
    if (l.short_leaves != nullptr)
      return gather<T, C, std::uint16_t, Id, N, Whole>(l, chunk, out, l.short_leaves, column);
    gather<T, C, std::uint32_t, Id, N, Whole>(l, chunk, out, l.leaves, column);
  }
};

template <class T, int C>
struct KeptCall {
  const FibreLoop<T>& l;
  std::uint64_t begin;
  std::uint64_t end;
  T* out;
  std::uint64_t column;
  template <class Id, int N, bool Whole>
  HWY_INLINE void run() const {
    add_kept<T, C, Id, N, Whole>(l, begin, end, out, column);
  }
};

template <class T, int C>
struct ScatterCall {
  const FibreLoop<T>& l;
  const FibreChunk& chunk;
  T* sums;
  std::uint64_t column;
  template <class Id, int N, bool Whole>
  HWY_INLINE void run() const {
    if (l.short_leaves != nullptr)
      return scatter<T, C, std::uint16_t, Id, N, Whole>(l, chunk, sums, l.short_leaves, column);
    scatter<T, C, std::uint32_t, Id, N, Whole>(l, chunk, sums, l.leaves, column);
  }
};

template <class T>
struct GatherColumns {
  const FibreLoop<T>& l;
  const FibreChunk& chunk;
  T* out;
  template <int C>
  HWY_INLINE void run(std::uint64_t column) const {
    with_ids<C>(l, GatherCall<T, C>{l, chunk, out, column});
  }
};

template <class T>
struct KeptColumns {
  const FibreLoop<T>& l;
  std::uint64_t begin;
  std::uint64_t end;
  T* out;
  template <int C>
  HWY_INLINE void run(std::uint64_t column) const {
    with_ids<C>(l, KeptCall<T, C>{l, begin, end, out, column});
  }
};

template <class T>
struct ScatterColumns {
  const FibreLoop<T>& l;
  const FibreChunk& chunk;
  T* sums;
  template <int C>
  HWY_INLINE void run(std::uint64_t column) const {
    with_ids<C>(l, ScatterCall<T, C>{l, chunk, sums, column});
  }
};

/// The digits of a merged index.
template <class T>
struct Digits {
  std::array<std::uint64_t, max_order> at = {};

  HWY_INLINE Digits(const LeafTable<T>& t, std::uint64_t merged) {
    for (int m = t.modes - 1; m >= 0; --m) {
      at[static_cast<std::size_t>(m)] = merged % t.lengths[static_cast<std::size_t>(m)];
      merged /= t.lengths[static_cast<std::size_t>(m)];
    }
  }
};

template <class T>
struct FillColumns {
  const LeafTable<T>& t;
  std::uint64_t begin;
  std::uint64_t end;
  T* rows;
  template <int C>
  HWY_INLINE void run(std::uint64_t column) const {
    for (std::uint64_t k = begin; k < end; ++k) {
      const Digits<T> digits(t, k);
      Cols<T, C> product = Cols<T, C>::load(t.factors[0] + digits.at[0] * t.stride + column);
      for (std::size_t m = 1; m < static_cast<std::size_t>(t.modes); ++m)
        product.times(t.factors[m] + digits.at[m] * t.stride + column);
      product.store(rows + k * t.stride + column);
    }
  }
};

template <class T>
struct FoldColumns {
  const LeafTable<T>& t;
  const T* sums;
  const std::uint8_t* occupied;
  std::size_t position;
  std::uint64_t begin;
  std::uint64_t end;
  T* out;
  template <int C>
  HWY_INLINE void run(std::uint64_t column) const {
    std::uint64_t below = 1;  // merged indices that differ only in digits below the position
    std::uint64_t above = 1;
    for (std::size_t m = 0; m < static_cast<std::size_t>(t.modes); ++m) {
      if (m < position) above *= t.lengths[m];
      if (m > position) below *= t.lengths[m];
    }
    for (std::uint64_t i = begin; i < end; ++i) {
      Cols<T, C> total = Cols<T, C>::zero();
      for (std::uint64_t a = 0; a < above; ++a)
        for (std::uint64_t b = 0; b < below; ++b) {
          const std::uint64_t k = (a * t.lengths[position] + i) * below + b;
          if (occupied[k] == 0) continue;
          const Digits<T> digits(t, k);
          Cols<T, C> term = Cols<T, C>::load(sums + k * t.stride + column);
          for (std::size_t m = 0; m < static_cast<std::size_t>(t.modes); ++m)
            if (m != position) term.times(t.factors[m] + digits.at[m] * t.stride + column);
          total.add(term);
        }
      total.store(out + i * t.stride + column);
    }
  }
};

#define POLYAD_FIBRE_LOOPS(T, suffix)                                                                          \
  void gather_##suffix(const FibreLoop<T>& l, const FibreChunk& chunk, T* out) {                               \
    for_column_blocks(l.stride, GatherColumns<T>{l, chunk, out});                                              \
  }                                                                                                            \
  void kept_##suffix(const FibreLoop<T>& l, std::uint64_t begin, std::uint64_t end, T* out) {                  \
    for_column_blocks(l.stride, KeptColumns<T>{l, begin, end, out});                                           \
  }                                                                                                            \
  void scatter_##suffix(const FibreLoop<T>& l, const FibreChunk& chunk, T* sums) {                             \
    for_column_blocks(l.stride, ScatterColumns<T>{l, chunk, sums});                                            \
  }                                                                                                            \
  void fill_##suffix(const LeafTable<T>& t, std::uint64_t begin, std::uint64_t end, T* rows) {                 \
    for_column_blocks(t.stride, FillColumns<T>{t, begin, end, rows});                                          \
  }                                                                                                            \
  void fold_##suffix(const LeafTable<T>& t, const T* sums, const std::uint8_t* occupied, int position,         \
                     std::uint64_t begin, std::uint64_t end, T* out) {                                         \
    for_column_blocks(t.stride,                                                                                \
                      FoldColumns<T>{t, sums, occupied, static_cast<std::size_t>(position), begin, end, out}); \
  }
POLYAD_FIBRE_LOOPS(float, f32)
POLYAD_FIBRE_LOOPS(double, f64)
#undef POLYAD_FIBRE_LOOPS

}  // namespace polyad::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyad {

#define POLYAD_FIBRE_LOOPS(T, suffix)                                                               \
  HWY_EXPORT(gather_##suffix);                                                                      \
  HWY_EXPORT(kept_##suffix);                                                                        \
  HWY_EXPORT(scatter_##suffix);                                                                     \
  HWY_EXPORT(fill_##suffix);                                                                        \
  HWY_EXPORT(fold_##suffix);                                                                        \
  void gather_fibres(const FibreLoop<T>& l, const FibreChunk& chunk, T* out) {                      \
    HWY_DYNAMIC_DISPATCH(gather_##suffix)(l, chunk, out);                                           \
  }                                                                                                 \
  void add_products(const FibreLoop<T>& l, std::uint64_t begin, std::uint64_t end, T* out) {        \
    HWY_DYNAMIC_DISPATCH(kept_##suffix)(l, begin, end, out);                                        \
  }                                                                                                 \
  void scatter_fibres(const FibreLoop<T>& l, const FibreChunk& chunk, T* sums) {                    \
    HWY_DYNAMIC_DISPATCH(scatter_##suffix)(l, chunk, sums);                                         \
  }                                                                                                 \
  void fill_table(const LeafTable<T>& t, std::uint64_t begin, std::uint64_t end, T* rows) {         \
    HWY_DYNAMIC_DISPATCH(fill_##suffix)(t, begin, end, rows);                                       \
  }                                                                                                 \
  void fold_table(const LeafTable<T>& t, const T* sums, const std::uint8_t* occupied, int position, \
                  std::uint64_t begin, std::uint64_t end, T* out) {                                 \
    HWY_DYNAMIC_DISPATCH(fold_##suffix)(t, sums, occupied, position, begin, end, out);              \
  }
POLYAD_FIBRE_LOOPS(float, f32)
POLYAD_FIBRE_LOOPS(double, f64)
#undef POLYAD_FIBRE_LOOPS

}  // namespace polyad
#endif
