// SPDX-License-Identifier: MIT
#include "core/page_pool.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <new>

#include "polyad/page_reuse.hpp"

namespace polyad {

PageReuse::PageReuse(std::uint64_t most) { detail::PagePool::instance().begin_reuse(most); }
PageReuse::~PageReuse() { detail::PagePool::instance().end_reuse(); }

}  // namespace polyad

namespace polyad::detail {

namespace {

/// Smaller pieces go back: they would be many, and save little.
constexpr std::size_t least_kept = std::size_t{1} << 20U;

std::size_t unit_of(bool huge) { return huge ? huge_page : small_page; }

}  // namespace

PagePool& PagePool::instance() {
  static auto* const pool = new PagePool;  // never ends: arrays of other static objects may outlive it
  return *pool;
}

char* PagePool::map_fresh(std::size_t bytes, bool huge) {
  const std::size_t more = huge ? huge_page : 0;
  void* p = mmap(nullptr, bytes + more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  auto* begin = static_cast<char*>(p);
  if (!huge) return begin;
  // Aligned to huge pages: the ends go back.
  const std::size_t off = reinterpret_cast<std::uintptr_t>(begin) % huge_page;
  const std::size_t front = off == 0 ? 0 : huge_page - off;
  if (front > 0) munmap(begin, front);
  munmap(begin + front + bytes, huge_page - front);
  madvise(begin + front, bytes, MADV_HUGEPAGE);
  return begin + front;
}

/// Moves kept pages to the first bytes of a mapping, replacing it there. Returns how many bytes.
std::size_t PagePool::move_kept(char* to, std::size_t bytes, bool huge, std::vector<Piece>& moved) {
  std::size_t done = 0;
  while (true) {
    // The smallest that is enough, else the largest.
    Piece* best = nullptr;
    for (Piece& piece : kept_) {
      if (piece.huge != huge) continue;
      const std::size_t left = bytes - done;
      const auto badness = [&](const Piece& p) { return p.bytes >= left ? p.bytes - left : ~p.bytes; };
      if (best == nullptr || badness(piece) < badness(*best)) best = &piece;
    }
    if (best == nullptr) return done;
    const std::size_t unit = unit_of(huge);
    const std::size_t some = std::min(best->bytes, (bytes - done) / unit * unit);
    if (some == 0) return done;
    moved.reserve(moved.size() + 2);  // before anything happens that must be remembered
    if (mremap(best->begin, some, some, MREMAP_MAYMOVE | MREMAP_FIXED, to + done) == MAP_FAILED) return done;
    moved.push_back({to + done, some, huge});
    done += some;
    kept_bytes_ -= some;
    best->begin += some;
    best->bytes -= some;
    if (best->bytes == 0) {
      *best = kept_.back();
      kept_.pop_back();
    }
  }
}

PagePool::Mapping PagePool::map(std::size_t bytes, PageKind kind) {
  const std::lock_guard lock(mutex_);
  const bool huge = kind != PageKind::plain;
  char* data = map_fresh(bytes, huge);
  if (data == nullptr) {
    let_go(kept_bytes_);
    data = map_fresh(bytes, huge);
    if (data == nullptr) return {};
  }
  Mapping mapping{data, 0};
  std::vector<Piece> pieces;
  // Huge ones first, as these have to stay aligned.
  if (kind != PageKind::plain) mapping.used_before = move_kept(data, bytes, true, pieces);
  if (kind != PageKind::huge)
    mapping.used_before += move_kept(data + mapping.used_before, bytes - mapping.used_before, false, pieces);
  if (mapping.used_before < bytes) pieces.push_back({data + mapping.used_before, bytes - mapping.used_before, huge});
  pieces_.emplace(data, std::move(pieces));
  mapped_ += bytes;
  count_mapped();
  return mapping;
}

bool PagePool::unmap(void* data) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = pieces_.find(data);
  if (found == pieces_.end()) return false;
  for (const Piece& piece : found->second) {
    mapped_ -= piece.bytes;
    if (scopes_ > 0) {
      keep(piece);
    } else {
      munmap(piece.begin, piece.bytes);
    }
  }
  pieces_.erase(found);
  return true;
}

void* PagePool::resize(void* data, std::size_t to) {
  const std::lock_guard lock(mutex_);
  const auto found = pieces_.find(data);
  if (found == pieces_.end() || found->second.size() != 1) return nullptr;  // mremap works on one area
  Piece& piece = found->second[0];
  void* p = mremap(data, piece.bytes, to, MREMAP_MAYMOVE);
  if (p == MAP_FAILED) return nullptr;
  mapped_ = mapped_ - piece.bytes + to;
  piece.begin = static_cast<char*>(p);
  piece.bytes = to;
  auto entry = pieces_.extract(found);
  entry.key() = p;
  pieces_.insert(std::move(entry));
  count_mapped();
  return p;
}

/// What is kept must not make it more than there was, or is allowed.
void PagePool::count_mapped() noexcept {
  most_mapped_ = std::max(most_mapped_, mapped_);
  const std::size_t most = std::max(most_mapped_, allowed_);
  if (mapped_ + kept_bytes_ > most) let_go(mapped_ + kept_bytes_ - most);
}

void PagePool::keep(const Piece& piece) noexcept {
  // Of huge pages whole ones: their alignment may be gone where a mapping was moved as it grew.
  const std::size_t off = reinterpret_cast<std::uintptr_t>(piece.begin) % unit_of(piece.huge);
  const std::size_t whole = off == 0 ? piece.bytes / unit_of(piece.huge) * unit_of(piece.huge) : 0;
  bool is_kept = false;
  if (whole >= least_kept) {
    try {
      kept_.push_back({piece.begin, whole, piece.huge});
      kept_bytes_ += whole;
      is_kept = true;
    } catch (const std::bad_alloc&) {  // then it goes back
    }
  }
  const std::size_t rest = is_kept ? whole : 0;
  if (rest < piece.bytes) munmap(piece.begin + rest, piece.bytes - rest);
}

/// Gives so many bytes back, or all.
void PagePool::let_go(std::size_t at_most) noexcept {
  while (at_most > 0 && !kept_.empty()) {
    Piece& piece = kept_.back();
    const std::size_t unit = unit_of(piece.huge);
    const std::size_t some = std::min(piece.bytes, (at_most + unit - 1) / unit * unit);
    munmap(piece.begin + (piece.bytes - some), some);
    piece.bytes -= some;
    kept_bytes_ -= some;
    at_most -= std::min(at_most, some);
    if (piece.bytes == 0) kept_.pop_back();
  }
}

void PagePool::begin_reuse(std::uint64_t most) noexcept {
  const std::lock_guard lock(mutex_);
  if (scopes_++ == 0) {
    most_mapped_ = mapped_;
    allowed_ = 0;
  }
  allowed_ = std::max<std::uint64_t>(allowed_, most);
}

void PagePool::end_reuse() noexcept {
  const std::lock_guard lock(mutex_);
  if (--scopes_ == 0) let_go(kept_bytes_);
}

std::size_t PagePool::kept() {
  const std::lock_guard lock(mutex_);
  return kept_bytes_;
}

}  // namespace polyad::detail
