// SPDX-License-Identifier: MIT
/// \file The mappings of large arrays, and those that nobody uses at the moment (polyad/page_reuse.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace polyad::detail {

inline constexpr std::size_t small_page = 4096;
inline constexpr std::size_t huge_page = std::size_t{1} << 21U;

/// Which pages an array takes.
enum class PageKind : std::uint8_t {
  huge,   ///< huge ones only
  plain,  ///< small ones only
  any,    ///< whatever is kept; fresh ones are huge
};

/// All mappings of the process. A mapping may be made of several kept ones: pages are moved (mremap), not copied.
class PagePool {
 public:
  [[nodiscard]] static PagePool& instance();

  struct Mapping {
    void* data = nullptr;       ///< null: the system gives no more
    std::size_t used_before = 0;  ///< the first bytes, which are not 0
  };
  /// Whole pages; huge ones are aligned to their size.
  [[nodiscard]] Mapping map(std::size_t bytes, PageKind kind);
  /// False, and nothing happens, if it is no mapping.
  bool unmap(void* data) noexcept;
  /// Changes the size of a mapping to whole pages, keeping the content; the bytes behind it are 0. Null if that cannot
  /// be: it then stays as it was.
  [[nodiscard]] void* resize(void* data, std::size_t to);

  void begin_reuse(std::uint64_t most) noexcept;
  void end_reuse() noexcept;
  /// Bytes that are kept.
  [[nodiscard]] std::size_t kept();

 private:
  /// Pages side by side that the system knows as one area.
  struct Piece {
    char* begin = nullptr;
    std::size_t bytes = 0;
    bool huge = false;
  };

  [[nodiscard]] static char* map_fresh(std::size_t bytes, bool huge);
  [[nodiscard]] std::size_t move_kept(char* to, std::size_t bytes, bool huge, std::vector<Piece>& moved);
  void keep(const Piece& piece) noexcept;
  void let_go(std::size_t at_most) noexcept;
  void count_mapped() noexcept;

  std::mutex mutex_;
  int scopes_ = 0;
  std::size_t mapped_ = 0;  // in use
  std::size_t most_mapped_ = 0;
  std::size_t allowed_ = 0;  // in use or kept, if the most that was in use is less
  std::size_t kept_bytes_ = 0;
  std::vector<Piece> kept_;
  std::unordered_map<void*, std::vector<Piece>> pieces_;  // of every mapping
};

}  // namespace polyad::detail
