// SPDX-License-Identifier: MIT
/// \file Big numbers as people read and write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace polyad {

/// "512 B", "4.20 MB", "1.05 GB": decimal units, three digits.
[[nodiscard]] std::string readable_bytes(std::uint64_t bytes);

/// "1.25 s", "12.3 ms", "850 us".
[[nodiscard]] std::string readable_seconds(double seconds);

/// "12,345,678".
[[nodiscard]] std::string readable_count(std::uint64_t n);

/// "20000", "1M", "2.5G", "4GB", "1e6" (k M G T are powers of 1000), "4Gi", "4GiB" (powers of 1024). Unset when it is
/// no such number or does not fit 64 bits.
[[nodiscard]] std::optional<std::uint64_t> parse_size(std::string_view text);

/// "100x200x300" (also with commas, and sizes as above); unset when it is no such list of positive numbers.
[[nodiscard]] std::optional<std::vector<std::uint64_t>> parse_dims(std::string_view text);

}  // namespace polyad
