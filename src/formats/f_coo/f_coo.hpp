// SPDX-License-Identifier: MIT
/// \file F-COO (Liu et al., "A unified optimization approach for sparse tensor operations on GPUs", as described in the
/// HiCOO paper, section III-D): nonzeros sorted by the output mode, whose index is replaced by one bit.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "core/format.hpp"
#include "polyad/coo_tensor.hpp"

namespace polyad {

/// F-COO for one output mode.
struct FCoo {
  /// Nonzeros of a chunk, which in the paper is what one thread handles: 8 words of flags.
  static constexpr std::uint64_t chunk_nonzeros = 512;

  TensorShape tensor_shape;
  int mode = 0;                       ///< the output mode
  std::vector<IndexBuffer> indices;   ///< [order][nnz]; that of the output mode is empty
  ValueBuffer values;                 ///< [nnz]
  Buffer<std::uint64_t> bit_flags;    ///< 1 bit per nonzero: its output index differs from the one before
  Buffer<std::uint64_t> start_flags;  ///< 1 bit per chunk: the bit flag of its first nonzero
  IndexBuffer rows;                   ///< the output indices that occur, ascending
  Buffer<std::uint64_t> chunk_row;    ///< [chunks] place in `rows` of a chunk's first nonzero

  [[nodiscard]] static FCoo build(const CooTensor& x, const FormatOptions& options, const Context& context);

  [[nodiscard]] const TensorShape& shape() const { return tensor_shape; }
  [[nodiscard]] std::uint64_t bytes() const;

  /// Place in `rows` of a nonzero: that of its chunk, and the flags between.
  [[nodiscard]] std::uint64_t row_place(std::uint64_t nonzero) const {
    const std::uint64_t chunk = nonzero / chunk_nonzeros;
    const std::uint64_t last = nonzero / 64;
    std::uint64_t word = chunk * (chunk_nonzeros / 64);
    // The place of the chunk counts the flag of its first nonzero already.
    std::uint64_t place = chunk_row[chunk] - (start_flags[chunk / 64] >> (chunk % 64) & 1U);
    for (; word < last; ++word) place += static_cast<std::uint64_t>(std::popcount(bit_flags[word]));
    const std::uint64_t upto = ~std::uint64_t{0} >> (63 - nonzero % 64);
    return place + static_cast<std::uint64_t>(std::popcount(bit_flags[last] & upto));
  }

  template <class Index, class Value>
  void decode(std::uint64_t first, std::size_t count, NonzeroBlock<Index, Value>& block) const {
    for (std::size_t m = 0; m < indices.size(); ++m)
      if (static_cast<int>(m) != mode) block.indices[m] = typed<Index>(indices[m]) + first;
    block.values = typed<Value>(values) + first;
    if (count == 0) return;
    Index* out = block.index_room(mode);
    const Index* row = typed<Index>(rows) + row_place(first);
    out[0] = *row;
    for (std::size_t k = 1; k < count; ++k) {
      row += bit_flags[(first + k) / 64] >> ((first + k) % 64) & 1U;
      out[k] = *row;
    }
  }
};

}  // namespace polyad
