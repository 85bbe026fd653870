// SPDX-License-Identifier: MIT
#include "backends/cpu/threads.hpp"

#include <algorithm>
#include <exception>
#include <latch>
#include <system_error>
#include <thread>
#include <vector>

#include "backends/cpu/tiny_numbers.hpp"

#if defined(_OPENMP) && !defined(POLYAD_STD_THREADS)
#include <omp.h>
#endif

namespace polyad::cpu {

#if defined(_OPENMP) && !defined(POLYAD_STD_THREADS)
namespace {

/// How many threads the system gives, up to `size`. libgomp ends the process when it gets one less than it asks for (a
/// limit such as ulimit -u), so they are tried before. It keeps a team for each thread that starts some, hence once per
/// such thread and larger size: 20 us a thread.
int granted_threads(int size) {
  thread_local int known = 1;
  thread_local bool refused = false;
  if (size <= known || refused) return std::min(size, known);
  std::latch all_tried(1);
  std::vector<std::thread> tried;
  try {
    tried.reserve(static_cast<std::size_t>(size) - 1);
    while (static_cast<int>(tried.size()) < size - 1) tried.emplace_back([&] { all_tried.wait(); });
  } catch (const std::system_error&) {
    refused = true;
  }
  all_tried.count_down();
  for (std::thread& t : tried) t.join();
  known = std::max(known, static_cast<int>(tried.size()) + 1);
  return std::min(size, known);
}

}  // namespace
#endif

void run_team(int size, const std::function<void(int, int)>& body) {
  if (size <= 1) {
    body(0, 1);
    return;
  }
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(size));
  const TeamTinyNumbers tiny_numbers;
  const auto guarded = [&](int rank) {
    const TeamTinyNumbers::Member as_asked(tiny_numbers);
    try {
      body(rank, size);
    } catch (...) {
      failures[static_cast<std::size_t>(rank)] = std::current_exception();
    }
  };
#if defined(_OPENMP) && !defined(POLYAD_STD_THREADS)
  // A nested or restricted region may get fewer threads than asked for: the loop hands out every rank all the same.
  const int threads = omp_in_parallel() != 0 ? 1 : granted_threads(size);
#pragma omp parallel for num_threads(threads) schedule(static, 1)
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
