// SPDX-License-Identifier: MIT
/// \file Memory that no Buffer holds, and that counts all the same.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "polyad/context.hpp"

namespace polyad {

/// Counts bytes that no Buffer holds for as long as it lives.
class Counted {
 public:
  Counted(const Context& context, std::uint64_t bytes, std::string_view purpose)
      : memory_(context.memory), bytes_(bytes) {
    if (memory_) memory_->take(bytes_, purpose);
  }
  ~Counted() {
    if (memory_) memory_->give_back(bytes_);
  }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  std::shared_ptr<MemoryBudget> memory_;
  std::uint64_t bytes_;
};

}  // namespace polyad
