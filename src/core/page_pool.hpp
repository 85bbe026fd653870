// SPDX-License-Identifier: MIT
/// \file The mappings of large arrays, and those that nobody uses at the moment (polyad/page_reuse.hpp).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace polyad::detail {

/// Whole pages on every kernel: some have pages of 16 or 64 kB.
inline constexpr std::size_t page_unit = std::size_t{1} << 16U;
inline constexpr std::size_t huge_page = std::size_t{1} << 21U;

/// Which pages an array takes.
enum class PageKind : std::uint8_t {
  huge,           ///< huge ones only
  plain,          ///< small ones only
  plain_or_kept,  ///< small ones and, for what is missing, huge ones that are kept: for arrays that do not grow
  any,            ///< whatever is kept; fresh ones are huge
};

/// All mappings of the process. A mapping may be made of several kept pieces: pages are moved (mremap), not copied.
class PagePool {
 public:
  [[nodiscard]] static PagePool& instance();

  struct Mapping {
    void* data = nullptr;         ///< null: the system gives no more
    std::size_t used_before = 0;  ///< so many of the first bytes may be other than 0
  };
  /// \param bytes a multiple of page_unit. Huge pages begin at multiples of their size.
  [[nodiscard]] Mapping map(std::size_t bytes, PageKind kind);
  void unmap(void* data) noexcept;
  /// Changes the size of a mapping to a multiple of page_unit, keeping the content; bytes behind it are 0. Null if a
  /// mapping of several pieces should grow, or the system gives no more: it then stays as it was.
  [[nodiscard]] void* resize(void* data, std::size_t to);

  void begin_reuse(std::uint64_t also_up_to) noexcept;
  void end_reuse() noexcept;
  /// Keeps no more than so many bytes.
  void keep_at_most(std::size_t bytes) noexcept;
  /// Bytes that are kept.
  [[nodiscard]] std::size_t kept() const noexcept { return kept_bytes_.load(std::memory_order_relaxed); }

 private:
  /// Pages side by side that the system knows as one area.
  struct Piece {
    char* begin = nullptr;
    std::size_t bytes = 0;
    bool huge = false;
  };
  using Pieces = std::vector<Piece>;

  /// What becomes of fresh pages.
  enum class Fresh : std::uint8_t { small, small_aligned, huge };
  [[nodiscard]] static char* map_fresh(std::size_t bytes, Fresh fresh) noexcept;
  [[nodiscard]] std::size_t wanted_huge(std::size_t bytes, PageKind kind) const noexcept;
  [[nodiscard]] Piece* best_kept(std::size_t bytes, bool huge) noexcept;
  [[nodiscard]] bool move_kept(char* to, std::size_t bytes, bool huge, Pieces& pieces) noexcept;
  void give_back(const Piece& piece) noexcept;
  void let_go(std::size_t bytes) noexcept;
  void count_mapped() noexcept;

  std::mutex mutex_;
  int scopes_ = 0;
  std::size_t mapped_ = 0;  // in use
  std::size_t most_mapped_ = 0;
  std::size_t also_up_to_ = 0;
  std::atomic<std::size_t> kept_bytes_ = 0;
  Pieces kept_;
  std::unordered_map<void*, Pieces> mappings_;
};

}  // namespace polyad::detail
