// SPDX-License-Identifier: MIT
#include "core/nonzero_order.hpp"

#include "backends/cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/nonzero_order.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <type_traits>

#include "backends/cpu/threads.hpp"

HWY_BEFORE_NAMESPACE();
namespace polyad::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// The order of nonzeros begin .. begin + pairs: a vector of them at a time, index after index as long as some agree
/// with the nonzero before. No branch for single nonzeros: whether neighbours agree cannot be foreseen. The indices of
/// every nonzero, the most significant first.
template <class Index>
NonzeroOrder order_of_pairs(std::span<const Index* const> indices, std::uint64_t begin, std::size_t pairs) {
  const hn::ScalableTag<Index> d;
  const std::size_t lanes = hn::Lanes(d);
  bool agree = false;
  std::size_t i = 0;
  for (; i + lanes <= pairs; i += lanes) {
    auto equal = hn::FirstN(d, lanes);  // in all indices so far
    for (std::size_t l = 0; l < indices.size(); ++l) {
      const auto before = hn::LoadU(d, indices[l] + begin + i);
      const auto after = hn::LoadU(d, indices[l] + begin + i + 1);
      if (!hn::AllFalse(d, hn::And(equal, hn::Gt(before, after)))) return NonzeroOrder::none;
      equal = hn::And(equal, hn::Eq(before, after));
      if (hn::AllFalse(d, equal)) break;
    }
    agree |= !hn::AllFalse(d, equal);
  }
  for (; i < pairs; ++i) {
    std::size_t l = 0;
    while (l < indices.size() && indices[l][begin + i] == indices[l][begin + i + 1]) ++l;
    if (l == indices.size()) {
      agree = true;
    } else if (indices[l][begin + i] > indices[l][begin + i + 1]) {
      return NonzeroOrder::none;
    }
  }
  return agree ? NonzeroOrder::sorted : NonzeroOrder::strict;
}

NonzeroOrder order_u32(std::span<const std::uint32_t* const> indices, std::uint64_t begin, std::size_t pairs) {
  return order_of_pairs(indices, begin, pairs);
}
NonzeroOrder order_u64(std::span<const std::uint64_t* const> indices, std::uint64_t begin, std::size_t pairs) {
  return order_of_pairs(indices, begin, pairs);
}

}  // namespace polyad::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyad {

HWY_EXPORT(order_u32);
HWY_EXPORT(order_u64);

namespace {

NonzeroOrder order_here(std::span<const std::uint32_t* const> indices, std::uint64_t begin, std::size_t pairs) {
  return HWY_DYNAMIC_DISPATCH(order_u32)(indices, begin, pairs);
}
NonzeroOrder order_here(std::span<const std::uint64_t* const> indices, std::uint64_t begin, std::size_t pairs) {
  return HWY_DYNAMIC_DISPATCH(order_u64)(indices, begin, pairs);
}

}  // namespace

NonzeroOrder order_of(const CooTensor& x, std::span<const int> modes, const Context& context) {
  return visit(x, [&]<class Index, class Value>(const CooView<Index, Value>& v) {
    if (v.nnz < 2) return NonzeroOrder::strict;
    if (modes.empty()) return NonzeroOrder::sorted;
    std::array<const std::remove_const_t<Index>*, max_order> of_modes = {};
    for (std::size_t l = 0; l < modes.size(); ++l) of_modes[l] = v.indices[static_cast<std::size_t>(modes[l])];
    const auto indices = std::span<const std::remove_const_t<Index>* const>(of_modes).first(modes.size());
    // Pairs of neighbours after which threads look whether another one found that they do not ascend.
    constexpr std::size_t block_pairs = 1024;
    std::atomic<bool> ascends{true};
    std::atomic<bool> some_agree{false};
    cpu::parallel_ranges(context.thread_count(), v.nnz - 1, [&](std::uint64_t begin, std::uint64_t end) {
      bool agree = false;
      for (; begin < end && ascends.load(std::memory_order_relaxed); begin += block_pairs) {
        const auto pairs = static_cast<std::size_t>(std::min<std::uint64_t>(end - begin, block_pairs));
        const NonzeroOrder order = order_here(indices, begin, pairs);
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
#endif
