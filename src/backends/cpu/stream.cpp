// SPDX-License-Identifier: MIT
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>

#include "backends/cpu/threads.hpp"
#include "polyad/buffer.hpp"
#include "polyad/machine.hpp"

namespace polyad {

std::uint64_t last_cache_bytes() {
  // What this processor can use. sysconf may add up what all of a package have: 384 MB on a Zen 5 with 32 for each
  // eight.
  if (std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index3/size"); file) {
    std::uint64_t size = 0;
    char unit = 0;
    if (file >> size >> unit && size > 0 && (unit == 'K' || unit == 'M')) return size << (unit == 'K' ? 10U : 20U);
  }
#ifdef _SC_LEVEL3_CACHE_SIZE
  if (const long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE); bytes > 0) return static_cast<std::uint64_t>(bytes);
#endif
  return std::uint64_t{32} << 20U;
}

std::uint64_t second_cache_bytes() {
#ifdef _SC_LEVEL2_CACHE_SIZE
  if (const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE); bytes > 0) return static_cast<std::uint64_t>(bytes);
#endif
  return std::uint64_t{1} << 20U;
}

double stream_triad_gbs(const Context& context) {
  // Each array twice the cache: the three together are six times as large, so that no round finds anything of the one
  // before in it.
  const std::uint64_t n =
      std::clamp(2 * last_cache_bytes(), std::uint64_t{16} << 20U, std::uint64_t{512} << 20U) / sizeof(double);
  const std::string_view purpose = "an array of the STREAM triad";
  Buffer<double> a(context, n, purpose);
  Buffer<double> b(context, n, purpose);
  Buffer<double> c(context, n, purpose);
  const int threads = context.thread_count();
  const auto on_shares = [&](const auto& body) {
    cpu::run_team(threads, [&](int rank, int size) {
      const cpu::Share s = cpu::share_of(n, rank, size);
      body(a.data() + s.begin, b.data() + s.begin, c.data() + s.begin, s.end - s.begin);
    });
  };
  // Each thread touches its own pages first.
  on_shares([](double* x, double* y, double* z, std::uint64_t count) {
    std::fill_n(x, count, 1.0);
    std::fill_n(y, count, 2.0);
    std::fill_n(z, count, 0.5);
  });
  constexpr int rounds = 7;
  double best = 0;
  for (int round = 0; round < rounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    on_shares([](double* __restrict x, const double* __restrict y, const double* __restrict z, std::uint64_t count) {
      for (std::uint64_t i = 0; i < count; ++i) x[i] = y[i] + 3.0 * z[i];
    });
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    best = std::max(best, 3.0 * sizeof(double) * static_cast<double>(n) / seconds / 1e9);
    context.report({"measuring memory bandwidth", static_cast<std::uint64_t>(round) + 1, rounds, "rounds"});
  }
  return best;
}

}  // namespace polyad
