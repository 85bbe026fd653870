// SPDX-License-Identifier: MIT
/// \file ALTO: one linearised index per nonzero (Helal et al., ICS 2021).
#pragma once

#include <cstdint>
#include <span>

#include "core/bit_layout.hpp"
#include "core/format.hpp"

namespace polyad {

/// ALTO: the nonzeros in the order of a line that winds through the tensor, each with its place on the line.
struct Alto {
  /// Nonzeros whose rows are summed up in one span. With 3 modes the spans take 0.012 bytes per nonzero.
  static constexpr std::uint64_t segment_nonzeros = 4096;

  /// The smallest and the largest index of a mode within a segment.
  struct Span {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
  };

  TensorShape tensor_shape;
  BitLayout layout;
  std::size_t key_words = 1;   // 1 or 2
  Buffer<std::uint64_t> keys;  // [nnz][key_words], the low word first
  ValueBuffer values;          // [nnz]
  Buffer<Span> spans;          // [order][segments]

  [[nodiscard]] static Alto build(const CooTensor& x, const FormatOptions& options, const Context& context);

  [[nodiscard]] const TensorShape& shape() const { return tensor_shape; }
  [[nodiscard]] std::uint64_t bytes() const {
    return keys.bytes() + tensor_shape.nnz * bytes_of(tensor_shape.precision) + spans.bytes();
  }
  [[nodiscard]] std::uint64_t segments() const { return (tensor_shape.nnz + segment_nonzeros - 1) / segment_nonzeros; }

  /// The rows of a mode that nonzeros of segments [begin, end) have; begin < end.
  [[nodiscard]] Span span_of(int mode, std::uint64_t begin, std::uint64_t end) const;

  template <class Index, class Value>
  void decode(std::uint64_t first, std::size_t count, NonzeroBlock<Index, Value>& block) const {
    for (int m = 0; m < tensor_shape.order(); ++m)
      layout.decode(keys.data() + first * key_words, key_words, count, m, block.index_room(m));
    block.values = typed<Value>(values) + first;
  }
};

/// The layout of ALTO's line for a shape.
[[nodiscard]] BitLayout alto_layout(std::span<const std::uint64_t> dims);

}  // namespace polyad
