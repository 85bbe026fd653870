// SPDX-License-Identifier: MIT
/// \file One way to run on several threads. All parallel code goes through run_team, so that the shipped build uses
/// OpenMP and the TSan build std::thread (libgomp is not instrumented and would report races that are none).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace polyad::cpu {

/// Calls body(rank, size) on `size` threads and waits for all; they treat tiny numbers as this thread does. The first
/// exception (by rank) is rethrown here. A body may wait only for a member that is certainly running: when the system
/// grants fewer threads, bodies run one by one.
void run_team(int size, const std::function<void(int rank, int size)>& body);

/// The part [begin, end) of n items that member `rank` of `size` takes: contiguous, sizes differ by at most one.
struct Share {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};
[[nodiscard]] constexpr Share share_of(std::uint64_t n, int rank, int size) {
  const auto s = static_cast<std::uint64_t>(size);
  const auto r = static_cast<std::uint64_t>(rank);
  const std::uint64_t base = n / s;
  const std::uint64_t extra = n % s;
  const std::uint64_t begin = base * r + (r < extra ? r : extra);
  return {begin, begin + base + (r < extra ? 1 : 0)};
}

/// Calls body(begin, end) for the shares of n items on at most `threads` threads; small n runs on one.
template <class Body>
void parallel_ranges(int threads, std::uint64_t n, const Body& body, std::uint64_t least_per_thread = 1U << 14U) {
  const auto useful = static_cast<int>(n / (least_per_thread == 0 ? 1 : least_per_thread));
  const int size = threads < useful ? threads : useful;
  if (size <= 1) {
    if (n > 0) body(std::uint64_t{0}, n);
    return;
  }
  run_team(size, [&](int rank, int team) {
    const Share s = share_of(n, rank, team);
    if (s.begin < s.end) body(s.begin, s.end);
  });
}

/// Hands out chunks 0 .. n-1 to a team, one by one: body(chunk, rank). Every member has a contiguous share and helps
/// with those of others when it is done: a processor reads on where it was, and what was requested ahead is used.
template <class Body>
void for_each_chunk(int threads, std::uint64_t chunks, const Body& body) {
  struct alignas(64) Rest {
    std::atomic<std::uint64_t> next{0};
    std::uint64_t end = 0;
  };
  const int team = static_cast<int>(std::min<std::uint64_t>(static_cast<std::uint64_t>(std::max(threads, 1)), chunks));
  const auto shares = static_cast<std::size_t>(team);
  std::vector<Rest> rest(shares);
  for (int member = 0; member < team; ++member) {
    const Share s = share_of(chunks, member, team);
    rest[static_cast<std::size_t>(member)].next = s.begin;
    rest[static_cast<std::size_t>(member)].end = s.end;
  }
  run_team(team, [&](int rank, int) {
    for (std::size_t i = 0; i < shares; ++i) {
      Rest& r = rest[(static_cast<std::size_t>(rank) + i) % shares];
      for (std::uint64_t c = r.next.fetch_add(1); c < r.end; c = r.next.fetch_add(1)) body(c, rank);
    }
  });
}

}  // namespace polyad::cpu
