// SPDX-License-Identifier: MIT
/// \file HiCOO: blocks in Morton order with 8-bit offsets inside (Li, Sun and Vuduc, SC 2018).
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/format.hpp"
#include "formats/hicoo/blocks.hpp"

namespace polyad {

/// Which superblocks write the same range of rows of a mode: they run one after the other, others in parallel. The
/// paper's `lschr`.
struct HicooSchedule {
  Buffer<std::uint64_t> begins;       // [ranges + 1] into superblocks
  Buffer<std::uint64_t> superblocks;  // [superblocks], range after range, in storage order within a range
  Buffer<std::uint64_t> nonzeros;     // [ranges]

  std::uint64_t independent = 0;  ///< ranges that have superblocks
  std::uint64_t iterations = 0;   ///< superblocks of the range that has most
  std::uint64_t heaviest = 0;     ///< nonzeros of the range that has most

  [[nodiscard]] std::uint64_t ranges() const { return nonzeros.size(); }
  [[nodiscard]] std::span<const std::uint64_t> of_range(std::uint64_t range) const {
    return {superblocks.data() + begins[range], static_cast<std::size_t>(begins[range + 1] - begins[range])};
  }
  [[nodiscard]] std::uint64_t bytes() const { return begins.bytes() + superblocks.bytes() + nonzeros.bytes(); }
};

/// HiCOO: nonzeros of a block lie together, their indices are the block's corner plus offsets of one byte.
struct Hicoo {
  /// Offsets are widened so many at a time: the last array may be read beyond its end.
  static constexpr std::size_t lanes = 16;

  TensorShape tensor_shape;
  bool reproducible = false;  ///< the size of superblocks does not depend on the number of threads
  hicoo::Sides sides;
  Buffer<std::uint64_t> bptr;            // [blocks + 1] first nonzero
  IndexBuffer binds;                     // [blocks][order] coordinates of blocks
  Buffer<std::uint8_t> einds;            // [order][nnz] offsets, and `lanes` bytes that are read but not used
  ValueBuffer values;                    // [nnz]
  Buffer<std::uint64_t> lptr;            // [superblocks + 1] first block
  std::vector<HicooSchedule> schedules;  // [order]

  [[nodiscard]] static Hicoo build(const CooTensor& x, const FormatOptions& options, const Context& context);

  [[nodiscard]] const TensorShape& shape() const { return tensor_shape; }
  [[nodiscard]] std::uint64_t bytes() const;
  [[nodiscard]] std::uint64_t blocks() const { return bptr.size() - 1; }
  [[nodiscard]] std::uint64_t superblocks() const { return lptr.size() - 1; }

  /// Decodes nonzeros [from, to), the first of which lies in the given block, to places at, at + 1, ... of the rooms.
  template <class Index, class Value>
  void decode_run(std::uint64_t block, std::uint64_t from, std::uint64_t to, std::span<Index* const> rooms,
                  std::size_t at) const {
    const std::size_t order = rooms.size();
    const auto bits = static_cast<unsigned>(sides.block_bits);
    // Whole groups of offsets are widened, those beyond the end are overwritten later: nothing depends on the number of
    // nonzeros of a block, which is 1 or 2 in a hypersparse tensor.
    const bool whole = at + (to - from) + lanes <= NonzeroBlock<Index, Value>::capacity;
    for (std::size_t m = 0; m < order; ++m) {
      const std::uint8_t* offsets = einds.data() + m * tensor_shape.nnz;
      const Index* corner = typed<Index>(binds) + block * order + m;
      const std::uint64_t* end = bptr.data() + block + 1;
      Index* out = rooms[m] + at;
      for (std::uint64_t k = from; k < to; ++end, corner += order) {
        const auto base = static_cast<Index>(*corner << bits);
        const std::uint64_t stop = std::min(*end, to);
        if (!whole) {
          for (; k < stop; ++k) *out++ = base + offsets[k];
          continue;
        }
        const auto count = static_cast<std::size_t>(stop - k);
        if (count <= 4) {
          for (std::size_t j = 0; j < 4; ++j) out[j] = base + offsets[k + j];
        } else {
          for (std::size_t i = 0; i < count; i += lanes)
            for (std::size_t j = 0; j < lanes; ++j) out[i + j] = base + offsets[k + i + j];
        }
        out += count;
        k = stop;
      }
    }
  }

  template <class Index, class Value>
  void decode(std::uint64_t first, std::size_t count, NonzeroBlock<Index, Value>& block) const {
    std::array<Index*, max_order> rooms = {};
    for (int m = 0; m < tensor_shape.order(); ++m) rooms[static_cast<std::size_t>(m)] = block.index_room(m);
    block.values = typed<Value>(values) + first;
    if (count == 0) return;
    const auto b = static_cast<std::uint64_t>(std::upper_bound(bptr.begin(), bptr.end(), first) - bptr.begin() - 1);
    decode_run<Index, Value>(b, first, first + count, {rooms.data(), tensor_shape.dims.size()}, 0);
  }
};

/// Reads nonzeros piece by piece into a NonzeroBlock, walking along the blocks. Calls add(count, available) for every
/// piece: `count` nonzeros to add and perhaps some after them, so that the rows they need can be requested ahead.
template <class Index, class Value>
class HicooReader {
 public:
  /// \param ahead so many nonzeros after those to add
  HicooReader(const Hicoo& hicoo, NonzeroBlock<Index, Value>& block, std::size_t ahead)
      : hicoo_(hicoo), block_(block), order_(hicoo.tensor_shape.dims.size()), ahead_(ahead) {
    for (std::size_t m = 0; m < order_; ++m) rooms_[m] = block.index_room(static_cast<int>(m));
  }

  /// Nonzeros [begin, end), in place.
  template <class Add>
  void read(std::uint64_t begin, std::uint64_t end, const Add& add) {
    const auto& bptr = hicoo_.bptr;
    auto b = static_cast<std::uint64_t>(std::upper_bound(bptr.begin(), bptr.end(), begin) - bptr.begin() - 1);
    while (begin < end) {
      const std::uint64_t count = std::min<std::uint64_t>(end - begin, full - ahead_);
      const std::uint64_t available = std::min<std::uint64_t>(hicoo_.tensor_shape.nnz - begin, count + ahead_);
      hicoo_.decode_run<Index, Value>(b, begin, begin + available, {rooms_.data(), order_}, 0);
      block_.values = typed<Value>(hicoo_.values) + begin;
      add(static_cast<std::size_t>(count), static_cast<std::size_t>(available));
      begin += count;
      while (begin < end && bptr[b + 1] <= begin) ++b;
    }
  }

  /// The superblocks of a list, in its order. Large ones are read in place; small ones, which have a handful of
  /// nonzeros in a hypersparse tensor, are collected until they fill a piece.
  template <class Add>
  void read(std::span<const std::uint64_t> superblocks, const Add& add) {
    std::size_t filled = 0;
    const auto flush = [&] {
      if (filled > 0) add(filled, filled);
      filled = 0;
    };
    for (const std::uint64_t s : superblocks) {
      const std::uint64_t first_block = hicoo_.lptr[s];
      const std::uint64_t begin = hicoo_.bptr[first_block];
      const std::uint64_t end = hicoo_.bptr[hicoo_.lptr[s + 1]];
      const auto count = static_cast<std::size_t>(end - begin);
      if (end - begin >= full) {
        flush();
        read(begin, end, add);
        continue;
      }
      if (filled + count > full) flush();
      Value* values = block_.value_room();
      hicoo_.decode_run<Index, Value>(first_block, begin, end, {rooms_.data(), order_}, filled);
      for (std::size_t i = 0; i < count; ++i) values[filled + i] = typed<Value>(hicoo_.values)[begin + i];
      filled += count;
    }
    flush();
  }

 private:
  static constexpr std::size_t full = NonzeroBlock<Index, Value>::capacity - Hicoo::lanes;

  const Hicoo& hicoo_;
  NonzeroBlock<Index, Value>& block_;
  std::size_t order_;
  std::size_t ahead_;
  std::array<Index*, max_order> rooms_ = {};
};

}  // namespace polyad
