// SPDX-License-Identifier: MIT
/// \file How long a TTV takes whose slices go to a device in collections: copy in, compute, copy out (Yang, Li and Li
/// 2019, section 6.2, after King, Chou and Ni 1990).
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace polyad {

/// Seconds of the three steps of one collection of slices.
struct CollectionTimes {
  double copy_in = 0;
  double compute = 0;
  double copy_out = 0;
};

/// One step after the other: Ts = sum of t1 + t2 + t3.
[[nodiscard]] inline double synchronous_time(std::span<const CollectionTimes> collections) {
  double sum = 0;
  for (const CollectionTimes& c : collections) sum += c.copy_in + c.compute + c.copy_out;
  return sum;
}

/// The steps of different collections side by side, each cycle as long as its longest step. For k collections there
/// are k + 2 cycles; in cycle c collection c is copied in, c-1 computed, c-2 copied out:
///
///   Tp = t1[1] + max(t1[2], t2[1]) + sum_{i=1..k-2} max(t1[i+2], t2[i+1], t3[i]) + max(t2[k], t3[k-1]) + t3[k]
///
/// The paper's formula has the second term as max(t2, t2): a misprint; the sentence before it has it right.
[[nodiscard]] inline double pipelined_time(std::span<const CollectionTimes> collections) {
  double sum = 0;
  const std::size_t k = collections.size();
  for (std::size_t cycle = 0; k > 0 && cycle < k + 2; ++cycle) {
    double longest = 0;
    if (cycle < k) longest = std::max(longest, collections[cycle].copy_in);
    if (cycle >= 1 && cycle - 1 < k) longest = std::max(longest, collections[cycle - 1].compute);
    if (cycle >= 2) longest = std::max(longest, collections[cycle - 2].copy_out);
    sum += longest;
  }
  return sum;
}

}  // namespace polyad
