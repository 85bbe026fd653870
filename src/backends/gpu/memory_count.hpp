// SPDX-License-Identifier: MIT
/// \file How much of a device's memory is taken. Drivers allocate when memory is first touched and lend from the host
/// when it is short; what fits is therefore counted here, and a user's limit is kept the same way.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "backends/gpu/device.hpp"
#include "polyad/error.hpp"

namespace polyad::gpu {

/// Counts bytes up to a limit. Thread-safe.
class MemoryCount {
 public:
  /// \param of_all another count that must have room too; may be null
  explicit MemoryCount(std::uint64_t limit, std::shared_ptr<MemoryCount> of_all = nullptr)
      : limit_(limit), of_all_(std::move(of_all)) {}

  /// Whether there was room for so many bytes; they are then taken.
  [[nodiscard]] bool take(std::uint64_t bytes) {
    std::uint64_t used = used_.load();
    do {
      if (bytes > limit_ || used > limit_ - bytes) return false;
    } while (!used_.compare_exchange_weak(used, used + bytes));
    if (of_all_ == nullptr || of_all_->take(bytes)) return true;
    used_.fetch_sub(bytes);
    return false;
  }
  void give_back(std::uint64_t bytes) {
    used_.fetch_sub(bytes);
    if (of_all_ != nullptr) of_all_->give_back(bytes);
  }

 private:
  std::uint64_t limit_;
  std::shared_ptr<MemoryCount> of_all_;
  std::atomic<std::uint64_t> used_{0};
};

/// What this process has taken of a device, however often it was opened.
/// \param memory_bytes that the device has
[[nodiscard]] std::shared_ptr<MemoryCount> count_of_all(const Facts& facts, std::uint64_t memory_bytes);

/// Bytes that were taken, given back with it.
class Taken {
 public:
  Taken(std::shared_ptr<MemoryCount> count, std::uint64_t bytes) : count_(std::move(count)), bytes_(bytes) {}
  ~Taken() { count_->give_back(bytes_); }
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  std::shared_ptr<MemoryCount> count_;
  std::uint64_t bytes_;
};

/// Error unless the bytes behind the view lie in its memory.
inline void check_range(const View& view, std::uint64_t bytes, std::string_view what) {
  const std::uint64_t all = view.memory ? view.memory->bytes() : 0;
  if (view.offset > all || bytes > all - view.offset)
    throw usage_error(
        fmt::format("{}: bytes {} to {} of {} bytes of device memory", what, view.offset, view.offset + bytes, all));
}

}  // namespace polyad::gpu
