// SPDX-License-Identifier: MIT
/// \file The one loop over nonzeros that all coordinate-like formats share. A format decodes blocks of nonzeros (or
/// points at its arrays); this loop multiplies the factor rows in registers, a block of 4 to 32 columns at a time, and
/// hands the product to a sink.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/format.hpp"
#include "kernels/mttkrp/output.hpp"
#include "kernels/mttkrp/request.hpp"

namespace polyad {

/// Factor rows are requested this many nonzeros before they are used.
inline constexpr std::size_t prefetch_distance = 16;
/// Nonzeros of a block: with those ahead they fit NonzeroBlock::capacity.
inline constexpr std::size_t loop_nonzeros = 512;

/// Everything the loop needs, for one block of nonzeros.
template <class Index, class T>
struct NonzeroLoop {
  int inputs = 0;                                    // factors to multiply
  std::array<const T*, max_order> factors = {};      // [inputs][rows][stride], the largest first
  std::array<const Index*, max_order> indices = {};  // [inputs][available]
  const Index* rows = nullptr;                       // [available] rows of the output
  const T* values = nullptr;                         // [count]
  std::size_t index_stride = 1;                      // of indices and rows
  std::size_t count = 0;                             // nonzeros to add
  std::size_t available = 0;                         // >= count: how far the indices may be read
  std::uint64_t stride = 0;                          // of factors and output
  std::uint64_t cols = 0;                            // <= stride: columns that matter
  int prefetched = 0;                                // so many of the first factors are worth prefetching
  bool prefetch_output = false;
  bool runs = false;  // neighbours often share the output row: sum in registers while they do
  Sink<T> sink;
};

/// out(rows[k],:) += values[k] * Hadamard product of factors[m](indices[m][k],:), in the order of k.
void add_nonzeros(const NonzeroLoop<std::uint32_t, float>& loop);
void add_nonzeros(const NonzeroLoop<std::uint32_t, double>& loop);
void add_nonzeros(const NonzeroLoop<std::uint64_t, float>& loop);
void add_nonzeros(const NonzeroLoop<std::uint64_t, double>& loop);

/// A matrix smaller than this stays in the L2 cache by itself: prefetching its rows only costs instructions.
inline constexpr std::uint64_t worth_prefetching = std::uint64_t{256} << 10U;

/// The part of a NonzeroLoop that is the same for all blocks of a request, and the order of its input modes.
template <class Index, class T>
struct LoopPlan {
  NonzeroLoop<Index, T> loop;
  std::array<int, max_order> modes = {};  // [inputs]

  explicit LoopPlan(const MttkrpRequest<T>& r) {
    for (int m = 0; m < r.order(); ++m)
      if (m != r.mode) modes[static_cast<std::size_t>(loop.inputs++)] = m;
    std::stable_sort(modes.begin(), modes.begin() + loop.inputs, [&](int a, int b) {
      return r.factors[static_cast<std::size_t>(a)].rows() > r.factors[static_cast<std::size_t>(b)].rows();
    });
    for (int i = 0; i < loop.inputs; ++i) {
      const auto& factor = r.factors[static_cast<std::size_t>(modes[static_cast<std::size_t>(i)])];
      loop.factors[static_cast<std::size_t>(i)] = factor.data();
      if (factor.bytes() >= worth_prefetching) ++loop.prefetched;
    }
    loop.stride = r.stride();
    loop.cols = r.out.cols();
    loop.prefetch_output = r.out.bytes() >= worth_prefetching;
  }

  /// The loop for a decoded block.
  [[nodiscard]] NonzeroLoop<Index, T> over(const NonzeroBlock<Index, T>& block, int mode, std::size_t count,
                                           std::size_t available, const Sink<T>& sink) const {
    NonzeroLoop<Index, T> l = loop;
    for (int i = 0; i < l.inputs; ++i)
      l.indices[static_cast<std::size_t>(i)] =
          block.indices[static_cast<std::size_t>(modes[static_cast<std::size_t>(i)])];
    l.rows = block.indices[static_cast<std::size_t>(mode)];
    l.values = block.values;
    l.index_stride = block.index_stride;
    l.count = count;
    l.available = available;
    l.sink = sink;
    return l;
  }
};

/// Whether neighbours share the row of a mode so often that summing them in registers pays: a row that was just stored
/// is slow to load again (31 cycles a nonzero when all share it, against 13), a wrong guess of the branch costs
/// about 20. Looks at some places of the format only.
template <class Index, class T, class F>
[[nodiscard]] bool rows_come_in_runs(const F& format, int mode, std::uint64_t nnz, NonzeroBlock<Index, T>& block) {
  constexpr std::uint64_t places = 16;
  std::uint64_t pairs = 0;
  std::uint64_t equal = 0;
  for (std::uint64_t p = 0; p < places; ++p) {
    const std::uint64_t first = nnz / places * p;
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(nnz - first, 128));
    if (count < 2) continue;
    format.decode(first, count, block);
    const Index* rows = block.indices[static_cast<std::size_t>(mode)];
    for (std::size_t k = 1; k < count; ++k)
      equal += rows[k * block.index_stride] == rows[(k - 1) * block.index_stride] ? 1 : 0;
    pairs += count - 1;
  }
  return 4 * equal > 3 * pairs;
}

/// Adds nonzeros begin .. end of a format (anything with decode) to a sink. `last` is the end of what may be decoded
/// ahead.
template <class Index, class T, class F>
void add_range(const F& format, int mode, const LoopPlan<Index, T>& plan, std::uint64_t begin, std::uint64_t end,
               std::uint64_t last, const Sink<T>& sink, NonzeroBlock<Index, T>& block) {
  while (begin < end) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(end - begin, loop_nonzeros));
    const auto available = static_cast<std::size_t>(std::min<std::uint64_t>(last - begin, count + prefetch_distance));
    format.decode(begin, available, block);
    add_nonzeros(plan.over(block, mode, count, available, sink));
    begin += count;
  }
}

}  // namespace polyad
