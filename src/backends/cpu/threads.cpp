// SPDX-License-Identifier: MIT
#include "backends/cpu/threads.hpp"

#include <exception>
#include <system_error>
#include <thread>
#include <vector>

#if defined(_OPENMP) && !defined(POLYAD_STD_THREADS)
#include <omp.h>
#endif

namespace polyad::cpu {

void run_team(int size, const std::function<void(int, int)>& body) {
  if (size <= 1) {
    body(0, 1);
    return;
  }
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(size));
  const auto guarded = [&](int rank) {
    try {
      body(rank, size);
    } catch (...) {
      failures[static_cast<std::size_t>(rank)] = std::current_exception();
    }
  };
#if defined(_OPENMP) && !defined(POLYAD_STD_THREADS)
  // A nested or restricted region may get fewer threads than asked for: the loop hands out every rank all the same.
#pragma omp parallel for num_threads(size) schedule(static, 1)
  for (int rank = 0; rank < size; ++rank) guarded(rank);
#else
  std::vector<std::thread> team;
  team.reserve(static_cast<std::size_t>(size) - 1);
  int started = 1;
  try {
    for (; started < size; ++started) team.emplace_back(guarded, started);
  } catch (const std::system_error&) {
    // The system gives no more threads: the rest runs here.
  }
  guarded(0);
  for (int rank = started; rank < size; ++rank) guarded(rank);
  for (std::thread& t : team) t.join();
#endif
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

}  // namespace polyad::cpu
