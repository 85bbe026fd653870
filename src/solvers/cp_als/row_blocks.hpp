// SPDX-License-Identifier: MIT
/// \file Loops over blocks of rows with vectors: solving them, their Gram matrix, their inner products.
#pragma once

#include <cstdint>

#include "core/row_parts.hpp"

namespace polyad::cp_als_detail {

inline constexpr std::uint64_t block_rows = 128;

/// Columns of a tile of the small products: one widest vector.
template <class T>
inline constexpr std::uint64_t tile_columns = 64 / sizeof(T);

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

/// Columns of a block for rows of so many numbers.
template <class T>
[[nodiscard]] constexpr std::uint64_t block_columns(std::uint64_t rank) {
  return summed_columns(rank, sizeof(T));
}

#define POLYAD_FOR(T)                                                                                               \
  /* after = before * solution, for the rows that are not solved. */                                                \
  void multiply(const Block<T>& b, const T* solution);                                                              \
  /* Lower triangle, by tiles, of gram += after' after. Sums over a block are in T, over blocks in double. */       \
  void add_gram(const Block<T>& b, double* gram);                                                                   \
  /* inner[r] += sum over the rows of before * after. */                                                            \
  void add_inner(const Block<T>& b, double* inner);                                                                 \
  /* Fills `to` (before or after of the block) with rows begin .. end that are not zero, the first of which is      \
     at rows.data, until the block is full. Returns the first row not looked at. */                                 \
  [[nodiscard]] std::uint64_t load(Rows<const T> rows, std::uint64_t begin, std::uint64_t end, Block<T>& b, T* to); \
  /* Puts `after` of the rows that were not solved where they belong. */                                            \
  void store(const Block<T>& b, Rows<T> rows);                                                                      \
  /* Whether at least three of four rows are not zero, by every eighth of them: then zeros are solved with the      \
     others, where they lie. */                                                                                     \
  [[nodiscard]] bool is_mostly_filled(Rows<const T> rows, std::uint64_t count);                                     \
  /* rows = rows * solution, without a copy of them; inner[r] += sum over the rows of before * after. False, and    \
     nothing is done, where a row has too many vectors for that. */                                                 \
  [[nodiscard]] bool solve_in_place(T* rows, std::uint64_t count, std::uint64_t columns, const T* solution,         \
                                    double* inner);                                                                 \
  /* Copies rows past the caches. hwy::FlushStream has to come before another thread reads them. */                 \
  void copy_past_cache(Rows<const T> from, std::uint64_t count, T* to);
POLYAD_FOR(float)
POLYAD_FOR(double)
#undef POLYAD_FOR

/// One row of HALS: `gradient` is v - a G and follows every change of a. \param columns of G in memory
void descend(double* a, double* gradient, const double* gram, std::uint64_t columns, std::uint64_t rank, int sweeps);

}  // namespace polyad::cp_als_detail
