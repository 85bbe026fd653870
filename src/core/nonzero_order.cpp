// SPDX-License-Identifier: MIT
#include "core/nonzero_order.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <type_traits>

#include "backends/cpu/threads.hpp"

namespace polyad {

namespace {

/// Pairs of neighbours that are compared at a time, in the first-level cache.
constexpr std::size_t block_pairs = 1024;

/// The order of nonzeros begin .. begin + pairs. Mode after mode, from the least significant on, in loops without
/// branches: whether neighbours agree in a mode cannot be foreseen.
template <class Index, class Value>
NonzeroOrder order_of_block(const CooView<Index, Value>& v, std::span<const int> modes, std::uint64_t begin,
                            std::size_t pairs) {
  using Flag = std::remove_const_t<Index>;  // as wide as an index: vectors of both have the same length
  std::array<Flag, block_pairs> less;
  std::array<Flag, block_pairs> equal;
  std::fill_n(less.data(), pairs, Flag{0});
  std::fill_n(equal.data(), pairs, Flag{1});
  for (std::size_t l = modes.size(); l-- > 0;) {
    const Index* index = v.indices[static_cast<std::size_t>(modes[l])] + begin;
    for (std::size_t i = 0; i < pairs; ++i) {
      const Flag is_less = index[i] < index[i + 1] ? 1 : 0;
      const Flag is_equal = index[i] == index[i + 1] ? 1 : 0;
      less[i] = is_less | (is_equal & less[i]);
      equal[i] &= is_equal;
    }
  }
  Flag all_ascend = 1;
  Flag some_agree = 0;
  for (std::size_t i = 0; i < pairs; ++i) {
    all_ascend &= less[i] | equal[i];
    some_agree |= equal[i];
  }
  if (all_ascend == 0) return NonzeroOrder::none;
  return some_agree != 0 ? NonzeroOrder::sorted : NonzeroOrder::strict;
}

}  // namespace

NonzeroOrder order_of(const CooTensor& x, std::span<const int> modes, const Context& context) {
  return visit(x, [&]<class Index, class Value>(const CooView<Index, Value>& v) {
    if (v.nnz < 2) return NonzeroOrder::strict;
    if (modes.empty()) return NonzeroOrder::sorted;
    std::atomic<bool> ascends{true};
    std::atomic<bool> some_agree{false};
    cpu::parallel_ranges(context.thread_count(), v.nnz - 1, [&](std::uint64_t begin, std::uint64_t end) {
      bool agree = false;
      for (; begin < end && ascends.load(std::memory_order_relaxed); begin += block_pairs) {
        const auto pairs = static_cast<std::size_t>(std::min<std::uint64_t>(end - begin, block_pairs));
        const NonzeroOrder order = order_of_block(v, modes, begin, pairs);
        agree |= order == NonzeroOrder::sorted;
        if (order == NonzeroOrder::none) ascends.store(false, std::memory_order_relaxed);
      }
      if (agree) some_agree.store(true, std::memory_order_relaxed);
    });
    if (!ascends.load()) return NonzeroOrder::none;
    return some_agree.load() ? NonzeroOrder::sorted : NonzeroOrder::strict;
  });
}

}  // namespace polyad
