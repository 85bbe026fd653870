// SPDX-License-Identifier: MIT
/// \file The few words every other header speaks: index width, precision, limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace polyad {

/// Largest number of modes a tensor may have.
inline constexpr int max_order = 32;

/// Type of the stored values, chosen at run time.
enum class Precision : std::uint8_t { f32, f64 };

/// Width of every stored index, chosen from the dims: 32 bits as long as every dim is at most 2^32-1.
enum class IndexWidth : std::uint8_t { u32, u64 };

/// "f32" or "f64".
[[nodiscard]] constexpr std::string_view name_of(Precision p) { return p == Precision::f32 ? "f32" : "f64"; }

/// Bytes of one value.
[[nodiscard]] constexpr std::size_t bytes_of(Precision p) { return p == Precision::f32 ? 4 : 8; }

/// Bytes of one index.
[[nodiscard]] constexpr std::size_t bytes_of(IndexWidth w) { return w == IndexWidth::u32 ? 4 : 8; }

}  // namespace polyad
