// SPDX-License-Identifier: MIT
/// \file Nonzeros sorted by one mode, with indices as narrow as they fit: the plainest form that a thread can sum rows
/// from. README.md beside it has the layout.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <variant>
#include <vector>

#include "core/format.hpp"
#include "core/narrow_values.hpp"
#include "core/sorted_nonzeros.hpp"
#include "core/tensor_sample.hpp"
#include "formats/copies/index24.hpp"
#include "formats/offsets.hpp"

namespace polyad {

/// How the values of a tensor are stored: as the options say, unless that is the code of other values.
[[nodiscard]] inline ValueCode value_code(const CooTensor& x, const FormatOptions& options, const Context& context) {
  return options.value_code && options.value_code->suits(x) ? *options.value_code : ValueCode::of(x, context);
}

/// A copy of the tensor for one output mode. Nonzeros of one output row lie side by side.
struct SortedCopy {
  /// Nonzeros of a chunk, but for the last: what a thread takes at a time.
  static constexpr std::uint64_t chunk_nonzeros = std::uint64_t{1} << 14U;
  /// Rows of a block; the first block begins with row 0.
  static constexpr std::uint64_t block_rows = 256;
  using RowInBlock = std::uint8_t;
  static_assert(block_rows - 1 <= std::numeric_limits<RowInBlock>::max());
  /// Elements behind the last one that loops may look at, ahead of what they do.
  static constexpr std::size_t padding = 64;

  using NarrowBuffer =
      std::variant<Buffer<std::uint16_t>, Buffer<Index24>, Buffer<std::uint32_t>, Buffer<std::uint64_t>>;

  TensorShape tensor_shape;
  int mode = 0;                       ///< the output mode
  std::vector<NarrowBuffer> indices;  ///< [order][nnz + padding], all of one type; that of the output mode is empty
  NarrowValues values;                ///< [nnz]
  IndexBuffer rows;                   ///< the output indices that occur, ascending; empty if begin has all indices
  Offsets begin;                      ///< [rows + 1] the first nonzero of each, or [dim + 1] of every index
  /// Which rows the first and the last nonzero of a chunk are in: places in begin, which a kernel would have to search.
  struct ChunkEnds {
    std::uint64_t first_row = 0;
    std::uint64_t last_row = 0;
  };
  Buffer<ChunkEnds> ends;  ///< [chunks]
  /// Where rows are short, those of a block lie by their number of nonzeros, but for the first and the last of a chunk:
  /// [dim] what the i-th row is in its block. Empty: they ascend.
  Buffer<RowInBlock> by_length;

  [[nodiscard]] static SortedCopy build(const CooTensor& x, const FormatOptions& options, const Context& context);
  /// From the nonzeros of x sorted with the output mode as their first level.
  [[nodiscard]] static SortedCopy from(const SortedNonzeros& sorted, const CooTensor& x, const ValueCode& code,
                                       const Context& context);
  /// From the nonzeros of x in any order, which those of an output row keep.
  [[nodiscard]] static SortedCopy sorted(const SortedNonzeros& nonzeros, int mode, const CooTensor& x,
                                         const ValueCode& code, const Context& context);

  /// Bytes of an index: of the narrowest type that holds those of all modes but one.
  [[nodiscard]] static std::uint64_t index_bytes(const std::vector<std::uint64_t>& dims, int mode);
  /// Bytes of a copy with so many output rows.
  [[nodiscard]] static double predicted_bytes(const CooTensor& x, int mode, double rows, const ValueCode& code);

  [[nodiscard]] const TensorShape& shape() const { return tensor_shape; }
  [[nodiscard]] std::uint64_t bytes() const;
  [[nodiscard]] const NarrowValues* stored_values() const { return &values; }
  /// Whether begin has all indices of a mode, so many of which occur: the smaller form.
  [[nodiscard]] static bool lists_all(const TensorShape& shape, int mode, double occurring) {
    return shape.index_width() == IndexWidth::u32 &&
           2 * occurring >= static_cast<double>(shape.dims[static_cast<std::size_t>(mode)]);
  }
  /// Whether rows of a mode, so many of which occur, lie by their length.
  [[nodiscard]] static bool orders_rows(const TensorShape& shape, int mode, double occurring);
  [[nodiscard]] std::uint64_t chunks() const { return chunks_of(tensor_shape.nnz); }
  [[nodiscard]] static constexpr std::uint64_t chunks_of(std::uint64_t nnz) {
    return (nnz + chunk_nonzeros - 1) / chunk_nonzeros;
  }

  template <class Index, class Value>
  void decode(std::uint64_t first, std::size_t count, NonzeroBlock<Index, Value>& block) const {
    block.index_stride = 1;
    block.values = values.get(first, count, block.value_room());
    for (int m = 0; m < tensor_shape.order(); ++m) {
      if (m == mode) continue;
      std::visit(
          [&]<class Stored>(const Buffer<Stored>& stored) {
            if constexpr (std::is_same_v<Stored, Index>) {
              block.indices[static_cast<std::size_t>(m)] = stored.data() + first;
            } else {
              Index* out = block.index_room(m);
              for (std::size_t k = 0; k < count; ++k) out[k] = static_cast<Index>(stored[first + k]);
            }
          },
          indices[static_cast<std::size_t>(m)]);
    }
    if (count == 0) return;
    Index* out = block.index_room(mode);
    std::uint64_t row = begin.group_of(first);
    const Index* listed = bytes_in(rows) == 0 ? nullptr : typed<Index>(rows);
    for (std::size_t k = 0; k < count; ++k) {
      while (first + k == begin[row + 1]) ++row;
      out[k] = listed == nullptr ? static_cast<Index>(index_of(row)) : listed[row];
    }
  }
  /// The output index of row i where none are listed.
  [[nodiscard]] std::uint64_t index_of(std::uint64_t i) const {
    return by_length.empty() ? i : in_block_of(i, by_length[i]);
  }
  /// A row of the block that row i is in.
  [[nodiscard]] static constexpr std::uint64_t in_block_of(std::uint64_t i, RowInBlock row) {
    return i / block_rows * block_rows + row;
  }

 private:
  /// Rows with fewer nonzeros on average are worth ordering.
  static constexpr std::uint64_t short_row = 32;
  /// Inputs whose columns have more bytes are waited for, whatever the order.
  static constexpr std::uint64_t most_near_bytes = std::uint64_t{1} << 19U;

  /// What is used again from block to block.
  struct OrderScratch {
    std::vector<std::uint32_t> begins;  // [rows + 1]
    std::vector<std::uint32_t> place;   // [length + 1]
    std::vector<std::byte> room;
  };

  /// What follows from begin: ends, and by_length where it pays.
  void finish(const Context& context);
  void find_ends(const Context& context);
  /// Sets by_length where it pays and moves nonzeros accordingly.
  void order_by_length(const Context& context);
  /// Orders rows from .. to, which are in one block.
  void order_rows(std::uint64_t from, std::uint64_t to, OrderScratch& scratch);

  /// Arrays of the right types, to be filled.
  [[nodiscard]] static SortedCopy with_room(const SortedNonzeros& nonzeros, int mode, const CooTensor& x,
                                            const ValueCode& code, const Context& context);
  /// Calls fill_arrays(source, NarrowArrays, Code) with typed nonzeros, the arrays that they go to, and a code of their
  /// values.
  template <class Fill>
  void fill(const SortedNonzeros& nonzeros, const Fill& fill_arrays);
};

}  // namespace polyad
