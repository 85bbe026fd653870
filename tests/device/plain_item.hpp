// SPDX-License-Identifier: MIT
/// \file What kernel texts compiled as C++ (src/device/prelude_cpp.h) find around them: a group, its local memory and
/// barrier, and which work-item they are.
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

namespace polyad::plain {

/// The defines of a kernel that are numbers.
struct Numbers {
  std::uint64_t order = 0;
  std::uint64_t level = 0;
  std::uint64_t runs = 0;
  std::uint64_t bins = 1;
  std::uint64_t chunk = 1;
  std::uint64_t columns = 1;
  std::uint64_t interleaved = 0;
  std::uint64_t seams = 0;
};

/// An array of a work-item that knows its length.
template <class T>
class Array {
 public:
  explicit Array(std::size_t count) : values_(count) {}
  T& operator[](std::uint64_t k) { return values_.at(static_cast<std::size_t>(k)); }

 private:
  std::vector<T> values_;
};

/// Where the work-items of a group wait for each other. std::barrier of libstdc++ 12 yields before it sleeps: beside a
/// busy program each of thousands of barriers then costs that program's slice of time, 90 s in place of 6.
class Barrier {
 public:
  explicit Barrier(std::uint32_t items) { pthread_barrier_init(&barrier_, nullptr, items); }
  Barrier(const Barrier&) = delete;
  Barrier& operator=(const Barrier&) = delete;
  ~Barrier() { pthread_barrier_destroy(&barrier_); }
  void arrive_and_wait() { pthread_barrier_wait(&barrier_); }

 private:
  pthread_barrier_t barrier_ = {};
};

/// Work-items that share local memory.
struct Group {
  Group(std::array<std::uint32_t, 2> of_items, const Numbers& defines)
      : items(of_items), numbers(defines), barrier(of_items[0] * of_items[1]) {}

  /// Array k of the kernel: one for the group, made by the first that asks. Its first content is rubbish.
  template <class T>
  T* local(std::size_t k, std::uint64_t count) {
    const std::scoped_lock lock(mutex_);
    while (locals_.size() <= k) locals_.emplace_back();
    if (!locals_[k]) {
      locals_[k] = std::make_unique<std::byte[]>(count * sizeof(T));
      std::fill_n(locals_[k].get(), count * sizeof(T), std::byte{0xAB});
    }
    return reinterpret_cast<T*>(locals_[k].get());
  }

  std::array<std::uint32_t, 2> items;
  Numbers numbers;
  Barrier barrier;

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<std::byte[]>> locals_;
};

/// A work-item.
struct Item {
  Group* group = nullptr;
  std::array<std::uint64_t, 2> group_id = {};
  std::array<std::uint64_t, 2> group_count = {};
  std::array<std::uint32_t, 2> id = {};
  std::size_t local_arrays = 0;  ///< that the kernel has asked for
};

inline thread_local Item* pd_item = nullptr;

/// A kernel: slot, head, factors, out, seams.
using Function = void (*)(const std::byte* slot, const std::byte* head, const std::byte* factors, std::byte* out,
                          std::byte* seams);

}  // namespace polyad::plain
