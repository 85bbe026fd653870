// SPDX-License-Identifier: MIT
#include "core/page_pool.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <new>

#include "polyad/page_reuse.hpp"

namespace polyad {

PageReuse::PageReuse(std::uint64_t also_up_to) { detail::PagePool::instance().begin_reuse(also_up_to); }
PageReuse::~PageReuse() { detail::PagePool::instance().end_reuse(); }

}  // namespace polyad

namespace polyad::detail {

namespace {

/// Smaller pieces go back, and those beyond so many: they would save little.
constexpr std::size_t least_kept = std::size_t{1} << 20U;
constexpr std::size_t most_pieces = 256;

std::size_t unit_of(bool huge) { return huge ? huge_page : page_unit; }

std::size_t sum_of(const auto& pieces) {
  std::size_t sum = 0;
  for (const auto& piece : pieces) sum += piece.bytes;
  return sum;
}

}  // namespace

PagePool& PagePool::instance() {
  static auto* const pool = new PagePool;  // never ends: arrays of other static objects may outlive it
  return *pool;
}

/// \param fresh aligned ones and huge ones begin at multiples of a huge page
char* PagePool::map_fresh(std::size_t bytes, Fresh fresh) noexcept {
  const bool aligned = fresh != Fresh::small;
  const std::size_t more = aligned ? huge_page : 0;
  void* p = mmap(nullptr, bytes + more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  auto* begin = static_cast<char*>(p);
  if (!aligned) return begin;
  // The ends go back.
  const std::size_t off = reinterpret_cast<std::uintptr_t>(begin) % huge_page;
  const std::size_t front = off == 0 ? 0 : huge_page - off;
  if (front > 0) munmap(begin, front);
  munmap(begin + front + bytes, huge_page - front);
  if (fresh == Fresh::huge) madvise(begin + front, bytes, MADV_HUGEPAGE);
  return begin + front;
}

/// How many bytes of a mapping may be huge pages that are kept.
std::size_t PagePool::wanted_huge(std::size_t bytes, PageKind kind) const noexcept {
  if (kind == PageKind::plain) return 0;
  if (kind != PageKind::plain_or_kept) return bytes;
  std::size_t small = 0;
  for (const Piece& piece : kept_)
    if (!piece.huge) small += piece.bytes;
  return small >= bytes ? 0 : std::min(bytes, (bytes - small + huge_page - 1) / huge_page * huge_page);
}

/// The smallest kept piece that is enough for whole units of `bytes`, else the largest; null if there is none.
PagePool::Piece* PagePool::best_kept(std::size_t bytes, bool huge) noexcept {
  const std::size_t wanted = bytes / unit_of(huge) * unit_of(huge);
  if (wanted == 0) return nullptr;
  const auto badness = [&](const Piece& p) { return p.bytes >= wanted ? p.bytes - wanted : ~p.bytes; };
  Piece* best = nullptr;
  for (Piece& piece : kept_)
    if (piece.huge == huge && (best == nullptr || badness(piece) < badness(*best))) best = &piece;
  return best;
}

/// Moves kept pages to the bytes of a mapping behind its pieces, replacing it there. False if the system does not do
/// it: it may have unmapped the bytes behind the pieces before it gave up.
bool PagePool::move_kept(char* to, std::size_t bytes, bool huge, Pieces& pieces) noexcept {
  std::size_t done = sum_of(pieces);
  while (Piece* best = best_kept(bytes - done, huge)) {
    const std::size_t some = std::min(best->bytes, (bytes - done) / unit_of(huge) * unit_of(huge));
    if (mremap(best->begin, some, some, MREMAP_MAYMOVE | MREMAP_FIXED, to + done) == MAP_FAILED) return false;
    pieces.push_back({to + done, some, huge});
    done += some;
    kept_bytes_ -= some;
    best->begin += some;
    best->bytes -= some;
    if (best->bytes >= least_kept) continue;
    if (best->bytes > 0) munmap(best->begin, best->bytes);
    kept_bytes_ -= best->bytes;
    *best = kept_.back();
    kept_.pop_back();
  }
  return true;
}

PagePool::Mapping PagePool::map(std::size_t bytes, PageKind kind) {
  const std::lock_guard lock(mutex_);
  const bool huge = kind == PageKind::huge || kind == PageKind::any;
  const std::size_t of_huge = wanted_huge(bytes, kind);
  const Fresh fresh = huge ? Fresh::huge : of_huge > 0 ? Fresh::small_aligned : Fresh::small;
  char* data = map_fresh(bytes, fresh);
  if (data == nullptr) {
    let_go(kept_bytes_);
    data = map_fresh(bytes, fresh);
    if (data == nullptr) return {};
  }
  Pieces* pieces = nullptr;
  try {  // Room for all that is remembered, before anything is moved.
    pieces = &mappings_[data];
    pieces->reserve(kept_.size() + 1);
    kept_.reserve(2 * kept_.size() + 1);
  } catch (const std::bad_alloc&) {
    mappings_.erase(data);
    munmap(data, bytes);
    return {};
  }
  // Huge ones first, as these have to stay aligned.
  const bool moved =
      move_kept(data, of_huge, true, *pieces) && (kind == PageKind::huge || move_kept(data, bytes, false, *pieces));
  const std::size_t used_before = sum_of(*pieces);
  if (!moved) {
    // Short of memory. The moved ones go back; the rest is left alone, as parts of it may be somebody else's by now.
    for (const Piece& piece : *pieces) munmap(piece.begin, piece.bytes);
    mappings_.erase(data);
    let_go(kept_bytes_);
    data = map_fresh(bytes, fresh);
    if (data == nullptr) return {};
    try {
      mappings_[data].push_back({data, bytes, huge});
    } catch (const std::bad_alloc&) {
      mappings_.erase(data);
      munmap(data, bytes);
      return {};
    }
  } else if (used_before < bytes) {
    pieces->push_back({data + used_before, bytes - used_before, huge});
  }
  mapped_ += bytes;
  count_mapped();
  return {data, moved ? used_before : 0};
}

void PagePool::unmap(void* data) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = mappings_.find(data);
  if (found == mappings_.end()) return;
  for (const Piece& piece : found->second) give_back(piece);
  mappings_.erase(found);
}

void* PagePool::resize(void* data, std::size_t to) {
  const std::lock_guard lock(mutex_);
  const auto found = mappings_.find(data);
  if (found == mappings_.end()) return nullptr;
  Pieces& pieces = found->second;
  if (std::size_t bytes = sum_of(pieces); to <= bytes) {
    while (bytes > to) {
      Piece& last = pieces.back();
      const std::size_t some = std::min(last.bytes, bytes - to);
      last.bytes -= some;
      bytes -= some;
      give_back({last.begin + last.bytes, some, last.huge});
      if (last.bytes == 0) pieces.pop_back();
    }
    return data;
  }
  if (pieces.size() != 1) return nullptr;  // mremap works on one area
  void* p = mremap(data, pieces[0].bytes, to, MREMAP_MAYMOVE);
  if (p == MAP_FAILED) return nullptr;
  mapped_ += to - pieces[0].bytes;
  pieces[0].begin = static_cast<char*>(p);
  pieces[0].bytes = to;
  auto entry = mappings_.extract(found);
  entry.key() = p;
  mappings_.insert(std::move(entry));
  count_mapped();
  return p;
}

/// A piece of a mapping that is no longer in use.
void PagePool::give_back(const Piece& piece) noexcept {
  mapped_ -= piece.bytes;
  // Of huge pages whole ones. A mapping that grew may have been moved to where it is not aligned.
  const std::size_t unit = unit_of(piece.huge);
  const bool aligned = !piece.huge || reinterpret_cast<std::uintptr_t>(piece.begin) % unit == 0;
  std::size_t whole = scopes_ > 0 && aligned && kept_.size() < most_pieces ? piece.bytes / unit * unit : 0;
  if (whole < least_kept) whole = 0;
  if (whole > 0) {
    try {
      kept_.push_back({piece.begin, whole, piece.huge});
      kept_bytes_ += whole;
    } catch (const std::bad_alloc&) {
      whole = 0;
    }
  }
  if (whole < piece.bytes) munmap(piece.begin + whole, piece.bytes - whole);
}

/// Gives so many kept bytes to the system, or all.
void PagePool::let_go(std::size_t bytes) noexcept {
  while (bytes > 0 && !kept_.empty()) {
    Piece& piece = kept_.back();
    const std::size_t unit = unit_of(piece.huge);
    std::size_t some = std::min(piece.bytes, (bytes + unit - 1) / unit * unit);
    if (piece.bytes - some < least_kept) some = piece.bytes;
    munmap(piece.begin + (piece.bytes - some), some);
    piece.bytes -= some;
    kept_bytes_ -= some;
    bytes -= std::min(bytes, some);
    if (piece.bytes == 0) kept_.pop_back();
  }
}

/// What is kept must not make it more than there was, or is allowed.
void PagePool::count_mapped() noexcept {
  most_mapped_ = std::max(most_mapped_, mapped_);
  const std::size_t most = std::max(most_mapped_, also_up_to_);
  if (mapped_ + kept_bytes_ > most) let_go(mapped_ + kept_bytes_ - most);
}

void PagePool::keep_at_most(std::size_t bytes) noexcept {
  if (kept() <= bytes) return;  // nearly always
  const std::lock_guard lock(mutex_);
  if (kept_bytes_ > bytes) let_go(kept_bytes_ - bytes);
}

void PagePool::begin_reuse(std::uint64_t also_up_to) noexcept {
  const std::lock_guard lock(mutex_);
  if (scopes_++ == 0) {
    most_mapped_ = mapped_;
    also_up_to_ = 0;
  }
  also_up_to_ = std::max<std::size_t>(also_up_to_, also_up_to);
}

void PagePool::end_reuse() noexcept {
  const std::lock_guard lock(mutex_);
  if (--scopes_ == 0) let_go(kept_bytes_);
}

}  // namespace polyad::detail
