// SPDX-License-Identifier: MIT
/// \file Coordinates that stay in their file: the tensor may be larger than the memory.
#pragma once

#include <cstdint>
#include <memory>

#include "core/counted.hpp"
#include "core/format.hpp"
#include "polyad/coo_tensor.hpp"

namespace polyad {

/// Coordinates whose arrays are pages of a mapped file. They are read in windows: those of the next window are asked
/// for while one is computed with, and given back when it is done, so that at most two windows a thread are in memory.
struct Stream {
  CooTensor x;
  TensorShape tensor_shape;
  bool in_file = false;              ///< the arrays are pages of a file that nobody changed; else they are in memory
  std::uint64_t window = 0;          ///< nonzeros that one thread has before it at a time
  int threads = 1;                   ///< that windows were counted for
  std::unique_ptr<Counted> counted;  ///< the windows

  /// A copy in memory.
  [[nodiscard]] static Stream build(const CooTensor& x, const FormatOptions& options, const Context& context);
  /// Over the arrays themselves, which are views of a file.
  [[nodiscard]] static Stream over(CooTensor&& x, const Context& context);

  [[nodiscard]] const TensorShape& shape() const { return tensor_shape; }
  /// Of what is in memory: all of a copy, two windows a thread of a file.
  [[nodiscard]] std::uint64_t bytes() const;

  /// Asks for the pages of nonzeros first .. last; they are read while others are computed with.
  void fetch(std::uint64_t first, std::uint64_t last) const;
  /// Gives the pages of nonzeros first .. last back.
  void drop(std::uint64_t first, std::uint64_t last) const;

  /// Nonzeros where they lie, for loops that fetch and drop windows themselves.
  template <class Index, class Value>
  void view(std::uint64_t first, NonzeroBlock<Index, Value>& block) const {
    block.index_stride = 1;
    for (std::size_t m = 0; m < x.dims.size(); ++m) block.indices[m] = typed<Index>(x.indices[m]) + first;
    block.values = typed<Value>(x.values) + first;
  }

  /// A copy of nonzeros. Readers go forwards, so what lies behind is given back now and then.
  template <class Index, class Value>
  void decode(std::uint64_t begin, std::size_t count, NonzeroBlock<Index, Value>& block) const {
    block.index_stride = 1;
    for (std::size_t m = 0; m < x.dims.size(); ++m)
      std::copy_n(typed<Index>(x.indices[m]) + begin, count, block.index_room(static_cast<int>(m)));
    std::copy_n(typed<Value>(x.values) + begin, count, block.value_room());
    const std::uint64_t end = begin + count;
    if (begin / window != end / window) drop(end - std::min(end, 2 * window), end);
  }
};

}  // namespace polyad
