// SPDX-License-Identifier: MIT
/// \file What reading and writing `.ptn` do to arrays whose element width is known at run time: look at every element
/// of a chunk, convert it, and run over all chunks in parallel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "io/ptn_layout.hpp"
#include "polyad/context.hpp"

namespace polyad::io::ptn {

/// An array of unsigned numbers of 1, 2, 4 or 8 bytes.
struct NumberArray {
  const std::byte* data = nullptr;
  std::uint32_t width = 1;

  /// The array from element k on.
  [[nodiscard]] NumberArray from(std::uint64_t k) const noexcept { return {data + k * width, width}; }
  /// Element k. For rare use, not for loops.
  [[nodiscard]] std::uint64_t operator[](std::uint64_t k) const noexcept;
};

/// First of n numbers that is not below `limit`.
[[nodiscard]] std::optional<std::size_t> first_not_below(NumberArray a, std::size_t n, std::uint64_t limit);

/// Copies n numbers into elements of another width, which must be able to hold them.
void convert_numbers(NumberArray from, std::size_t n, void* to, std::uint32_t to_width);

/// First of n values (f32 or f64 by their width) that is infinite or not a number.
[[nodiscard]] std::optional<std::size_t> first_not_finite(const std::byte* values, std::uint32_t width, std::size_t n);

/// Copies n values of one width into the other; returns the first finite one that the new type cannot hold.
std::optional<std::size_t> convert_values(const std::byte* from, std::uint32_t width, std::size_t n, void* to);

/// First of nnz nonzeros that is not in the order that `modes` (most significant first) claim: it comes before its
/// predecessor, or, when `strictly`, is equal to it.
/// \param modes the index arrays to compare by
[[nodiscard]] std::optional<std::uint64_t> first_out_of_order(std::span<const NumberArray> modes, std::uint64_t nnz,
                                                              bool strictly, int threads);

/// A piece of a section that has one checksum.
struct Chunk {
  std::size_t section = 0;   // which of the sections given
  std::uint64_t number = 0;  // within the section
  std::uint64_t offset = 0;  // within the section, in bytes
  std::uint64_t bytes = 0;
};

/// The chunks of sections one after the other, by number.
class ChunkList {
 public:
  explicit ChunkList(std::span<const Section> sections);
  [[nodiscard]] std::uint64_t size() const noexcept { return firsts_.back(); }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] Chunk operator[](std::uint64_t i) const;

 private:
  std::span<const Section> sections_;
  std::vector<std::uint64_t> firsts_;  // [sections + 1]
  std::uint64_t bytes_ = 0;
};

/// Calls body(chunk, scratch) for every chunk in parallel and reports progress as `phase`. Of several failures the one
/// that comes first in the file is rethrown. `scratch` is the thread's own and keeps its size from call to call.
void for_each_chunk(std::span<const Section> sections, std::string_view phase, const Context& context,
                    const std::function<void(const Chunk&, std::vector<std::byte>&)>& body);

}  // namespace polyad::io::ptn
