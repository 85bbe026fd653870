// SPDX-License-Identifier: MIT
/// \file Coordinates that stay in their file: the tensor may be larger than the memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "core/format.hpp"
#include "polyad/coo_tensor.hpp"

namespace polyad {

/// Coordinates whose arrays are pages of a mapped file. They are read in windows: those of the next window are asked
/// for while one is computed with, and given back when it is done, so that at most two windows a thread are in memory.
struct Stream {
  CooTensor x;
  TensorShape tensor_shape;
  bool in_file = false;      ///< the arrays are pages of a file that nobody changed; else they are in memory
  std::uint64_t window = 0;  ///< nonzeros that one thread has before it at a time
  int threads = 1;           ///< that windows were counted for
  /// Nonzeros decoded since pages were last given back.
  std::unique_ptr<std::atomic<std::uint64_t>> decoded = std::make_unique<std::atomic<std::uint64_t>>(0);

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

  /// A copy of nonzeros; gives pages back now and then, whoever reads.
  template <class Index, class Value>
  void decode(std::uint64_t first, std::size_t count, NonzeroBlock<Index, Value>& block) const {
    block.index_stride = 1;
    for (std::size_t m = 0; m < x.dims.size(); ++m)
      std::copy_n(typed<Index>(x.indices[m]) + first, count, block.index_room(static_cast<int>(m)));
    std::copy_n(typed<Value>(x.values) + first, count, block.value_room());
    if (in_file && decoded->fetch_add(count, std::memory_order_relaxed) > window) {
      decoded->store(0, std::memory_order_relaxed);
      drop(0, tensor_shape.nnz);
    }
  }
};

}  // namespace polyad
