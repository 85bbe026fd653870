// SPDX-License-Identifier: MIT
/// \file How long an operation takes whose slices go to a device in collections: copy in, compute, copy out (Yang, Li
/// and Li 2019, section 6.2, after King, Chou and Ni 1990), and into how many collections to cut.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

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

/// The same without the common beat: every step begins when the step before it, the step of the collection before and
/// the room it wants are free. `queues` collections are under way at most, so collection i is copied in when i - queues
/// has been copied out.
[[nodiscard]] inline double scheduled_time(std::span<const CollectionTimes> collections, int queues) {
  std::vector<double> out_end(collections.size());
  double in_end = 0;
  double compute_end = 0;
  for (std::size_t i = 0; i < collections.size(); ++i) {
    const auto room = static_cast<std::size_t>(queues);
    in_end = std::max(in_end, i >= room ? out_end[i - room] : 0) + collections[i].copy_in;
    compute_end = std::max(compute_end, in_end) + collections[i].compute;
    out_end[i] = std::max(i > 0 ? out_end[i - 1] : 0, compute_end) + collections[i].copy_out;
  }
  return out_end.empty() ? 0 : out_end.back();
}

/// What a collection is for the model.
struct CollectionSize {
  double in_bytes = 0;
  double nnz = 0;
  double out_bytes = 0;
};

/// Seconds of a step as begin + size * slope.
struct StepRate {
  double begin = 0;
  double slope = 0;

  [[nodiscard]] double of(double size) const { return begin + size * slope; }
};

/// The line through two measurements, neither part of it below 0.
[[nodiscard]] inline StepRate rate_through(double small_size, double small_seconds, double large_size,
                                           double large_seconds) {
  StepRate rate;
  if (large_size > small_size) rate.slope = std::max(0.0, (large_seconds - small_seconds) / (large_size - small_size));
  rate.begin = std::max(0.0, small_seconds - small_size * rate.slope);
  return rate;
}

/// What was measured of a device.
struct StepRates {
  StepRate copy_in;   // per byte
  StepRate compute;   // per nonzero
  StepRate copy_out;  // per byte

  [[nodiscard]] CollectionTimes of(const CollectionSize& size) const {
    return {copy_in.of(size.in_bytes), compute.of(size.nnz), size.out_bytes > 0 ? copy_out.of(size.out_bytes) : 0};
  }
};

/// The rates that explain the times of a small and of a larger collection.
[[nodiscard]] inline StepRates rates_from(const CollectionSize& small, const CollectionTimes& small_times,
                                          const CollectionSize& large, const CollectionTimes& large_times) {
  return {rate_through(small.in_bytes, small_times.copy_in, large.in_bytes, large_times.copy_in),
          rate_through(small.nnz, small_times.compute, large.nnz, large_times.compute),
          rate_through(small.out_bytes, small_times.copy_out, large.out_bytes, large_times.copy_out)};
}

/// Fewest and most collections under way at once: three steps want three; more help where collections differ.
inline constexpr int fewest_queues = 3;
inline constexpr int most_queues = 5;

/// Collections are not cut smaller for the sake of overlap: short copies do not reach the rate of the bus, and what
/// beginning a step takes is known only roughly.
inline constexpr double least_collection_bytes = 1 << 18U;

/// Into how many collections of one size to cut what is left, none larger than `most_bytes` (in and out), so that Tp is
/// smallest. More collections overlap better, fewer begin less often.
[[nodiscard]] inline std::uint64_t best_collections(const StepRates& rates, const CollectionSize& whole,
                                                    double most_bytes) {
  const double bytes = whole.in_bytes + whole.out_bytes;
  const auto most = static_cast<std::uint64_t>(std::min(4096.0, bytes / least_collection_bytes));
  auto k = static_cast<std::uint64_t>(std::max(1.0, std::ceil(bytes / std::max(1.0, most_bytes))));
  std::uint64_t best = k;
  double best_time = -1;
  for (; best_time < 0 || k <= most; k += std::max<std::uint64_t>(1, k / 4)) {
    const auto n = static_cast<double>(k);
    const CollectionTimes t = rates.of({whole.in_bytes / n, whole.nnz / n, whole.out_bytes / n});
    // Tp of k collections of one size
    const double tp = t.copy_in + t.compute + t.copy_out + (n - 1) * std::max({t.copy_in, t.compute, t.copy_out});
    if (best_time >= 0 && tp >= best_time) continue;
    best = k;
    best_time = tp;
  }
  return best;
}

/// The number of queues that these collections take least time with, of those that the memory allows.
[[nodiscard]] inline int best_queues(std::span<const CollectionTimes> collections, int most_allowed) {
  int best = std::min(fewest_queues, std::max(1, most_allowed));
  double best_time = scheduled_time(collections, best);
  for (int q = best + 1; q <= std::min(most_queues, most_allowed); ++q)
    if (const double t = scheduled_time(collections, q); t < 0.99 * best_time) {
      best = q;
      best_time = t;
    }
  return best;
}

}  // namespace polyad
