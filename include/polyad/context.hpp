// SPDX-License-Identifier: MIT
/// \file How to run: threads, memory limit, seed, who watches. A value the caller owns; there are no globals.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace polyad {

namespace gpu {
class Device;
}  // namespace gpu

/// Counts the bytes held by polyad's big arrays and refuses to go over a limit. Thread-safe.
class MemoryBudget {
 public:
  /// \param limit_bytes 0 means no limit.
  explicit MemoryBudget(std::uint64_t limit_bytes = 0) : limit_(limit_bytes) {}

  /// Counts `bytes` as taken; throws Error (limit) that names the purpose, the need and what is in use.
  void take(std::uint64_t bytes, std::string_view purpose);

  /// Gives back what take() counted.
  void give_back(std::uint64_t bytes) noexcept { used_.fetch_sub(bytes, std::memory_order_relaxed); }

  /// The limit in bytes, 0 for none.
  [[nodiscard]] std::uint64_t limit() const noexcept { return limit_; }
  /// Bytes taken now.
  [[nodiscard]] std::uint64_t used() const noexcept { return used_.load(std::memory_order_relaxed); }
  /// The most that was ever taken at once.
  [[nodiscard]] std::uint64_t peak() const noexcept { return peak_.load(std::memory_order_relaxed); }

 private:
  std::uint64_t limit_;
  std::atomic<std::uint64_t> used_{0};
  std::atomic<std::uint64_t> peak_{0};
};

/// Where a long operation stands.
struct Progress {
  std::string_view phase;   ///< "reading", "sorting", ...
  std::uint64_t done = 0;   ///< in units of `unit`
  std::uint64_t total = 0;  ///< 0 when unknown
  std::string_view unit;    ///< "bytes", "nonzeros", ...
};

/// How to run. Copying is cheap; copies share the memory budget and the callbacks.
struct Context {
  /// Number of threads; 0 means default_threads().
  int threads = 0;
  /// Seed of every random choice.
  std::uint64_t seed = 1;
  /// Same bits for any number of threads.
  bool deterministic = false;
  /// Counts memory and enforces the limit.
  std::shared_ptr<MemoryBudget> memory = std::make_shared<MemoryBudget>();
  /// Folder where measurements of this machine are kept (row costs, tuned formats); empty: nothing is measured for
  /// planning or remembered, and the costs of a reference machine are taken.
  std::string cache;
  /// Where kernels run (open_devices); empty: on the processor. Several share the work.
  std::vector<std::shared_ptr<gpu::Device>> devices;
  /// Called now and then by long operations, on any thread but never on two at once; may be empty.
  std::function<void(const Progress&)> observer;
  /// Asked now and then by long operations, perhaps by several threads at once; returning true makes them throw Error
  /// (cancelled). May be empty.
  std::function<bool()> cancelled;

  /// The number of threads to use: `threads`, or default_threads() when it is 0.
  [[nodiscard]] int thread_count() const;
  /// Reports to the observer if there is one, and throws Error (cancelled) if the caller wants to stop.
  void report(const Progress& progress) const;
};

/// OMP_NUM_THREADS if set to a positive number, else the cores this process may run on.
[[nodiscard]] int default_threads();

}  // namespace polyad
