// SPDX-License-Identifier: MIT
#include "solvers/cp_als/row_pass.hpp"

#include <algorithm>
#include <array>

#include "backends/cpu/simd_targets.hpp"
#include "backends/cpu/threads.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "solvers/cp_als/row_pass.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#ifndef POLYAD_ROW_PASS_BLOCK
#define POLYAD_ROW_PASS_BLOCK
namespace polyad::cp_als_detail {

constexpr std::uint64_t block_rows = 64;

/// Some rows in double: small enough for the first-level cache at rank 16, where two of them take 16 KB.
struct Block {
  std::uint64_t count = 0;           // rows
  std::uint64_t columns = 0;         // small_columns(rank)
  double* before = nullptr;          // [count][columns]
  double* after = nullptr;           // [count][columns]
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

using Tag = hn::CappedTag<double, 8>;
constexpr int tile_columns = 8;
constexpr int tile_vectors = static_cast<int>(tile_columns / hn::MaxLanes(Tag()));

/// Adds to a tile of Rows x 8 the sum over k < count of left[j * left_row + k * left_step] * right[k * columns ..].
/// Both products of the pass are of this form: V * W has left_row = columns and left_step = 1, A'A has left_row = 1 and
/// left_step = columns. Eight sums at a time hide the latency of the fused multiply-add.
template <int Rows>
HWY_INLINE void add_tile(const double* HWY_RESTRICT left, std::uint64_t left_row, std::uint64_t left_step,
                         const double* HWY_RESTRICT right, std::uint64_t columns, std::uint64_t count,
                         double* HWY_RESTRICT out) {
  const Tag d;
  const std::size_t lanes = hn::Lanes(d);
  hn::Vec<Tag> sums[Rows][tile_vectors];
  for (int j = 0; j < Rows; ++j)
    for (int v = 0; v < tile_vectors; ++v)
      sums[j][v] = hn::LoadU(d, out + static_cast<std::uint64_t>(j) * columns + static_cast<std::size_t>(v) * lanes);
  for (std::uint64_t k = 0; k < count; ++k) {
    hn::Vec<Tag> row[tile_vectors];
    for (int v = 0; v < tile_vectors; ++v)
      row[v] = hn::LoadU(d, right + k * columns + static_cast<std::size_t>(v) * lanes);
    for (int j = 0; j < Rows; ++j) {
      const auto factor = hn::Set(d, left[static_cast<std::uint64_t>(j) * left_row + k * left_step]);
      for (int v = 0; v < tile_vectors; ++v) sums[j][v] = hn::MulAdd(factor, row[v], sums[j][v]);
    }
  }
  for (int j = 0; j < Rows; ++j)
    for (int v = 0; v < tile_vectors; ++v)
      hn::StoreU(sums[j][v], d, out + static_cast<std::uint64_t>(j) * columns + static_cast<std::size_t>(v) * lanes);
}

constexpr int tile_rows = tile_vectors == 1 ? 8 : 4;

/// after = before * solution.
void multiply(const Block& b, const double* solution) {
  std::fill(b.after, b.after + b.count * b.columns, 0.0);
  for (std::uint64_t s = 0; s < b.columns; s += tile_columns) {
    std::uint64_t i = 0;
    for (; i + tile_rows <= b.count; i += tile_rows)
      add_tile<tile_rows>(b.before + i * b.columns, b.columns, 1, solution + s, b.columns, b.columns,
                          b.after + i * b.columns + s);
    for (; i < b.count; ++i)
      add_tile<1>(b.before + i * b.columns, b.columns, 1, solution + s, b.columns, b.columns,
                  b.after + i * b.columns + s);
  }
}

/// Lower triangle, by tiles, of gram += after' after.
void add_gram(const Block& b, double* gram) {
  for (std::uint64_t r = 0; r < b.columns; r += tile_rows)
    for (std::uint64_t s = 0; s <= r; s += tile_columns)
      add_tile<tile_rows>(b.after + r, 1, b.columns, b.after + s, b.columns, b.count, gram + r * b.columns + s);
}

/// inner[r] += sum over the rows of before * after.
void add_inner(const Block& b, double* inner) {
  const Tag d;
  for (std::uint64_t s = 0; s < b.columns; s += hn::Lanes(d)) {
    auto sum = hn::LoadU(d, inner + s);
    for (std::uint64_t i = 0; i < b.count; ++i)
      sum = hn::MulAdd(hn::LoadU(d, b.before + i * b.columns + s), hn::LoadU(d, b.after + i * b.columns + s), sum);
    hn::StoreU(sum, d, inner + s);
  }
}

/// Vectors of no more lanes than the smallest stride has columns.
using RowTag = hn::CappedTag<double, 4>;

template <class T>
HWY_INLINE hn::Vec<RowTag> load_as_double(const T* from) {
  const RowTag d;
  if constexpr (sizeof(T) == 8) {
    return hn::LoadU(d, from);
  } else {
    return hn::PromoteTo(d, hn::LoadU(hn::Rebind<float, RowTag>(), from));
  }
}

/// Fills `to` (before or after of the block) with rows from `begin` on that are not zero, until the block is full or
/// `end` is reached. Returns the first row not looked at.
template <class T>
std::uint64_t load_rows(Rows<const T> rows, std::uint64_t begin, std::uint64_t end, Block& b, double* to) {
  const RowTag d;
  for (; begin < end && b.count < block_rows; ++begin) {
    const T* from = rows.data + begin * rows.stride;
    double* row = to + b.count * b.columns;
    auto largest = hn::Zero(d);
    for (std::uint64_t s = 0; s < rows.stride; s += hn::Lanes(d)) {
      const auto v = load_as_double(from + s);
      largest = hn::Or(largest, hn::Abs(v));
      hn::StoreU(v, d, row + s);
    }
    if (hn::AllTrue(d, hn::Eq(largest, hn::Zero(d)))) continue;
    b.indices[b.count++] = begin;
  }
  return begin;
}
std::uint64_t load_f32(Rows<const float> rows, std::uint64_t begin, std::uint64_t end, Block& b, double* to) {
  return load_rows(rows, begin, end, b, to);
}
std::uint64_t load_f64(Rows<const double> rows, std::uint64_t begin, std::uint64_t end, Block& b, double* to) {
  return load_rows(rows, begin, end, b, to);
}

/// Puts the block's `after` where its rows came from, and the rounded numbers back: sums are of what is stored.
template <class T>
void store_rows(const Block& b, Rows<T> rows) {
  const RowTag d;
  for (std::uint64_t k = 0; k < b.count; ++k) {
    double* from = b.after + k * b.columns;
    T* to = rows.data + b.indices[k] * rows.stride;
    for (std::uint64_t s = 0; s < rows.stride; s += hn::Lanes(d)) {
      const auto v = hn::LoadU(d, from + s);
      if constexpr (sizeof(T) == 8) {
        hn::StoreU(v, d, to + s);
      } else {
        const hn::Rebind<float, RowTag> f;
        const auto rounded = hn::DemoteTo(f, v);
        hn::StoreU(rounded, f, to + s);
        hn::StoreU(hn::PromoteTo(d, rounded), d, from + s);
      }
    }
  }
}
void store_f32(const Block& b, Rows<float> rows) { store_rows(b, rows); }
void store_f64(const Block& b, Rows<double> rows) { store_rows(b, rows); }

/// One row of HALS: `gradient` is v - a G and follows every change of a.
void descend(double* HWY_RESTRICT a, double* HWY_RESTRICT gradient, const double* HWY_RESTRICT gram,
             std::uint64_t columns, std::uint64_t rank, int sweeps) {
  const Tag d;
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

}  // namespace polyad::cp_als_detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyad::cp_als_detail {

HWY_EXPORT(multiply);
HWY_EXPORT(add_gram);
HWY_EXPORT(add_inner);
HWY_EXPORT(descend);
HWY_EXPORT(load_f32);
HWY_EXPORT(load_f64);
HWY_EXPORT(store_f32);
HWY_EXPORT(store_f64);

namespace {

std::uint64_t load(Rows<const float> rows, std::uint64_t begin, std::uint64_t end, Block& b, double* to) {
  return HWY_DYNAMIC_DISPATCH(load_f32)(rows, begin, end, b, to);
}
std::uint64_t load(Rows<const double> rows, std::uint64_t begin, std::uint64_t end, Block& b, double* to) {
  return HWY_DYNAMIC_DISPATCH(load_f64)(rows, begin, end, b, to);
}
void store(const Block& b, Rows<float> rows) { HWY_DYNAMIC_DISPATCH(store_f32)(b, rows); }
void store(const Block& b, Rows<double> rows) { HWY_DYNAMIC_DISPATCH(store_f64)(b, rows); }

/// Where the threads cut the rows, and where sums are added up: a function of the shape alone.
struct Chunks {
  std::uint64_t rows = 0;
  std::uint64_t count = 0;
  std::uint64_t length = 0;  // rows of a chunk, a multiple of block_rows

  Chunks(std::uint64_t rows_, std::uint64_t rank) : rows(rows_) {
    // So many that threads are busy, so few that their sums take at most 64 MB.
    const std::uint64_t columns = small_columns(rank);
    const std::uint64_t most = std::clamp<std::uint64_t>((std::uint64_t{1} << 23U) / (columns * columns), 1, 256);
    length = std::max<std::uint64_t>(1, (rows / most + block_rows - 1) / block_rows) * block_rows;
    count = (rows + length - 1) / length;
  }
  [[nodiscard]] std::uint64_t begin(std::uint64_t chunk) const { return chunk * length; }
  [[nodiscard]] std::uint64_t end(std::uint64_t chunk) const { return std::min(rows, (chunk + 1) * length); }
};

template <class T>
bool is_zero(const T* row, std::uint64_t rank) {
  for (std::uint64_t r = 0; r < rank; ++r)
    if (row[r] != 0) return false;
  return true;
}

/// Fills blocks with rows that are not zero: fill(begin, end, block) returns the first row not looked at. Calls
/// work(block), and adds up Gram matrix and inner products.
template <class Fill, class Work>
RowSums over_rows(std::uint64_t rows, std::uint64_t rank, const Context& context, const Fill& fill, const Work& work,
                  bool with_inner) {
  const Chunks chunks(rows, rank);
  const std::uint64_t columns = small_columns(rank);
  const std::uint64_t part_size = columns * columns + columns;
  Buffer<double> parts(context, std::max<std::uint64_t>(1, chunks.count) * part_size, "sums over the rows of a factor");
  cpu::parallel_ranges(
      context.thread_count(), chunks.count,
      [&](std::uint64_t first, std::uint64_t last) {
        std::vector<double> memory(2 * block_rows * columns);
        std::array<std::uint64_t, block_rows> indices = {};
        Block block{0, columns, memory.data(), memory.data() + block_rows * columns, indices.data()};
        for (std::uint64_t c = first; c < last; ++c) {
          double* gram = parts.data() + c * part_size;
          for (std::uint64_t i = chunks.begin(c); i < chunks.end(c);) {
            block.count = 0;
            i = fill(i, chunks.end(c), block);
            work(block);
            HWY_DYNAMIC_DISPATCH(add_gram)(block, gram);
            if (with_inner) HWY_DYNAMIC_DISPATCH(add_inner)(block, gram + columns * columns);
          }
        }
      },
      1 + (std::uint64_t{1} << 20U) / (chunks.length * columns * columns));  // below 50 us a team does not pay
  RowSums sums{Small(rank), std::vector<double>(columns)};
  for (std::uint64_t c = 0; c < chunks.count; ++c) {
    const double* part = parts.data() + c * part_size;
    for (std::uint64_t e = 0; e < columns * columns; ++e) sums.gram.values[e] += part[e];
    for (std::uint64_t r = 0; r < columns; ++r) sums.inner[r] += part[columns * columns + r];
  }
  for (std::uint64_t r = 0; r < columns; ++r)
    for (std::uint64_t s = 0; s < r; ++s) sums.gram(s, r) = sums.gram(r, s);
  return sums;
}

}  // namespace

template <class T>
RowSums solve_rows(FactorMatrix<T>& rows, const Small& solution, const Context& context) {
  const Rows<T> to{rows.data(), rows.stride()};
  const Rows<const T> from{rows.data(), rows.stride()};
  return over_rows(
      rows.rows(), rows.cols(), context,
      [&](std::uint64_t begin, std::uint64_t end, Block& block) { return load(from, begin, end, block, block.before); },
      [&](const Block& block) {
        HWY_DYNAMIC_DISPATCH(multiply)(block, solution.values.data());
        store(block, to);
      },
      true);
}

template <class T>
Small gram_of(const FactorMatrix<T>& rows, const Context& context) {
  const Rows<const T> from{rows.data(), rows.stride()};
  return over_rows(
             rows.rows(), rows.cols(), context,
             [&](std::uint64_t begin, std::uint64_t end, Block& block) {
               return load(from, begin, end, block, block.after);
             },
             [](const Block&) {}, false)
      .gram;
}

template <class T>
RowSums descend_rows(const FactorMatrix<T>& v, FactorMatrix<T>& factor, double v_scale, const Small& gram,
                     const std::vector<double>& start_scale, const std::vector<double>& end_scale, int sweeps,
                     const Context& context) {
  const std::uint64_t rank = v.cols();
  const std::uint64_t columns = small_columns(rank);
  return over_rows(
      v.rows(), rank, context,
      [&](std::uint64_t i, std::uint64_t end, Block& block) {
        for (; i < end && block.count < block_rows; ++i) {
          if (is_zero(v.row(i), rank)) {  // the minimum is 0
            std::fill(factor.row(i), factor.row(i) + rank, T{0});
            continue;
          }
          double* before = block.before + block.count * columns;
          double* after = block.after + block.count * columns;
          for (std::uint64_t r = 0; r < rank; ++r) {
            before[r] = static_cast<double>(v(i, r)) * v_scale;
            after[r] = static_cast<double>(factor(i, r)) * start_scale[r];
          }
          block.indices[block.count++] = i;
        }
        return i;
      },
      [&](const Block& block) {
        std::vector<double> gradient(columns);
        for (std::uint64_t k = 0; k < block.count; ++k) {
          const double* before = block.before + k * columns;
          double* a = block.after + k * columns;
          std::copy(before, before + columns, gradient.begin());
          for (std::uint64_t s = 0; s < rank; ++s)
            if (a[s] != 0)
              for (std::uint64_t r = 0; r < rank; ++r) gradient[r] -= a[s] * gram(s, r);
          HWY_DYNAMIC_DISPATCH(descend)(a, gradient.data(), gram.values.data(), columns, rank, sweeps);
          for (std::uint64_t r = 0; r < rank; ++r) a[r] *= end_scale[r];
        }
        store(block, Rows<T>{factor.data(), factor.stride()});
      },
      true);
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

#define POLYAD_INSTANTIATE(T)                                                                                 \
  template RowSums solve_rows(FactorMatrix<T>&, const Small&, const Context&);                                \
  template Small gram_of(const FactorMatrix<T>&, const Context&);                                             \
  template RowSums descend_rows(const FactorMatrix<T>&, FactorMatrix<T>&, double, const Small&,               \
                                const std::vector<double>&, const std::vector<double>&, int, const Context&); \
  template void scale_columns(FactorMatrix<T>&, const std::vector<double>&, const Context&);
POLYAD_INSTANTIATE(float)
POLYAD_INSTANTIATE(double)
#undef POLYAD_INSTANTIATE

}  // namespace polyad::cp_als_detail
#endif
