// SPDX-License-Identifier: MIT
/// \file What it costs to read or add to a row somewhere in a table, by the size of the table: where it lies decides.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "polyad/context.hpp"

namespace polyad {

/// Nanoseconds of one thread for a cache line of a row, requested early enough (prefetched), measured with all threads
/// at once; between the sizes by interpolation over the logarithm.
struct RowCost {
  static constexpr int sizes = 8;
  /// Bytes of the tables.
  static constexpr std::array<double, sizes> table = {16e3, 512e3, 2e6, 4e6, 6e6, 8e6, 16e6, 128e6};
  /// Two cores of a Zen 4 server: L1, L2, L3, L3, the edge of L3, DRAM; those of 6 and 8 MB by interpolation.
  std::array<double, sizes> read = {0.7, 1.1, 1.2, 1.4, 1.985, 2.4, 3.4, 9.6};
  /// Of every further line of a row: it lies beside the first. As 0.74 of that from the second-level cache, until it
  /// was measured (nell2 in tiles of 1.2 MB: rows of two and four lines take 1.7 and 3.1 of the time of one, Emerald
  /// Rapids).
  std::array<double, sizes> next = {0.52, 0.81, 1.2, 1.4, 1.985, 2.4, 3.4, 9.6};
  std::array<double, sizes> add = {1.5, 1.7, 1.8, 2.1, 2.948, 3.55, 5.0, 10.0};
  /// The same for one of two rows that are multiplied, neither of them requested: tables of the two together. As
  /// reading_among, until it was measured there.
  std::array<double, sizes> pair = {0.53, 0.83, 0.9, 1.05, 1.6, 2.05, 3.05, 9.2};
  /// What `pair` becomes beyond the second level where nonzeros stream through the cache that the rows come from.
  /// Medians of copies and tiles over estimates without it: 1.27 to 1.88 on a Zen 3, 0.95 to 1.1 on a Zen 5.
  double among_streams = 1.4;
  /// Bytes a nanosecond that one thread streams.
  double stream = 15;

  /// Measured on this machine with the context's threads, in about half a second (kernels/row_cost.cpp).
  [[nodiscard]] static RowCost measured(const Context& context);
  /// Those measured before on this machine, from the context's cache; measured now and remembered when there are none
  /// and `may_measure`; else (and where memory is short) those of the reference machine.
  [[nodiscard]] static RowCost of_machine(const Context& context, bool may_measure);

  /// A row of `lines` cache lines out of a table of `bytes`.
  [[nodiscard]] double reading(double bytes, double lines) const { return of_row(bytes, lines) * at(read, bytes); }
  /// All lines alike: what is added to has to be written back as well. With further ones as cheap as those that are
  /// read, csf-one was estimated at 0.4 of its time on rand in f64 at rank 32, and taken (Zen 5).
  [[nodiscard]] double adding(double bytes, double lines) const { return lines * at(add, bytes); }
  /// The same among other work; every `reuse`-th time from where the table lies, else from the first cache. What comes
  /// from the caches overlaps with what else there is to do; what comes from memory does not.
  [[nodiscard]] double reading_among(double bytes, double lines, double reuse = 1) const {
    return overlapped(reading(bytes, lines), reading(0, lines), lines, reuse);
  }
  /// The same where rows are all there is to do, and are requested once or twice (formats/copies; 0: by a loop that has
  /// no more instructions than the one that `read` was measured with): 0.18 ns a line each time, unless the memory is
  /// waited for meanwhile. On a Zen 5 rand in f64 took 1.7 ns a row of 1.2 with two requests, deli 4.2 of 4.4.
  [[nodiscard]] double reading_alone(double bytes, double lines, double reuse, int requests) const {
    const double near = reading(0, lines);
    const double mean = near + (reading(bytes, lines) - near) / reuse;
    const double waiting = std::max(0.0, mean - cached * lines);
    return mean + std::max(0.0, instructions(0.18 * requests * lines) - waiting);
  }
  [[nodiscard]] double adding_among(double bytes, double lines, double reuse = 1) const {
    return 0.7 * overlapped(adding(bytes, lines), adding(0, lines), lines, reuse);
  }
  /// A row among those that a nonzero multiplies, none of them requested ahead (formats/copies). A further line costs
  /// half of the first at least: its instructions, where the cache gives it for nothing (uber in f64 takes 1.5 of the
  /// time in f32).
  [[nodiscard]] double multiplying(double bytes, double lines, double reuse = 1) const {
    return of_row(bytes, lines, 0.5) * (pair[0] + (at(pair, bytes) - pair[0]) / reuse);
  }
  /// Nanoseconds of instructions on a processor where a requested row of the first cache takes 0.7, as on those where
  /// the constants of estimates were measured. A Zen 5 takes 0.5: sweep was estimated at 1.4 to 1.6 of its time there.
  [[nodiscard]] double instructions(double ns) const { return ns * std::clamp(read[0] / 0.7, 0.5, 1.5); }
  /// So many bytes one after the other.
  [[nodiscard]] double streaming(double bytes) const { return bytes / stream; }

 private:
  /// Nanoseconds of a line from the caches at most: what takes longer comes from memory.
  static constexpr double cached = 1.4;

  /// What a row of so many lines costs of what one of a single line does.
  [[nodiscard]] double of_row(double bytes, double lines, double least_of_next = 0.2) const {
    return 1 + (lines - 1) * std::clamp(at(next, bytes) / at(read, bytes), least_of_next, 1.0);
  }
  [[nodiscard]] static double overlapped(double there, double near, double lines, double reuse) {
    const double mean = near + (there - near) / reuse;
    return 0.75 * std::min(mean, cached * lines) + std::max(0.0, mean - cached * lines);
  }
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
