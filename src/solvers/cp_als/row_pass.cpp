// SPDX-License-Identifier: MIT
#include "solvers/cp_als/row_pass.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <type_traits>

#include "backends/cpu/simd_targets.hpp"
#include "backends/cpu/threads.hpp"
#include "kernels/mttkrp/update_rows.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "solvers/cp_als/row_pass.cpp"
#include <hwy/aligned_allocator.h>
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <new>

#ifndef POLYAD_ROW_PASS_BLOCK
#define POLYAD_ROW_PASS_BLOCK
namespace polyad::cp_als_detail {

constexpr std::uint64_t block_rows = 128;

/// Columns of a tile of the small products: one widest vector.
template <class T>
constexpr std::uint64_t tile_columns = 64 / sizeof(T);

/// Some rows that are not zero, packed: small enough for the first-level cache at rank 16. The arithmetic is in T: an
/// f32 MTTKRP is not more exact than products in f32 are, and twice as many fit a vector.
template <class T>
struct Block {
  std::uint64_t count = 0;           // rows
  std::uint64_t solved = 0;          // the first so many have their `after`
  std::uint64_t columns = 0;         // a multiple of tile_columns
  T* before = nullptr;               // [count][columns]
  T* after = nullptr;                // [count][columns]
  std::uint64_t* indices = nullptr;  // [count], which rows they are
};

/// A factor's memory.
template <class T>
struct Rows {
  T* data = nullptr;
  std::uint64_t stride = 0;  // a multiple of 8, or 4
};

}  // namespace polyad::cp_als_detail
#endif

HWY_BEFORE_NAMESPACE();
namespace polyad::cp_als_detail::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
using Tag = hn::CappedTag<T, 64 / sizeof(T)>;
template <class T>
constexpr int tile_vectors = static_cast<int>(tile_columns<T> / hn::MaxLanes(Tag<T>()));
/// Eight sums at a time hide the latency of the fused multiply-add; more would not fit the registers.
template <class T>
constexpr int tile_rows = tile_vectors<T> == 1 ? 8 : 4;

/// out (Count x tile_columns) = sum over k < count of left[j * left_row + k * left_step] * right[k * columns ..]. Both
/// products of the pass are of this form: V * W has left_row = columns and left_step = 1, A'A has left_row = 1 and
/// left_step = columns.
/// \tparam D the vector, `vectors` of them side by side
template <class T, int Count, class D = Tag<T>, int vectors = tile_vectors<T>>
HWY_INLINE void tile(const T* HWY_RESTRICT left, std::uint64_t left_row, std::uint64_t left_step,
                     const T* HWY_RESTRICT right, std::uint64_t columns, std::uint64_t count, T* HWY_RESTRICT out,
                     std::uint64_t out_row) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  hn::Vec<D> sums[Count][vectors];
  for (int j = 0; j < Count; ++j)
    for (int v = 0; v < vectors; ++v) sums[j][v] = hn::Zero(d);
  for (std::uint64_t k = 0; k < count; ++k) {
    hn::Vec<D> row[vectors];
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
std::uint64_t solve_in_place(T* rows, std::uint64_t count, std::uint64_t columns, const T* solution, double* inner) {
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
  // The first rows of a tile on the diagonal have use for half of its columns only: at rank 16 a quarter of the work.
  // So many rows at a time that there are eight sums again.
  constexpr bool halves = tile_vectors<T> == 1 || 4 * rows == static_cast<int>(tile_columns<T>);
  constexpr int half_rows = tile_vectors<T> == 1 ? rows : 2 * rows;
  using Half = std::conditional_t<tile_vectors<T> == 1, hn::Half<Tag<T>>, Tag<T>>;
  HWY_ALIGN T part[half_rows * tile_columns<T>];
  for (std::uint64_t r = 0; r < b.columns; r += rows)
    for (std::uint64_t s = 0; s <= r; s += tile_columns<T>) {
      std::uint64_t done = rows;
      std::uint64_t width = tile_columns<T>;
      if (halves && r + half_rows <= s + tile_columns<T> / 2) {
        tile<T, half_rows, Half, 1>(b.after + r, 1, b.columns, b.after + s, b.columns, b.count, part, tile_columns<T>);
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

/// Whether at least three of four rows are not zero: then zeros are solved with the others, where they lie.
template <class T>
std::uint64_t mostly_filled(Rows<const T> rows, std::uint64_t count) {
  return with_row_vector<T>(rows.stride, [&](const auto d) HWY_ATTR {
    std::uint64_t filled = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      const T* row = rows.data + i * rows.stride;
      auto any = hn::Abs(hn::LoadU(d, row));
      for (std::uint64_t s = hn::Lanes(d); s < rows.stride; s += hn::Lanes(d))
        any = hn::Or(any, hn::Abs(hn::LoadU(d, row + s)));
      filled += hn::AllTrue(d, hn::Eq(any, hn::Zero(d))) ? 0 : 1;
    }
    return std::uint64_t{4 * filled >= 3 * count ? 1U : 0U};
  });
}

/// Copies rows to where they are not read soon: whole cache lines need not be read before they are written.
template <class T>
void copy_past_cache(Rows<const T> from, std::uint64_t count, T* to) {
  const std::uint64_t elements = count * from.stride;
  const Tag<T> d;
  if (reinterpret_cast<std::uintptr_t>(to) % 64 != 0 || elements % tile_columns<T> != 0) {
    std::copy(from.data, from.data + elements, to);
    return;
  }
  for (std::uint64_t i = 0; i < elements; i += hn::Lanes(d)) hn::Stream(hn::LoadU(d, from.data + i), d, to + i);
  hwy::FlushStream();
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
void descend(double* HWY_RESTRICT a, double* HWY_RESTRICT gradient, const double* HWY_RESTRICT gram,
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
  void copy_##suffix(Rows<const T> from, std::uint64_t count, T* to) { copy_past_cache(from, count, to); }      \
  std::uint64_t in_place_##suffix(T* rows, std::uint64_t count, std::uint64_t columns, const T* solution,       \
                                  double* inner) {                                                              \
    return solve_in_place(rows, count, columns, solution, inner);                                               \
  }                                                                                                             \
  void store_##suffix(const Block<T>& b, Rows<T> rows) { store_rows(b, rows); }
POLYAD_FOR(float, f32)
POLYAD_FOR(double, f64)
#undef POLYAD_FOR

}  // namespace polyad::cp_als_detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyad::cp_als_detail {

HWY_EXPORT(descend);

namespace {

#define POLYAD_FOR(T, suffix)                                                                                         \
  HWY_EXPORT(multiply_##suffix);                                                                                      \
  HWY_EXPORT(gram_##suffix);                                                                                          \
  HWY_EXPORT(inner_##suffix);                                                                                         \
  HWY_EXPORT(load_##suffix);                                                                                          \
  HWY_EXPORT(filled_##suffix);                                                                                        \
  HWY_EXPORT(copy_##suffix);                                                                                          \
  HWY_EXPORT(in_place_##suffix);                                                                                      \
  HWY_EXPORT(store_##suffix);                                                                                         \
  void multiply(const Block<T>& b, const T* solution) { HWY_DYNAMIC_DISPATCH(multiply_##suffix)(b, solution); }       \
  void add_gram(const Block<T>& b, double* gram) { HWY_DYNAMIC_DISPATCH(gram_##suffix)(b, gram); }                    \
  void add_inner(const Block<T>& b, double* inner) { HWY_DYNAMIC_DISPATCH(inner_##suffix)(b, inner); }                \
  std::uint64_t load(Rows<const T> rows, std::uint64_t begin, std::uint64_t end, Block<T>& b, T* to) {                \
    return HWY_DYNAMIC_DISPATCH(load_##suffix)(rows, begin, end, b, to);                                              \
  }                                                                                                                   \
  bool is_mostly_filled(Rows<const T> rows, std::uint64_t count) {                                                    \
    return HWY_DYNAMIC_DISPATCH(filled_##suffix)(rows, count) != 0;                                                   \
  }                                                                                                                   \
  void copy(Rows<const T> from, std::uint64_t count, T* to) { HWY_DYNAMIC_DISPATCH(copy_##suffix)(from, count, to); } \
  bool solve_vectors(T* rows, std::uint64_t count, std::uint64_t columns, const T* solution, double* inner) {         \
    return HWY_DYNAMIC_DISPATCH(in_place_##suffix)(rows, count, columns, solution, inner) != 0;                       \
  }                                                                                                                   \
  void store(const Block<T>& b, Rows<T> rows) { HWY_DYNAMIC_DISPATCH(store_##suffix)(b, rows); }
POLYAD_FOR(float, f32)
POLYAD_FOR(double, f64)
#undef POLYAD_FOR

template <class T>
std::uint64_t block_columns(std::uint64_t rank) {
  return (rank + tile_columns<T> - 1) / tile_columns<T> * tile_columns<T>;
}

/// On the bounds of vectors: rows of 64 bytes that straddle two cache lines would cost twice.
template <class T>
hwy::AlignedFreeUniquePtr<T[]> aligned_zeros(std::uint64_t count) {
  auto memory = hwy::AllocateAligned<T>(count);
  if (!memory) throw std::bad_alloc();
  std::fill_n(memory.get(), count, T{0});
  return memory;
}

template <class T>
bool is_zero(const T* row, std::uint64_t rank) {
  for (std::uint64_t r = 0; r < rank; ++r)
    if (row[r] != 0) return false;
  return true;
}

/// Solves blocks of rows that are not zero, and adds up Gram matrix and inner products part by part.
template <class T>
class BlockSolver : public RowSolver<T> {
 public:
  /// \param v what the rows are like
  BlockSolver(const FactorMatrix<T>& v, const Context& context, bool with_inner)
      : rank_(v.cols()),
        stride_(v.stride()),
        columns_(block_columns<T>(rank_)),
        context_(context),
        with_inner_(with_inner) {}

  /// So few that their sums take at most 64 MB.
  [[nodiscard]] std::uint64_t most_parts() const override {
    return std::clamp<std::uint64_t>((std::uint64_t{1} << 23U) / (columns_ * columns_), 1, std::uint64_t{1} << 14U);
  }
  void begin(std::uint64_t parts) override {
    parts_.clear();
    parts_.resize(parts);
    sums_ = Buffer<double>(context_, std::max<std::uint64_t>(1, parts) * part_size(), "sums over the rows of a factor",
                           Paging::plain);
  }
  void take(std::uint64_t part, std::uint64_t begin, std::uint64_t end, T* rows) override {
    const auto start = std::chrono::steady_clock::now();
    Part& p = parts_[part];
    std::uint64_t i = begin;
    while (end - i >= block_rows && solve_there(i, rows + (i - begin) * stride_, part)) i += block_rows;
    if (i < end && !p.memory) p.memory = aligned_zeros<T>(2 * block_rows * columns_);
    Block<T> block{p.rows, p.rows, columns_, p.memory.get(), p.memory.get() + block_rows * columns_, p.indices.data()};
    while (i < end) {
      i = fill({rows + (i - begin) * stride_, stride_}, i, end, block);
      solve(block);
      block.solved = block.count;
      if (block.count == block_rows) add_up(part, block);
    }
    p.rows = block.count;
    p.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  [[nodiscard]] RowSums sums() override {
    RowSums sums{Small(rank_), std::vector<double>(rank_)};
    for (std::uint64_t p = 0; p < parts_.size(); ++p) {
      Block<T> rest{parts_[p].rows, 0, columns_, parts_[p].memory.get(), parts_[p].memory.get() + block_rows * columns_,
                    nullptr};
      add_up(p, rest);
      parts_[p].rows = 0;
      const double* part = sums_.data() + p * part_size();
      for (std::uint64_t r = 0; r < rank_; ++r)
        for (std::uint64_t s = 0; s <= r; ++s) sums.gram(r, s) += part[r * columns_ + s];
      for (std::uint64_t r = 0; r < rank_; ++r) sums.inner[r] += part[columns_ * columns_ + r];
    }
    for (std::uint64_t r = 0; r < rank_; ++r)
      for (std::uint64_t s = 0; s < r; ++s) sums.gram(s, r) = sums.gram(r, s);
    return sums;
  }
  [[nodiscard]] double seconds() const override {
    double sum = 0;
    for (const Part& p : parts_) sum += p.seconds;
    return sum;
  }

 protected:
  /// Takes rows into the block: V of rows begin .. end is `from`. Returns the first that was not looked at.
  [[nodiscard]] virtual std::uint64_t fill(Rows<T> from, std::uint64_t begin, std::uint64_t end,
                                           Block<T>& block) const = 0;
  /// Solves block_rows rows from begin on without packing them: V and then A are `rows`. Adds to inner. False, and
  /// nothing is done, when it cannot.
  [[nodiscard]] virtual bool solve_unpacked(std::uint64_t /*begin*/, T* /*rows*/, double* /*inner*/) const {
    return false;
  }
  /// Makes `after` of the rows that are not solved, and stores it.
  virtual void solve(const Block<T>& block) const = 0;

 private:
  /// What lives from one call to the next: rows that are solved, until there are enough of them to be added up. Chunks
  /// of a tensor may have a few rows only.
  struct Part {
    hwy::AlignedFreeUniquePtr<T[]> memory;
    std::array<std::uint64_t, block_rows> indices = {};
    std::uint64_t rows = 0;
    double seconds = 0;
  };

  [[nodiscard]] std::uint64_t part_size() const { return columns_ * columns_ + columns_; }
  [[nodiscard]] bool solve_there(std::uint64_t begin, T* rows, std::uint64_t part) {
    double* gram = sums_.data() + part * part_size();
    if (!solve_unpacked(begin, rows, gram + columns_ * columns_)) return false;
    add_gram({block_rows, block_rows, columns_, nullptr, rows, nullptr}, gram);
    return true;
  }
  void add_up(std::uint64_t part, Block<T>& block) {
    if (block.count == 0) return;
    double* gram = sums_.data() + part * part_size();
    add_gram(block, gram);
    if (with_inner_) add_inner(block, gram + columns_ * columns_);
    block.count = block.solved = 0;
  }

  std::uint64_t rank_;
  std::uint64_t stride_;
  std::uint64_t columns_;
  const Context& context_;
  bool with_inner_;
  std::vector<Part> parts_;
  Buffer<double> sums_;  // [parts][columns * columns + columns]
};

template <class T>
class LeastSquares final : public BlockSolver<T> {
 public:
  LeastSquares(FactorMatrix<T>& rows, const Small& solution, const Context& context)
      : BlockSolver<T>(rows, context, true), rows_(rows) {
    const std::uint64_t columns = block_columns<T>(rows.cols());
    rounded_ = aligned_zeros<T>(columns * columns);
    for (std::uint64_t r = 0; r < rows.cols(); ++r)
      for (std::uint64_t s = 0; s < rows.cols(); ++s) rounded_[r * columns + s] = static_cast<T>(solution(r, s));
  }
  [[nodiscard]] const FactorMatrix<T>& factor() const override { return rows_; }

 protected:
  [[nodiscard]] std::uint64_t fill(Rows<T> from, std::uint64_t begin, std::uint64_t end,
                                   Block<T>& block) const override {
    const std::uint64_t next = load({from.data, from.stride}, begin, end, block, block.before);
    if (from.data != rows_.row(begin))  // rows of zeros are not solved
      std::fill_n(rows_.row(begin), (next - begin) * rows_.stride(), T{0});
    return next;
  }
  [[nodiscard]] bool solve_unpacked(std::uint64_t begin, T* rows, double* inner) const override {
    const std::uint64_t columns = block_columns<T>(rows_.cols());
    if (rows_.stride() != columns || !is_mostly_filled({rows, columns}, block_rows) ||
        !solve_vectors(rows, block_rows, columns, rounded_.get(), inner))
      return false;
    if (rows != rows_.row(begin)) copy({rows, columns}, block_rows, rows_.row(begin));
    return true;
  }
  void solve(const Block<T>& block) const override {
    multiply(block, rounded_.get());
    store(block, Rows<T>{rows_.data(), rows_.stride()});
  }

 private:
  FactorMatrix<T>& rows_;
  hwy::AlignedFreeUniquePtr<T[]> rounded_;
};

/// Adds up A'A alone.
template <class T>
class Untouched final : public BlockSolver<T> {
 public:
  Untouched(const FactorMatrix<T>& rows, const Context& context) : BlockSolver<T>(rows, context, false), rows_(rows) {}
  [[nodiscard]] const FactorMatrix<T>& factor() const override { return rows_; }

 protected:
  [[nodiscard]] std::uint64_t fill(Rows<T> from, std::uint64_t begin, std::uint64_t end,
                                   Block<T>& block) const override {
    return load({from.data, from.stride}, begin, end, block, block.after);
  }
  void solve(const Block<T>& /*block*/) const override {}

 private:
  const FactorMatrix<T>& rows_;
};

template <class T>
class Descent final : public BlockSolver<T> {
 public:
  Descent(FactorMatrix<T>& factor, const DescentOptions& options, const Context& context)
      : BlockSolver<T>(factor, context, true), factor_(factor), options_(options) {}
  [[nodiscard]] const FactorMatrix<T>& factor() const override { return factor_; }

 protected:
  [[nodiscard]] std::uint64_t fill(Rows<T> from, std::uint64_t begin, std::uint64_t end,
                                   Block<T>& block) const override {
    const std::uint64_t rank = factor_.cols();
    std::uint64_t i = begin;
    for (; i < end && block.count < block_rows; ++i) {
      const T* v = from.data + (i - begin) * from.stride;
      if (is_zero(v, rank)) {  // the minimum is 0
        std::fill_n(factor_.row(i), rank, T{0});
        continue;
      }
      std::copy_n(v, rank, block.before + block.count * block.columns);
      std::copy_n(factor_.row(i), rank, block.after + block.count * block.columns);
      block.indices[block.count++] = i;
    }
    return i;
  }
  void solve(const Block<T>& block) const override {
    const std::uint64_t rank = factor_.cols();
    const Small& gram = options_.gram;
    std::vector<double> a(gram.columns);
    std::vector<double> gradient(gram.columns);
    for (std::uint64_t k = block.solved; k < block.count; ++k) {
      const T* before = block.before + k * block.columns;
      T* after = block.after + k * block.columns;
      for (std::uint64_t r = 0; r < rank; ++r) {
        gradient[r] = static_cast<double>(before[r]) * options_.v_scale;
        a[r] = static_cast<double>(after[r]) * options_.start_scale[r];
      }
      for (std::uint64_t s = 0; s < rank; ++s)
        if (a[s] != 0)
          for (std::uint64_t r = 0; r < rank; ++r) gradient[r] -= a[s] * gram(s, r);
      HWY_DYNAMIC_DISPATCH(descend)(a.data(), gradient.data(), gram.values.data(), gram.columns, rank, options_.sweeps);
      for (std::uint64_t r = 0; r < rank; ++r) after[r] = static_cast<T>(a[r] * options_.end_scale[r]);
    }
    store(block, Rows<T>{factor_.data(), factor_.stride()});
  }

 private:
  FactorMatrix<T>& factor_;
  DescentOptions options_;
};

}  // namespace

template <class T>
std::unique_ptr<RowSolver<T>> least_squares(FactorMatrix<T>& rows, const Small& solution, const Context& context) {
  return std::make_unique<LeastSquares<T>>(rows, solution, context);
}

template <class T>
std::unique_ptr<RowSolver<T>> nonnegative_descent(FactorMatrix<T>& factor, const DescentOptions& options,
                                                  const Context& context) {
  return std::make_unique<Descent<T>>(factor, options, context);
}

template <class T>
RowSums solve_rows(FactorMatrix<T>& rows, const Small& solution, const Context& context) {
  LeastSquares<T> solver(rows, solution, context);
  update_rows(rows, solver, context);
  return solver.sums();
}

template <class T>
Small gram_of(const FactorMatrix<T>& rows, const Context& context) {
  Untouched<T> sums(rows, context);
  // They are only read.
  update_rows(const_cast<FactorMatrix<T>&>(rows), sums, context);  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  return sums.sums().gram;
}

template <class T>
void scale_columns(FactorMatrix<T>& rows, const std::vector<double>& scale, const Context& context) {
  cpu::parallel_ranges(
      context.thread_count(), rows.rows(),
      [&](std::uint64_t begin, std::uint64_t end) {
        for (std::uint64_t i = begin; i < end; ++i)
          for (std::uint64_t r = 0; r < rows.cols(); ++r)
            rows(i, r) = static_cast<T>(static_cast<double>(rows(i, r)) * scale[r]);
      },
      1U << 10U);
}

#define POLYAD_INSTANTIATE(T)                                                                                          \
  template std::unique_ptr<RowSolver<T>> least_squares(FactorMatrix<T>&, const Small&, const Context&);                \
  template std::unique_ptr<RowSolver<T>> nonnegative_descent(FactorMatrix<T>&, const DescentOptions&, const Context&); \
  template RowSums solve_rows(FactorMatrix<T>&, const Small&, const Context&);                                         \
  template Small gram_of(const FactorMatrix<T>&, const Context&);                                                      \
  template void scale_columns(FactorMatrix<T>&, const std::vector<double>&, const Context&);
POLYAD_INSTANTIATE(float)
POLYAD_INSTANTIATE(double)
#undef POLYAD_INSTANTIATE

}  // namespace polyad::cp_als_detail
#endif
