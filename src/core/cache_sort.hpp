// SPDX-License-Identifier: MIT
/// \file Radix sort of records that a cache holds, by one thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/record_keys.hpp"

namespace polyad::radix {

/// Stable insertion sort by the key's bits from `floor` on, for a handful.
template <class Rec>
inline void insertion_sort(Rec* a, std::size_t n, int floor) {
  for (std::size_t i = 1; i < n; ++i) {
    const Rec r = a[i];
    const auto key = key_of(r) >> floor;
    std::size_t j = i;
    for (; j > 0 && key_of(a[j - 1]) >> floor > key; --j) a[j] = a[j - 1];
    a[j] = r;
  }
}

/// Sorts n records, n < 2^32, stably by the key's bits from `floor` on (below the highest): LSD passes over those that
/// differ; `other` has room for n. Returns where the result is: a or other.
template <class Rec>
inline Rec* sort_in_cache(Rec* a, Rec* other, std::size_t n, int floor = 0) {
  using Key = KeyOf<Rec>;
  if (n <= 24) {
    insertion_sort(a, n, floor);
    return a;
  }
  const Key first = key_of(a[0]);
  Key differ = 0;
  Key previous = first;
  bool in_order = true;
  for (std::size_t i = 1; i < n; ++i) {
    const Key key = key_of(a[i]);
    differ |= key ^ first;
    in_order &= previous >> floor <= key >> floor;
    previous = key;
  }
  if (in_order) return a;
  differ = static_cast<Key>(differ >> floor << floor);
  std::array<std::uint32_t, 2048> next;
  const int widest = n >= 4096 ? 11 : n >= 512 ? 8 : 6;
  while (differ != 0) {
    const int shift = lowest_bit(differ);
    const int span = width_of(differ) - shift;
    const int passes = (span + widest - 1) / widest;
    const int width = (span + passes - 1) / passes;
    const std::uint32_t mask = (1U << static_cast<unsigned>(width)) - 1;
    std::fill_n(next.data(), mask + 1, 0U);
    for (std::size_t i = 0; i < n; ++i) ++next[static_cast<std::uint32_t>(key_of(a[i]) >> shift) & mask];
    std::uint32_t sum = 0;
    for (std::uint32_t d = 0; d <= mask; ++d) sum += std::exchange(next[d], sum);
    for (std::size_t i = 0; i < n; ++i) other[next[static_cast<std::uint32_t>(key_of(a[i]) >> shift) & mask]++] = a[i];
    std::swap(a, other);
    differ &= static_cast<Key>(~(static_cast<Key>(mask) << shift));
  }
  return a;
}

}  // namespace polyad::radix
