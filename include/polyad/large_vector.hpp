// SPDX-License-Identifier: MIT
/// \file A std::vector for many numbers: on huge pages when it is large, and not set before it is filled.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace polyad {

namespace detail {

/// Memory of at least so many bytes, aligned to cache lines; from 1 MB on huge pages, or pages that were in use before
/// (PageReuse). Throws std::bad_alloc.
[[nodiscard]] void* allocate_large(std::size_t bytes);
/// \param bytes those it was allocated with
void free_large(void* memory, std::size_t bytes) noexcept;

}  // namespace detail

/// Gives elements no value of their own when a vector grows by a size alone: a thread that fills 300 MB should not wait
/// for another that wrote zeros there (darpa's model of rank 16: 150 ms of 1.2 s for one iteration).
template <class T>
struct LargeAllocator {
  using value_type = T;

  LargeAllocator() = default;
  template <class U>
  LargeAllocator(const LargeAllocator<U>& /*other*/) noexcept {}  // NOLINT(google-explicit-constructor): allocators do

  [[nodiscard]] T* allocate(std::size_t count) {
    if (count > static_cast<std::size_t>(-1) / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(detail::allocate_large(count * sizeof(T)));
  }
  void deallocate(T* memory, std::size_t count) noexcept { detail::free_large(memory, count * sizeof(T)); }

  template <class U>
  void construct(U* at) noexcept {
    ::new (static_cast<void*>(at)) U;
  }
  template <class U, class... Args>
  void construct(U* at, Args&&... args) {
    std::construct_at(at, std::forward<Args>(args)...);
  }

  friend bool operator==(const LargeAllocator&, const LargeAllocator&) { return true; }
};

/// LargeVector(n) has n elements without a value; LargeVector(n, 0.0) has zeros.
template <class T>
using LargeVector = std::vector<T, LargeAllocator<T>>;

}  // namespace polyad
