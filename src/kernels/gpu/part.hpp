// SPDX-License-Identifier: MIT
/// \file A piece of a tensor that a device kernel can work on by itself.
///
/// Every kernel of src/device has the parameters
///
///   slot     the arrays of the part, one behind the other, each at a multiple of slot_alignment
///   head     64-bit numbers: the part's own (`numbers`), then where each array begins in the slot, in bytes, then
///            where each factor begins in `factors`, in rows
///   factors  all factors, one behind the other, rows of STRIDE numbers (TTV: the vector)
///   out      what is computed
///   seams    side rows of the deterministic variants; else not read
///
/// so that one runner serves all formats and all ways to run (resident, streamed, shared by devices).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "backends/gpu/device.hpp"
#include "polyad/pipeline.hpp"

namespace polyad::gpu {

/// Where arrays may begin in a slot. What a kernel is given as a View of its own begins at a multiple of
/// Facts::offset_alignment, which may be more.
inline constexpr std::uint64_t slot_alignment = 128;

/// The bytes up to the next place where something may begin.
[[nodiscard]] constexpr std::uint64_t aligned(std::uint64_t bytes, std::uint64_t alignment = slot_alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

/// A piece of a tensor: views of the format's arrays as they lie on the host, and the numbers that its kernel wants.
struct Part {
  std::vector<std::span<const std::byte>> arrays;
  std::vector<std::uint64_t> numbers;
  std::uint64_t groups = 0;  ///< work-groups in the first direction
  std::uint64_t nnz = 0;
  std::uint64_t chunks = 0;  ///< pairs of side rows that the deterministic variant writes; 0 when it needs none
  /// Bit k: the kernel does not read array k. It has its place all the same, where parts that stay serve several modes.
  std::uint64_t unread = 0;
  /// Called after the arrays were copied from where they lie: memory that is only lent can be given back. May be empty.
  std::function<void()> copied = nullptr;

  /// Bytes of a slot that holds it.
  [[nodiscard]] std::uint64_t bytes() const {
    std::uint64_t sum = 0;
    for (const auto& a : arrays) sum += aligned(a.size());
    return sum;
  }
};

/// How the columns of the output are shared out.
enum class Columns : std::uint8_t {
  one,        ///< a lane has one; groups in the second direction take further blocks
  registers,  ///< a lane has up to 4 (PD_COLUMNS), in registers
  loop,       ///< a group goes through all of them
};

/// Parts that are done by the same kernel: HB-CSF has three groups, the others one.
struct PartGroup {
  std::string_view unit;        ///< text in src/device
  std::string_view function;    ///< kernel in it
  std::vector<Define> defines;  ///< besides those of all kernels (types, order, rank, group)
  std::vector<Part> parts;
  Columns columns = Columns::one;
  /// Nonzeros of the work-group of a part that has most.
  std::uint64_t (*heaviest)(const Part& part) = nullptr;
};

/// The head of a part: its numbers, places of arrays, places of factors.
[[nodiscard]] std::vector<std::uint64_t> head_of(const Part& part, std::span<const std::uint64_t> factor_rows);

/// The device that each of some parts goes to, by their nonzeros: a range of parts for each device.
[[nodiscard]] std::vector<std::size_t> share_out(std::span<const std::uint64_t> nnz, std::size_t devices);

/// Error (usage) when a device has no numbers of so many bytes.
void check_numbers(const Facts& facts, std::size_t bytes);

/// How well the work of a kernel is shared out over its groups.
[[nodiscard]] GroupBalance balance_of(const PartGroup& group);

/// What a cutter is asked for.
struct CutRequest {
  int mode = 0;
  std::uint64_t stride = 0;      ///< columns of a row, padding included
  std::uint64_t most_bytes = 0;  ///< of a part
  std::uint64_t devices = 1;     ///< that share the parts: there should be some for each
  bool deterministic = false;
  bool stays = false;  ///< on the device, where other modes find the arrays too if theirs are the same

  /// The most units of one part, so that there are enough parts to share out.
  [[nodiscard]] std::uint64_t most_units(std::uint64_t units) const {
    constexpr std::uint64_t parts_per_device = 4;
    return devices <= 1 ? units : std::max<std::uint64_t>(1, units / (parts_per_device * devices));
  }
};

/// The largest number of `least` .. `most` that fits, if those that do come first; `least` when none does.
template <class Fits>
[[nodiscard]] std::uint64_t largest_that_fits(std::uint64_t least, std::uint64_t most, const Fits& fits) {
  if (most <= least) return least;
  if (fits(most)) return most;
  std::uint64_t good = least;
  for (std::uint64_t over = most; over - good > 1;) {
    const std::uint64_t middle = good + (over - good) / 2;
    (fits(middle) ? good : over) = middle;
  }
  return good;
}

/// Cuts `units` (runs of nonzeros, bins) into parts; make(begin, end) gives the part of a range. A single unit may be
/// larger than asked for: whoever runs the parts sees to it.
template <class MakePart>
[[nodiscard]] std::vector<Part> cut_units(std::uint64_t units, const CutRequest& request, const MakePart& make) {
  std::vector<Part> parts;
  for (std::uint64_t begin = 0; begin < units;) {
    const std::uint64_t most = std::min(units, begin + request.most_units(units));
    const std::uint64_t end = largest_that_fits(
        begin + 1, most, [&](std::uint64_t to) { return make(begin, to).bytes() <= request.most_bytes; });
    parts.push_back(make(begin, end));
    begin = end;
  }
  return parts;
}

}  // namespace polyad::gpu
