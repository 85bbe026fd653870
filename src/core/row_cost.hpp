// SPDX-License-Identifier: MIT
/// \file What it costs to read or add to a row somewhere in a table, by the size of the table: where it lies decides.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

namespace polyad {

/// Nanoseconds of one thread for a cache line of a row, requested early enough (prefetched), measured with all threads
/// at once; between the sizes by interpolation over the logarithm.
struct RowCost {
  static constexpr int sizes = 6;
  /// Bytes of the tables.
  static constexpr std::array<double, sizes> table = {16e3, 512e3, 2e6, 4e6, 16e6, 256e6};
  /// Two cores of a Zen 4 server: L1, L2, L3, L3, the edge of L3, DRAM.
  std::array<double, sizes> read = {0.7, 1.1, 1.2, 1.4, 3.4, 9.6};
  std::array<double, sizes> add = {1.5, 1.7, 1.8, 2.1, 5.0, 10.0};
  /// Bytes a nanosecond that one thread streams.
  double stream = 15;

  /// A row of `line` cache lines out of a table of `bytes`.
  [[nodiscard]] double reading(double bytes, double lines) const { return lines * at(read, bytes); }
  [[nodiscard]] double adding(double bytes, double lines) const { return lines * at(add, bytes); }
  /// So many bytes one after the other.
  [[nodiscard]] double streaming(double bytes) const { return bytes / stream; }

 private:
  [[nodiscard]] static double at(const std::array<double, sizes>& costs, double bytes) {
    if (bytes <= table[0]) return costs[0];
    for (std::size_t i = 1; i < table.size(); ++i) {
      if (bytes > table[i]) continue;
      const double share = std::log(bytes / table[i - 1]) / std::log(table[i] / table[i - 1]);
      return costs[i - 1] + share * (costs[i] - costs[i - 1]);
    }
    return costs.back();
  }
};

}  // namespace polyad
