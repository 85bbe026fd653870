// SPDX-License-Identifier: MIT
/// \file A block of columns of a row in vector registers. Compiled once per instruction set (Highway's way), so it has
/// no ordinary include guard.
#if defined(POLYAD_ROWS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYAD_ROWS_INL
#undef POLYAD_ROWS_INL
#else
#define POLYAD_ROWS_INL
#endif

#include <hwy/highway.h>

#include <atomic>
#include <cstdint>

#include "backends/cpu/wide_stores.hpp"
#include "kernels/mttkrp/output.hpp"

HWY_BEFORE_NAMESPACE();
namespace polyad::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// C columns of a row.
template <class T, int C>
struct Cols {
  using D = hn::CappedTag<T, static_cast<std::size_t>(C)>;
  static constexpr int lanes = static_cast<int>(hn::MaxLanes(D()));
  static constexpr int vectors = C / lanes;
  hn::Vec<D> v[vectors];

  static HWY_INLINE Cols zero() {
    Cols c;
    for (int i = 0; i < vectors; ++i) c.v[i] = hn::Zero(D());
    return c;
  }
  static HWY_INLINE Cols all(T x) {
    Cols c;
    for (int i = 0; i < vectors; ++i) c.v[i] = hn::Set(D(), x);
    return c;
  }
  static HWY_INLINE Cols load(const T* HWY_RESTRICT p) {
    Cols c;
    for (int i = 0; i < vectors; ++i) c.v[i] = hn::LoadU(D(), p + i * lanes);
    return c;
  }
  HWY_INLINE void store(T* HWY_RESTRICT p) const {
    for (int i = 0; i < vectors; ++i) hn::StoreU(v[i], D(), p + i * lanes);
  }
  /// this *= row
  HWY_INLINE void times(const T* HWY_RESTRICT row) {
    for (int i = 0; i < vectors; ++i) v[i] = hn::Mul(v[i], hn::LoadU(D(), row + i * lanes));
  }
  HWY_INLINE void times(const Cols& other) {
    for (int i = 0; i < vectors; ++i) v[i] = hn::Mul(v[i], other.v[i]);
  }
  /// this += x * row
  HWY_INLINE void add_scaled(T x, const T* HWY_RESTRICT row) {
    const auto s = hn::Set(D(), x);
    for (int i = 0; i < vectors; ++i) v[i] = hn::MulAdd(s, hn::LoadU(D(), row + i * lanes), v[i]);
  }
  /// this += a * row
  HWY_INLINE void add_product(const Cols& a, const T* HWY_RESTRICT row) {
    for (int i = 0; i < vectors; ++i) v[i] = hn::MulAdd(a.v[i], hn::LoadU(D(), row + i * lanes), v[i]);
  }
  HWY_INLINE void add(const Cols& other) {
    for (int i = 0; i < vectors; ++i) v[i] = hn::Add(v[i], other.v[i]);
  }
  /// p += this
  HWY_INLINE void add_to(T* HWY_RESTRICT p) const { add_to(p, cpu::halve_wide_stores); }
  /// \param halves cpu::halve_wide_stores, for loops that read it once: compilers take it for changed by every store
  HWY_INLINE void add_to(T* HWY_RESTRICT p, [[maybe_unused]] bool halves) const {
    for (int i = 0; i < vectors; ++i, p += lanes) {
#if HWY_CAP_GE512
      if (lanes * sizeof(T) == 64 && halves) {
        const hn::Half<D> half;
        hn::StoreU(hn::Add(hn::LoadU(half, p), hn::LowerHalf(half, v[i])), half, p);
        hn::StoreU(hn::Add(hn::LoadU(half, p + lanes / 2), hn::UpperHalf(half, v[i])), half, p + lanes / 2);
        continue;
      }
#endif
      hn::StoreU(hn::Add(hn::LoadU(D(), p), v[i]), D(), p);
    }
  }
};

/// Stores columns; whole cache lines that nobody reads soon need not be read before they are written.
template <class T, int C>
HWY_INLINE void store_past_cache(const Cols<T, C>& row, T* HWY_RESTRICT to, bool past_cache) {
  if constexpr (C * sizeof(T) % 64 == 0) {
    if (past_cache) {
      const typename Cols<T, C>::D d;
      for (int i = 0; i < Cols<T, C>::vectors; ++i) hn::Stream(row.v[i], d, to + i * Cols<T, C>::lanes);
      return;
    }
  }
  row.store(to);
}

/// Requests the cache lines of C columns.
template <class T, int C>
HWY_INLINE void prefetch_row(const T* p) {
  constexpr int per_line = 64 / static_cast<int>(sizeof(T));
  for (int c = 0; c < C; c += per_line) __builtin_prefetch(p + c);
}
template <class T, int C>
HWY_INLINE void prefetch_row_into_second_cache(const T* p) {
  constexpr int per_line = 64 / static_cast<int>(sizeof(T));
  for (int c = 0; c < C; c += per_line) __builtin_prefetch(p + c, 0, 2);
}
template <class T, int C>
HWY_INLINE void prefetch_row_to_write(const T* p) {
  constexpr int per_line = 64 / static_cast<int>(sizeof(T));
  for (int c = 0; c < C; c += per_line) __builtin_prefetch(p + c, 1);
}

/// The nonzeros themselves are requested too, so many at a time and so many ahead: rows come from anywhere, and among
/// them processors do not see that indices and values come one after the other. Nor can a row be requested whose index
/// is not there. 10 million nonzeros anywhere, a throwaway loop over copies on a Zen 5, f32, ms: 19.9, with nonzeros
/// requested 19.1, with rows 18.7, with both 15.7.
constexpr std::uint64_t stream_step = 32;
constexpr std::uint64_t stream_ahead = 512;

/// Requests the cache lines of stream_step elements, stream_ahead elements further on. By numbers, not pointers: they
/// may be behind the end of the array.
HWY_INLINE void request_elements(const void* elements, std::uint64_t bytes) {
  const std::uintptr_t first = reinterpret_cast<std::uintptr_t>(elements) + stream_ahead * bytes;
  for (std::uintptr_t byte = 0; byte < stream_step * bytes; byte += 64)
    __builtin_prefetch(reinterpret_cast<const void*>(first + byte));
}

/// Adds columns column .. column + C of a row to a sink.
template <class T, int C>
HWY_INLINE void add_row(const Sink<T>& sink, std::uint64_t row, std::uint64_t column, const Cols<T, C>& cols,
                        std::uint64_t end_column) {
  switch (sink.kind) {
    case SinkKind::own:
    case SinkKind::boundary:
      cols.add_to(sink.at(row) + column);
      return;
    case SinkKind::atomic: {
      alignas(64) T numbers[C];
      cols.store(numbers);
      T* out = sink.out + row * sink.stride + column;
      for (int c = 0; c < C && column + static_cast<std::uint64_t>(c) < end_column; ++c)
        std::atomic_ref<T>(out[c]).fetch_add(numbers[c], std::memory_order_relaxed);
      return;
    }
  }
}

/// Calls f.template run<C>(column) for blocks of 64 (with vectors of 512 bits), 32, 16, 8 and 4 columns that cover a
/// row. At rank 64 a row in one piece in place of two: alto on uber 41 ms in place of 89, sweep 42 and 53 (f32).
/// Without vectors no more than 8 numbers stay in registers, and larger blocks are what takes longest to compile (half
/// of tree_loop.cpp).
template <class F>
HWY_INLINE void for_column_blocks(std::uint64_t stride, const F& f) {
  std::uint64_t column = 0;
#if POLYAD_FEW_INSTANCES || HWY_TARGET == HWY_SCALAR
  for (; column + 8 <= stride; column += 8) f.template run<8>(column);
#else
#if HWY_CAP_GE512
  for (; column + 64 <= stride; column += 64) f.template run<64>(column);
#endif
  for (; column + 32 <= stride; column += 32) f.template run<32>(column);
  if (column + 16 <= stride) {
    f.template run<16>(column);
    column += 16;
  }
  if (column + 8 <= stride) {
    f.template run<8>(column);
    column += 8;
  }
#endif
  if (column + 4 <= stride) f.template run<4>(column);
}

}  // namespace polyad::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
