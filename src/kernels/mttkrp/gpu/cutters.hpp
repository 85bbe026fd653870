// SPDX-License-Identifier: MIT
/// \file How formats are cut into parts for the MTTKRP texts of src/device. Parts are views of the format's own arrays:
/// nothing is converted.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/format.hpp"
#include "kernels/gpu/part.hpp"
#include "kernels/mttkrp/request.hpp"

namespace polyad::gpu {

/// Nonzeros of a work-group where runs of them are equal: two chunks of F-COO, two bins of B-CSF.
inline constexpr std::uint64_t group_nonzeros = 1024;

/// Elements [begin, end) of an array as bytes.
template <class T>
[[nodiscard]] std::span<const std::byte> bytes_of_range(const T* array, std::uint64_t begin, std::uint64_t end) {
  return std::as_bytes(std::span<const T>(array + begin, static_cast<std::size_t>(end - begin)));
}
template <class... T>
[[nodiscard]] std::span<const std::byte> bytes_of_range(const std::variant<Buffer<T>...>& array, std::uint64_t begin,
                                                        std::uint64_t end) {
  return std::visit([&](const auto& buffer) { return bytes_of_range(buffer.data(), begin, end); }, array);
}

/// The type of the elements in the dialect of src/device.
[[nodiscard]] inline std::string index_type(const IndexBuffer& array) {
  return std::holds_alternative<Buffer<std::uint64_t>>(array) ? "u64" : "u32";
}
[[nodiscard]] inline std::string index_type(IndexWidth width) { return width == IndexWidth::u64 ? "u64" : "u32"; }

/// The modes of a tensor with the output mode first.
[[nodiscard]] inline std::vector<int> output_first(int order, int mode) {
  std::vector<int> modes = {mode};
  for (int m = 0; m < order; ++m)
    if (m != mode) modes.push_back(m);
  return modes;
}
inline void append_modes(std::vector<std::uint64_t>& numbers, std::span<const int> modes) {
  for (const int m : modes) numbers.push_back(static_cast<std::uint64_t>(m));
}

/// Runs of group_nonzeros that n nonzeros are.
[[nodiscard]] inline std::uint64_t runs_of(std::uint64_t n) { return (n + group_nonzeros - 1) / group_nonzeros; }
/// The heaviest group where runs are equal.
[[nodiscard]] inline std::uint64_t heaviest_run(const Part& part) { return std::min(part.nnz, group_nonzeros); }

}  // namespace polyad::gpu
