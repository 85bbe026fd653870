// SPDX-License-Identifier: MIT
#include "polyad/context.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "core/page_pool.hpp"
#include "polyad/error.hpp"
#include "polyad/sizes.hpp"

namespace polyad {

void MemoryBudget::take(std::uint64_t bytes, std::string_view purpose) {
  const std::uint64_t now = used_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (limit_ != 0 && (now > limit_ || now < bytes)) {
    give_back(bytes);
    throw Error(ErrorKind::limit,
                fmt::format("{} needs {}, but with {} in use that is over the memory limit of {}", purpose,
                            readable_bytes(bytes), readable_bytes(now - bytes), readable_bytes(limit_)));
  }
  std::uint64_t peak = peak_.load(std::memory_order_relaxed);
  while (now > peak && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
  // Pages that nobody uses are in the memory too.
  if (limit_ != 0) detail::PagePool::instance().keep_at_most(limit_ - now);
}

int Context::thread_count() const { return threads > 0 ? threads : default_threads(); }

void Context::report(const Progress& progress) const {
  if (cancelled && cancelled()) throw Error(ErrorKind::cancelled, fmt::format("stopped while {}", progress.phase));
  if (observer) observer(progress);
}

int default_threads() {
  if (const char* text = std::getenv("OMP_NUM_THREADS")) {
    int n = 0;  // the first number of a list such as "4,2" is the outermost level
    std::from_chars(text, text + std::strlen(text), n);
    if (n > 0) return n;
  }
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  const unsigned n = std::thread::hardware_concurrency();
  return n > 0 ? static_cast<int>(n) : 1;
}

}  // namespace polyad
