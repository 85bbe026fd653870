// SPDX-License-Identifier: MIT
#include "polyad/buffer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include "core/page_pool.hpp"
#include "polyad/error.hpp"
#include "polyad/large_vector.hpp"
#include "polyad/sizes.hpp"

namespace polyad::detail {

namespace {

// Below this a block comes from the heap: a mapping would waste a page and a system call.
constexpr std::size_t map_from = std::size_t{1} << 18U;
// Of a block from the heap: a row of a factor then never lies across two cache lines (calloc aligns to 16 bytes, and
// with that every row of a small factor did).
constexpr std::size_t cache_line = 64;
// From here on a block that is accessed here and there is aligned to huge pages and asks for them. With 8 MB, factors
// of 2 to 4 MB lay on small ones: sweep-two on nell2 took 54 to 60 ms in place of 47 to 50, on enron 79 in place of 53
// (f32, rank 16, in turn).
constexpr std::size_t huge_from = huge_page / 2;

bool wants_huge(std::size_t bytes, Paging paging) { return paging == Paging::huge && bytes >= huge_from; }

// To whole pages. What is left after the last whole huge page gets one too if it fills half of it, so that at most 1 MB
// more than was asked for is in use.
std::size_t rounded(std::size_t bytes, Paging paging) {
  const bool to_huge = wants_huge(bytes, paging) && bytes % huge_page >= huge_page / 2;
  const std::size_t step = to_huge ? huge_page : page_unit;
  return (bytes + step - 1) / step * step;
}

/// Of a pointer that owns what was taken from a budget for a while, not the budget.
struct GivesBack {
  std::size_t bytes;
  void operator()(MemoryBudget* budget) const noexcept { budget->give_back(bytes); }
};

[[noreturn]] void out_of_memory(std::size_t bytes, std::string_view purpose) {
  throw Error(ErrorKind::limit,
              fmt::format("{} needs {}, which this machine does not give", purpose, readable_bytes(bytes)));
}

/// \param cleared from which byte on they have to be 0
void* map(std::size_t bytes, std::string_view purpose, bool huge, std::size_t cleared = 0) {
  const PageKind small = cleared == 0 ? PageKind::plain : PageKind::plain_or_kept;
  const PagePool::Mapping mapping = PagePool::instance().map(bytes, huge ? PageKind::huge : small);
  if (mapping.data == nullptr) out_of_memory(bytes, purpose);
  if (mapping.used_before > cleared)
    std::memset(static_cast<char*>(mapping.data) + cleared, 0, mapping.used_before - cleared);
  return mapping.data;
}

}  // namespace

Pages::Pages(std::shared_ptr<MemoryBudget> budget, std::size_t bytes, std::string_view purpose, Paging paging,
             Content content)
    : budget_(std::move(budget)), paging_(paging) {
  resize(bytes, purpose, content);
}

Pages::Pages(std::shared_ptr<const void> owner, void* data, std::size_t bytes, bool in_file)
    : owner_(std::move(owner)), data_(data), in_file_(in_file), bytes_(bytes), capacity_(bytes) {}

Pages::~Pages() {
  if (owner_ || data_ == nullptr) return;
  release();
  if (budget_) budget_->give_back(bytes_);
}

void Pages::release() noexcept {
  if (capacity_ < map_from) {
    std::free(data_);
  } else {
    PagePool::instance().unmap(data_);
  }
}

void Pages::swap(Pages& other) noexcept {
  std::swap(budget_, other.budget_);
  std::swap(owner_, other.owner_);
  std::swap(data_, other.data_);
  std::swap(in_file_, other.in_file_);
  std::swap(bytes_, other.bytes_);
  std::swap(capacity_, other.capacity_);
  std::swap(paging_, other.paging_);
}

void Pages::resize(std::size_t bytes, std::string_view purpose) { resize(bytes, purpose, Content::zero); }

void Pages::resize(std::size_t bytes, std::string_view purpose, Content added) {
  if (owner_) {
    if (bytes <= bytes_) {
      bytes_ = bytes;
      return;
    }
    Pages copy(nullptr, bytes, purpose, paging_);
    if (bytes_ > 0) std::memcpy(copy.data_, data_, bytes_);
    swap(copy);
    return;
  }
  if (bytes > (std::size_t{1} << 48U)) out_of_memory(bytes, purpose);  // beyond any address space
  if (bytes > bytes_ && budget_) budget_->take(bytes - bytes_, purpose);
  try {
    const std::size_t wanted = bytes < map_from ? bytes : rounded(bytes, paging_);
    if (bytes < map_from && capacity_ < map_from) {  // small stays small
      if (wanted > capacity_) {
        const std::size_t room = (wanted + cache_line - 1) / cache_line * cache_line;
        void* p = std::aligned_alloc(cache_line, room);
        if (p == nullptr) out_of_memory(bytes, purpose);
        if (data_ != nullptr) std::memcpy(p, data_, bytes_);
        std::memset(static_cast<char*>(p) + bytes_, 0, room - bytes_);
        std::free(data_);
        data_ = p;
        capacity_ = wanted;
      } else if (bytes < bytes_) {
        std::memset(static_cast<char*>(data_) + bytes, 0, bytes_ - bytes);
      }
    } else if (capacity_ < map_from || (wants_huge(bytes, paging_) && !wants_huge(bytes_, paging_))) {
      // Small becomes mapped, or becomes large enough for huge pages: a copy of little.
      void* p = map(wanted, purpose, wants_huge(bytes, paging_), added == Content::any ? bytes : 0);
      if (data_ != nullptr) std::memcpy(p, data_, bytes_);
      release();
      data_ = p;
      capacity_ = wanted;
    } else {  // mapped grows or shrinks by moving page tables
      const std::size_t least = wanted < map_from ? map_from : wanted;
      if (least != capacity_) {
        void* p = PagePool::instance().resize(data_, least);
        if (p == nullptr) {  // made of several kept pieces: a copy, and for a moment both count
          if (budget_) budget_->take(bytes_, purpose);
          const std::unique_ptr<MemoryBudget, GivesBack> moment(budget_.get(), GivesBack{bytes_});
          p = map(least, purpose, wants_huge(bytes, paging_));
          std::memcpy(p, data_, bytes_);
          release();
        }
        data_ = p;
        capacity_ = least;
      }
      const std::size_t used = bytes_ < capacity_ ? bytes_ : capacity_;
      if (bytes < used) std::memset(static_cast<char*>(data_) + bytes, 0, used - bytes);
    }
  } catch (...) {
    if (bytes > bytes_ && budget_) budget_->give_back(bytes - bytes_);
    throw;
  }
  if (bytes < bytes_ && budget_) budget_->give_back(bytes_ - bytes);
  bytes_ = bytes;
}

void* allocate_large(std::size_t bytes) {
  const bool huge = bytes >= huge_from;
  const std::size_t step = huge ? huge_page : cache_line;
  if (bytes > (std::size_t{1} << 48U)) throw std::bad_alloc();
  const std::size_t room = (bytes + step - 1) / step * step;
  void* memory =
      huge ? PagePool::instance().map(room, PageKind::any).data : std::aligned_alloc(step, std::max(step, room));
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void free_large(void* memory, std::size_t bytes) noexcept {
  if (bytes >= huge_from) return PagePool::instance().unmap(memory);
  std::free(memory);
}

}  // namespace polyad::detail
