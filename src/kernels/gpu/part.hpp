// SPDX-License-Identifier: MIT
/// \file A piece of a tensor that a device kernel can work on by itself.
///
/// Every kernel of src/device has the parameters
///
///   slot     the arrays of the part, one behind the other, each at a multiple of slot_alignment
///   head     64-bit numbers: the part's own (`numbers`), then where each array begins in the slot, in bytes, then
///   where
///            each factor begins in `factors`, in rows
///   factors  all factors, one behind the other, rows of STRIDE numbers (TTV: the vector)
///   out      what is computed
///   seams    side rows of the deterministic variants; else not read
///
/// so that one runner serves all formats and all ways to run (resident, streamed, shared by devices).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "backends/gpu/device.hpp"

namespace polyad::gpu {

/// Where arrays may begin in a slot: what OpenCL asks of every device at most.
inline constexpr std::uint64_t slot_alignment = 128;

/// A piece of a tensor: views of the format's arrays as they lie on the host, and the numbers that its kernel wants.
struct Part {
  std::vector<std::span<const std::byte>> arrays;
  std::vector<std::uint64_t> numbers;
  std::uint64_t groups = 0;  ///< work-groups in the first direction
  std::uint64_t nnz = 0;
  std::uint64_t chunks = 0;  ///< pairs of side rows that the deterministic variant writes; 0 when it needs none

  /// Bytes of a slot that holds it.
  [[nodiscard]] std::uint64_t bytes() const {
    std::uint64_t sum = 0;
    for (const auto& a : arrays) sum += (a.size() + slot_alignment - 1) / slot_alignment * slot_alignment;
    return sum;
  }
};

/// Parts that are done by the same kernel: HB-CSF has three groups, the others one.
struct PartGroup {
  std::string_view unit;        ///< text in src/device
  std::string_view function;    ///< kernel in it
  std::vector<Define> defines;  ///< besides those of all kernels (types, order, rank, group)
  std::vector<Part> parts;
};

}  // namespace polyad::gpu
