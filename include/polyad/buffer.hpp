// SPDX-License-Identifier: MIT
/// \file Big arrays: page-aligned, on huge pages when large, growing without copying, counted in a MemoryBudget, or a
/// view of a mapped file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "polyad/context.hpp"

namespace polyad {

/// Which pages a large array lies on.
enum class Paging : std::uint8_t {
  huge,   ///< for what is accessed here and there: far fewer TLB misses (sorting 20 M nonzeros: 1.4x faster)
  plain,  ///< for what is filled once and streamed: a virtual machine gives fresh huge pages slowly (loading: up to 3x
          ///< slower)
};

/// What an array holds at first.
enum class Content : std::uint8_t {
  zero,  ///< nothing but 0
  any,   ///< anything, as all of it will be written: pages that were in use before (PageReuse) need not be cleared
};

namespace detail {

/// Untyped owner of pages; see Buffer.
class Pages {
 public:
  Pages() = default;
  /// Takes `bytes` from `budget` (may be null) and maps them. \param content of these bytes; what comes by resize is 0
  Pages(std::shared_ptr<MemoryBudget> budget, std::size_t bytes, std::string_view purpose, Paging paging,
        Content content = Content::zero);
  /// Views memory that `owner` keeps alive; never counted.
  Pages(std::shared_ptr<const void> owner, void* data, std::size_t bytes, bool in_file = false);
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  Pages(Pages&& other) noexcept { swap(other); }
  Pages& operator=(Pages&& other) noexcept {
    Pages gone(std::move(other));
    swap(gone);
    return *this;
  }
  ~Pages();

  void swap(Pages& other) noexcept;
  /// Changes the size, keeping the content; mapped pages move without being copied, unless they were several arrays'
  /// before (PageReuse).
  void resize(std::size_t bytes, std::string_view purpose);
  [[nodiscard]] void* data() const noexcept { return data_; }
  [[nodiscard]] bool is_view() const noexcept { return owner_ != nullptr; }
  [[nodiscard]] bool is_in_file() const noexcept { return in_file_; }

 private:
  void resize(std::size_t bytes, std::string_view purpose, Content added);
  void release() noexcept;  // the memory, not its count

  std::shared_ptr<MemoryBudget> budget_;
  std::shared_ptr<const void> owner_;
  void* data_ = nullptr;
  bool in_file_ = false;
  std::size_t bytes_ = 0;     // counted in the budget
  std::size_t capacity_ = 0;  // mapped
  Paging paging_ = Paging::huge;
};

}  // namespace detail

/// An array of trivial elements. Move-only: a copy of gigabytes should be visible (`clone`).
template <class T>
class Buffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  using value_type = T;

  Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  Buffer(Buffer&& other) noexcept : pages_(std::move(other.pages_)), size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    pages_ = std::move(other.pages_);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }
  ~Buffer() = default;
  /// `count` elements, counted in the context's budget under the name `purpose`.
  Buffer(const Context& context, std::size_t count, std::string_view purpose, Paging paging = Paging::huge,
         Content content = Content::zero)
      : pages_(context.memory, bytes_for(count), purpose, paging, content), size_(count) {}

  /// A view of `count` elements at `data` that `owner` keeps alive (a mapped file, a NumPy array).
  /// \param in_file the memory is a mapped file: pages that nobody wrote to come back from it when they are let go
  [[nodiscard]] static Buffer view(std::shared_ptr<const void> owner, T* data, std::size_t count,
                                   bool in_file = false) {
    Buffer b;
    b.pages_ = detail::Pages(std::move(owner), data, count * sizeof(T), in_file);
    b.size_ = count;
    return b;
  }

  /// The elements; null when there are none.
  [[nodiscard]] T* data() noexcept { return static_cast<T*>(pages_.data()); }
  [[nodiscard]] const T* data() const noexcept { return static_cast<const T*>(pages_.data()); }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  /// Bytes of the elements.
  [[nodiscard]] std::size_t bytes() const noexcept { return size_ * sizeof(T); }
  /// The elements belong to someone else.
  [[nodiscard]] bool is_view() const noexcept { return pages_.is_view(); }
  /// They are a part of a mapped file.
  [[nodiscard]] bool is_in_file() const noexcept { return pages_.is_in_file(); }
  [[nodiscard]] T& operator[](std::size_t i) noexcept { return data()[i]; }
  [[nodiscard]] const T& operator[](std::size_t i) const noexcept { return data()[i]; }
  [[nodiscard]] T* begin() noexcept { return data(); }
  [[nodiscard]] T* end() noexcept { return data() + size_; }
  [[nodiscard]] const T* begin() const noexcept { return data(); }
  [[nodiscard]] const T* end() const noexcept { return data() + size_; }
  [[nodiscard]] std::span<T> span() noexcept { return {data(), size_}; }
  [[nodiscard]] std::span<const T> span() const noexcept { return {data(), size_}; }

  /// Grows or shrinks, keeping the content; new elements are zero.
  void resize(std::size_t count, std::string_view purpose) {
    pages_.resize(bytes_for(count), purpose);
    size_ = count;
  }

 private:
  /// The bytes of `count` elements; more than any memory when that does not fit the type.
  [[nodiscard]] static constexpr std::size_t bytes_for(std::size_t count) {
    return count > std::numeric_limits<std::size_t>::max() / sizeof(T) ? std::numeric_limits<std::size_t>::max()
                                                                       : count * sizeof(T);
  }

  detail::Pages pages_;
  std::size_t size_ = 0;
};

}  // namespace polyad
