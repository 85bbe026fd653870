// SPDX-License-Identifier: MIT
#include "backends/gpu/memory_count.hpp"

#include <map>
#include <mutex>
#include <string>

namespace polyad::gpu {

std::shared_ptr<MemoryCount> count_of_all(const Facts& facts, std::uint64_t memory_bytes) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<MemoryCount>> counts;
  const std::scoped_lock lock(mutex);
  std::weak_ptr<MemoryCount>& known = counts[facts.name];
  std::shared_ptr<MemoryCount> count = known.lock();
  if (count == nullptr) known = count = std::make_shared<MemoryCount>(memory_bytes);
  return count;
}

}  // namespace polyad::gpu
