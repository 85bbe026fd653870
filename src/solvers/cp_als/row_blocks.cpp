// SPDX-License-Identifier: MIT
#include "solvers/cp_als/row_blocks.hpp"

#include <algorithm>

#include "backends/cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "solvers/cp_als/row_blocks.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace polyad::cp_als_detail::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
using Tag = hn::CappedTag<T, 64 / sizeof(T)>;
template <class T>
constexpr int tile_vectors = static_cast<int>(tile_columns<T> / hn::MaxLanes(Tag<T>()));
/// Sums of eight vectors hide the latency of the fused multiply-add, and more would not fit 16 registers. Vectors of 64
/// bytes come with 32 of them: square tiles, so that a row is read once (Gram matrix at rank 16 in f32: 2.9 ns a row in
/// place of 4.2).
template <class T>
constexpr int tile_rows = tile_vectors<T> == 1 ? static_cast<int>(tile_columns<T>) : 4;

/// out (Count x tile_columns) = sum over k < count of left[j * left_row + k * left_step] * right[k * columns ..]. Both
/// products of the pass are of this form: V * W has left_row = columns and left_step = 1, A'A has left_row = 1 and
/// left_step = columns.
/// \tparam vectors side by side
template <class T, int Count, int vectors = tile_vectors<T>>
HWY_INLINE void tile(const T* HWY_RESTRICT left, std::uint64_t left_row, std::uint64_t left_step,
                     const T* HWY_RESTRICT right, std::uint64_t columns, std::uint64_t count, T* HWY_RESTRICT out,
                     std::uint64_t out_row) {
  const Tag<T> d;
  const std::size_t lanes = hn::Lanes(d);
  hn::Vec<Tag<T>> sums[Count][vectors];
  for (int j = 0; j < Count; ++j)
    for (int v = 0; v < vectors; ++v) sums[j][v] = hn::Zero(d);
  for (std::uint64_t k = 0; k < count; ++k) {
    hn::Vec<Tag<T>> row[vectors];
    for (int v = 0; v < vectors; ++v) row[v] = hn::LoadU(d, right + k * columns + static_cast<std::size_t>(v) * lanes);
    for (int j = 0; j < Count; ++j) {
      const auto factor = hn::Set(d, left[static_cast<std::uint64_t>(j) * left_row + k * left_step]);
      for (int v = 0; v < vectors; ++v) sums[j][v] = hn::MulAdd(factor, row[v], sums[j][v]);
    }
  }
  for (int j = 0; j < Count; ++j)
    for (int v = 0; v < vectors; ++v)
      hn::StoreU(sums[j][v], d, out + static_cast<std::uint64_t>(j) * out_row + static_cast<std::size_t>(v) * lanes);
}

/// after = before * solution, for the rows that are not solved.
template <class T>
void multiply_rows(const Block<T>& b, const T* solution) {
  constexpr int rows = tile_rows<T>;
  for (std::uint64_t s = 0; s < b.columns; s += tile_columns<T>) {
    std::uint64_t i = b.solved;
    for (; i + rows <= b.count; i += rows)
      tile<T, rows>(b.before + i * b.columns, b.columns, 1, solution + s, b.columns, b.columns,
                    b.after + i * b.columns + s, b.columns);
    for (; i < b.count; ++i)
      tile<T, 1>(b.before + i * b.columns, b.columns, 1, solution + s, b.columns, b.columns,
                 b.after + i * b.columns + s, b.columns);
  }
}

/// Count rows of V vectors: row = row * solution, and sums += the row before * after. A row is in registers before
/// anything of it is stored.
template <class T, int Count, int V>
HWY_INLINE void solve_tile(T* rows, const T* HWY_RESTRICT solution, hn::Vec<Tag<T>>* sums) {
  const Tag<T> d;
  constexpr std::uint64_t columns = V * hn::MaxLanes(Tag<T>());
  hn::Vec<Tag<T>> solved[Count][V];
  for (int j = 0; j < Count; ++j)
    for (int v = 0; v < V; ++v) solved[j][v] = hn::Zero(d);
  for (std::uint64_t k = 0; k < columns; ++k) {
    hn::Vec<Tag<T>> right[V];
    for (int v = 0; v < V; ++v)
      right[v] = hn::LoadU(d, solution + k * columns + static_cast<std::size_t>(v) * hn::Lanes(d));
    for (int j = 0; j < Count; ++j) {
      const auto left = hn::Set(d, rows[static_cast<std::uint64_t>(j) * columns + k]);
      for (int v = 0; v < V; ++v) solved[j][v] = hn::MulAdd(left, right[v], solved[j][v]);
    }
  }
  for (int j = 0; j < Count; ++j)
    for (int v = 0; v < V; ++v) {
      T* at = rows + static_cast<std::uint64_t>(j) * columns + static_cast<std::size_t>(v) * hn::Lanes(d);
      sums[v] = hn::MulAdd(hn::LoadU(d, at), solved[j][v], sums[v]);
      hn::StoreU(solved[j][v], d, at);
    }
}

template <class T, int V>
void solve_vectors(T* rows, std::uint64_t count, const T* solution, double* inner) {
  const Tag<T> d;
  constexpr std::uint64_t columns = V * hn::MaxLanes(Tag<T>());
  constexpr int most = 12 / V;  // sums in registers: of 16, some are for what is multiplied
  hn::Vec<Tag<T>> sums[V];
  for (int v = 0; v < V; ++v) sums[v] = hn::Zero(d);
  std::uint64_t i = 0;
  for (; i + most <= count; i += most) solve_tile<T, most, V>(rows + i * columns, solution, sums);
  for (; i < count; ++i) solve_tile<T, 1, V>(rows + i * columns, solution, sums);
  HWY_ALIGN T part[columns];
  for (int v = 0; v < V; ++v) hn::StoreU(sums[v], d, part + static_cast<std::size_t>(v) * hn::Lanes(d));
  for (std::uint64_t c = 0; c < columns; ++c) inner[c] += static_cast<double>(part[c]);
}

/// rows = rows * solution, without a copy of them; inner[r] += sum over the rows of before * after. Returns 0, and does
/// nothing, where a row has too many vectors for that.
template <class T>
std::uint64_t solve_there(T* rows, std::uint64_t count, std::uint64_t columns, const T* solution, double* inner) {
  constexpr std::uint64_t lanes = hn::MaxLanes(Tag<T>());
  switch (columns / lanes) {
    case 1:
      solve_vectors<T, 1>(rows, count, solution, inner);
      return 1;
    case 2:
      solve_vectors<T, 2>(rows, count, solution, inner);
      return 1;
    case 4:
      solve_vectors<T, 4>(rows, count, solution, inner);
      return 1;
    default:
      return 0;
  }
}

/// Lower triangle, by tiles, of gram += after' after. Sums over a block are in T, over blocks in double.
template <class T>
void add_to_gram(const Block<T>& b, double* gram) {
  constexpr int rows = tile_rows<T>;
  // With two vectors a row, the first rows of a tile on the diagonal have use for one of them only: at rank 16 a
  // quarter of the work. So many rows at a time that there are eight sums again.
  constexpr bool halves = tile_vectors<T> == 2 && 4 * rows == static_cast<int>(tile_columns<T>);
  constexpr int half_rows = halves ? 2 * rows : rows;
  HWY_ALIGN T part[half_rows * tile_columns<T>];
  for (std::uint64_t r = 0; r < b.columns; r += rows)
    for (std::uint64_t s = 0; s <= r; s += tile_columns<T>) {
      std::uint64_t done = rows;
      std::uint64_t width = tile_columns<T>;
      if (halves && r + half_rows <= s + tile_columns<T> / 2) {
        tile<T, half_rows, 1>(b.after + r, 1, b.columns, b.after + s, b.columns, b.count, part, tile_columns<T>);
        done = half_rows;
        width = tile_columns<T> / 2;
      } else if (halves && r + rows <= s + tile_columns<T> / 2) {
        continue;  // came with the rows before
      } else {
        tile<T, rows>(b.after + r, 1, b.columns, b.after + s, b.columns, b.count, part, tile_columns<T>);
      }
      for (std::uint64_t j = 0; j < done; ++j)
        for (std::uint64_t c = 0; c < width; ++c)
          gram[(r + j) * b.columns + s + c] += static_cast<double>(part[j * tile_columns<T> + c]);
    }
}

/// inner[r] += sum over the rows of before * after.
template <class T>
void add_to_inner(const Block<T>& b, double* inner) {
  const Tag<T> d;
  HWY_ALIGN T part[tile_columns<T>];
  for (std::uint64_t s = 0; s < b.columns; s += hn::Lanes(d)) {
    const auto add = [&](std::uint64_t i, auto& sum) HWY_ATTR {
      sum = hn::MulAdd(hn::LoadU(d, b.before + i * b.columns + s), hn::LoadU(d, b.after + i * b.columns + s), sum);
    };
    auto even = hn::Zero(d);
    auto odd = hn::Zero(d);  // two sums: one would wait for itself
    std::uint64_t i = 0;
    for (; i + 2 <= b.count; i += 2) {
      add(i, even);
      add(i + 1, odd);
    }
    if (i < b.count) add(i, even);
    hn::StoreU(hn::Add(even, odd), d, part);
    for (std::size_t c = 0; c < hn::Lanes(d); ++c) inner[s + c] += static_cast<double>(part[c]);
  }
}

/// Calls f with the widest vector that a stride (a multiple of 8, or 4) consists of.
template <class T, class F>
HWY_INLINE auto with_row_vector(std::uint64_t stride, const F& f) {
  const Tag<T> widest;
  if (stride % hn::Lanes(widest) == 0) return f(widest);
  const hn::CappedTag<T, 8> eight;
  if (stride % hn::Lanes(eight) == 0) return f(eight);
  return f(hn::CappedTag<T, 4>());
}

/// Fills `to` (before or after of the block) with rows begin .. end that are not zero, the first of which is at
/// rows.data, until the block is full. Returns the first row not looked at.
template <class T>
std::uint64_t load_rows(Rows<const T> rows, std::uint64_t begin, std::uint64_t end, Block<T>& b, T* to) {
  return with_row_vector<T>(rows.stride, [&](const auto d) HWY_ATTR {
    std::uint64_t i = begin;
    for (; i < end && b.count < block_rows; ++i) {
      const T* from = rows.data + (i - begin) * rows.stride;
      T* row = to + b.count * b.columns;
      auto any = hn::Zero(d);
      for (std::uint64_t s = 0; s < rows.stride; s += hn::Lanes(d)) {
        const auto v = hn::LoadU(d, from + s);
        any = hn::Or(any, hn::Abs(v));
        hn::StoreU(v, d, row + s);
      }
      if (hn::AllTrue(d, hn::Eq(any, hn::Zero(d)))) continue;
      b.indices[b.count++] = i;
    }
    return i;
  });
}

/// Whether at least three of four rows are not zero, by every eighth of them: then zeros are solved with the others,
/// where they lie.
template <class T>
std::uint64_t mostly_filled(Rows<const T> rows, std::uint64_t count) {
  return with_row_vector<T>(rows.stride, [&](const auto d) HWY_ATTR {
    std::uint64_t filled = 0;
    std::uint64_t looked_at = 0;
    for (std::uint64_t i = 0; i < count; i += 8) {
      const T* row = rows.data + i * rows.stride;
      auto any = hn::Abs(hn::LoadU(d, row));
      for (std::uint64_t s = hn::Lanes(d); s < rows.stride; s += hn::Lanes(d))
        any = hn::Or(any, hn::Abs(hn::LoadU(d, row + s)));
      filled += hn::AllTrue(d, hn::Eq(any, hn::Zero(d))) ? 0 : 1;
      ++looked_at;
    }
    return std::uint64_t{4 * filled >= 3 * looked_at ? 1U : 0U};
  });
}

/// Copies rows to where they are not read soon: whole cache lines need not be read before they are written. Other
/// threads may read them after hwy::FlushStream.
template <class T>
void stream_rows(Rows<const T> from, std::uint64_t count, T* to) {
  const std::uint64_t elements = count * from.stride;
  const Tag<T> d;
  if (reinterpret_cast<std::uintptr_t>(to) % 64 != 0 || elements % tile_columns<T> != 0) {
    std::copy(from.data, from.data + elements, to);
    return;
  }
  for (std::uint64_t i = 0; i < elements; i += hn::Lanes(d)) hn::Stream(hn::LoadU(d, from.data + i), d, to + i);
}

/// Puts `after` of the rows that were not solved where they belong.
template <class T>
void store_rows(const Block<T>& b, Rows<T> rows) {
  with_row_vector<T>(rows.stride, [&](const auto d) HWY_ATTR {
    for (std::uint64_t k = b.solved; k < b.count; ++k)
      for (std::uint64_t s = 0; s < rows.stride; s += hn::Lanes(d))
        hn::StoreU(hn::LoadU(d, b.after + k * b.columns + s), d, rows.data + b.indices[k] * rows.stride + s);
    return b.count;
  });
}

/// One row of HALS: `gradient` is v - a G and follows every change of a.
void descend_row(double* HWY_RESTRICT a, double* HWY_RESTRICT gradient, const double* HWY_RESTRICT gram,
                 std::uint64_t columns, std::uint64_t rank, int sweeps) {
  const Tag<double> d;
  for (int sweep = 0; sweep < sweeps; ++sweep)
    for (std::uint64_t r = 0; r < rank; ++r) {
      const double* g = gram + r * columns;
      if (!(g[r] > 0)) continue;  // a component that is zero in another mode
      const double value = std::max(0.0, a[r] + gradient[r] / g[r]);
      const double step = value - a[r];
      if (step == 0) continue;
      a[r] = value;
      const auto factor = hn::Set(d, -step);
      for (std::uint64_t s = 0; s < columns; s += hn::Lanes(d))
        hn::StoreU(hn::MulAdd(factor, hn::LoadU(d, g + s), hn::LoadU(d, gradient + s)), d, gradient + s);
    }
}

#define POLYAD_FOR(T, suffix)                                                                                   \
  void multiply_##suffix(const Block<T>& b, const T* solution) { multiply_rows(b, solution); }                  \
  void gram_##suffix(const Block<T>& b, double* gram) { add_to_gram(b, gram); }                                 \
  void inner_##suffix(const Block<T>& b, double* inner) { add_to_inner(b, inner); }                             \
  std::uint64_t load_##suffix(Rows<const T> rows, std::uint64_t begin, std::uint64_t end, Block<T>& b, T* to) { \
    return load_rows(rows, begin, end, b, to);                                                                  \
  }                                                                                                             \
  std::uint64_t filled_##suffix(Rows<const T> rows, std::uint64_t count) { return mostly_filled(rows, count); } \
  void copy_##suffix(Rows<const T> from, std::uint64_t count, T* to) { stream_rows(from, count, to); }          \
  std::uint64_t in_place_##suffix(T* rows, std::uint64_t count, std::uint64_t columns, const T* solution,       \
                                  double* inner) {                                                              \
    return solve_there(rows, count, columns, solution, inner);                                                  \
  }                                                                                                             \
  void store_##suffix(const Block<T>& b, Rows<T> rows) { store_rows(b, rows); }
POLYAD_FOR(float, f32)
POLYAD_FOR(double, f64)
#undef POLYAD_FOR

}  // namespace polyad::cp_als_detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyad::cp_als_detail {

HWY_EXPORT(descend_row);
void descend(double* a, double* gradient, const double* gram, std::uint64_t columns, std::uint64_t rank, int sweeps) {
  HWY_DYNAMIC_DISPATCH(descend_row)(a, gradient, gram, columns, rank, sweeps);
}

#define POLYAD_FOR(T, suffix)                                                                                   \
  HWY_EXPORT(multiply_##suffix);                                                                                \
  HWY_EXPORT(gram_##suffix);                                                                                    \
  HWY_EXPORT(inner_##suffix);                                                                                   \
  HWY_EXPORT(load_##suffix);                                                                                    \
  HWY_EXPORT(filled_##suffix);                                                                                  \
  HWY_EXPORT(copy_##suffix);                                                                                    \
  HWY_EXPORT(in_place_##suffix);                                                                                \
  HWY_EXPORT(store_##suffix);                                                                                   \
  void multiply(const Block<T>& b, const T* solution) { HWY_DYNAMIC_DISPATCH(multiply_##suffix)(b, solution); } \
  void add_gram(const Block<T>& b, double* gram) { HWY_DYNAMIC_DISPATCH(gram_##suffix)(b, gram); }              \
  void add_inner(const Block<T>& b, double* inner) { HWY_DYNAMIC_DISPATCH(inner_##suffix)(b, inner); }          \
  std::uint64_t load(Rows<const T> rows, std::uint64_t begin, std::uint64_t end, Block<T>& b, T* to) {          \
    return HWY_DYNAMIC_DISPATCH(load_##suffix)(rows, begin, end, b, to);                                        \
  }                                                                                                             \
  bool is_mostly_filled(Rows<const T> rows, std::uint64_t count) {                                              \
    return HWY_DYNAMIC_DISPATCH(filled_##suffix)(rows, count) != 0;                                             \
  }                                                                                                             \
  void copy_past_cache(Rows<const T> from, std::uint64_t count, T* to) {                                        \
    HWY_DYNAMIC_DISPATCH(copy_##suffix)(from, count, to);                                                       \
  }                                                                                                             \
  bool solve_in_place(T* rows, std::uint64_t count, std::uint64_t columns, const T* solution, double* inner) {  \
    return HWY_DYNAMIC_DISPATCH(in_place_##suffix)(rows, count, columns, solution, inner) != 0;                 \
  }                                                                                                             \
  void store(const Block<T>& b, Rows<T> rows) { HWY_DYNAMIC_DISPATCH(store_##suffix)(b, rows); }
POLYAD_FOR(float, f32)
POLYAD_FOR(double, f64)
#undef POLYAD_FOR

}  // namespace polyad::cp_als_detail
#endif
