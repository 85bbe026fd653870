// SPDX-License-Identifier: MIT
/// \file The bytes of a `.ptn` file; docs/ptn.md is the specification. Here: the head (everything before the arrays),
/// both ways. A Head that parse_head() returns has passed every check that needs no look at the arrays.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "polyad/coo_tensor.hpp"
#include "polyad/types.hpp"

namespace polyad::io::ptn {

static_assert(std::endian::native == std::endian::little,
              "a .ptn file is little-endian and its arrays are used where they lie; a big-endian machine needs a "
              "reader that swaps bytes");

inline constexpr std::string_view magic{"\x89PTN\r\n\x1a\n", 8};
inline constexpr std::uint16_t major_version = 1;
inline constexpr std::uint16_t minor_version = 0;
inline constexpr std::uint64_t alignment = 4096;                       // of every section
inline constexpr std::uint64_t chunk_bytes = std::uint64_t{1} << 20U;  // that one checksum covers
inline constexpr std::uint32_t flag_duplicates_merged = 1;             // FixedHead::flags
inline constexpr std::uint8_t flag_needed = 1;                         // SectionRecord::flags

/// The first bytes of the file as they lie there.
struct FixedHead {
  char magic[8];
  std::uint16_t major_version;
  std::uint16_t minor_version;
  std::uint32_t order;
  std::uint64_t head_bytes;
  std::uint64_t file_bytes;
  std::uint64_t nnz;
  std::uint32_t sections;
  std::uint32_t flags;
  std::uint32_t sorted_modes;
  std::uint32_t reserved1;
  std::uint64_t reserved2;
  std::uint8_t sorted_by[max_order];
};
static_assert(sizeof(FixedHead) == 96);

/// A row of the section table as it lies in the file.
struct SectionRecord {
  std::uint32_t kind;
  std::uint16_t mode;
  std::uint8_t width;
  std::uint8_t flags;
  std::uint64_t offset;
  std::uint64_t bytes;
  std::uint64_t reserved;
};
static_assert(sizeof(SectionRecord) == 32);

/// What a section holds. Readers skip kinds they do not know.
enum class Kind : std::uint32_t { indices = 1, values = 2, mode_name = 3, label_ends = 4, label_text = 5 };

/// A section: an array of `bytes / width` elements at `offset`.
struct Section {
  Kind kind = Kind::indices;
  int mode = 0;  // 0-based
  std::uint32_t width = 1;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t first_checksum = 0;  // in Head::checksums, one per chunk

  [[nodiscard]] std::uint64_t chunks() const noexcept { return (bytes + chunk_bytes - 1) / chunk_bytes; }
  /// "the indices of mode 2", with modes from 1.
  [[nodiscard]] std::string name() const;
};

/// Everything before the arrays.
struct Head {
  std::uint16_t minor = minor_version;
  std::vector<std::uint64_t> dims;
  std::uint64_t nnz = 0;
  std::vector<int> sorted_by;
  bool duplicates_merged = false;
  std::vector<Section> sections;         // in the order of their offsets
  std::vector<std::uint64_t> checksums;  // XXH3-64 of each chunk of each section
  std::uint64_t head_bytes = 0;
  std::uint64_t file_bytes = 0;

  [[nodiscard]] int order() const noexcept { return static_cast<int>(dims.size()); }
  /// The section of that kind and mode, or null.
  [[nodiscard]] const Section* find(Kind kind, int mode = 0) const noexcept;
  /// Type of the values.
  [[nodiscard]] Precision precision() const noexcept;
};

/// The next multiple of the alignment.
[[nodiscard]] constexpr std::uint64_t aligned(std::uint64_t offset) {
  return (offset + alignment - 1) / alignment * alignment;
}

/// XXH3-64 with seed 0.
[[nodiscard]] std::uint64_t checksum(const void* data, std::size_t bytes);

/// Looks at the beginning of a file: is it a .ptn of a version that can be read, and how long should it be? Throws
/// Error. \param bytes as much of the file as there is, at least sizeof(FixedHead) unless the file is shorter
[[nodiscard]] FixedHead check_beginning(std::span<const std::byte> bytes, std::string_view name);

/// Reads and checks the head of a whole file in memory. Throws Error.
[[nodiscard]] Head parse_head(std::span<const std::byte> file, std::string_view name);

/// Gives every section its offset and its place in the checksums (which become zeros) and sets the sizes of head and
/// file.
void place_sections(Head& head);

/// The bytes of the head, its own checksum at the end.
[[nodiscard]] std::string head_text(const Head& head);

}  // namespace polyad::io::ptn
