// SPDX-License-Identifier: MIT
#include <map>

#include "polyad/kernels.hpp"

namespace polyad {

struct Workspace::Rooms {
  std::map<int, Buffer<std::byte>> by_purpose;
};

Workspace::Workspace() : rooms_(std::make_unique<Rooms>()) {}
Workspace::~Workspace() = default;
Workspace::Workspace(Workspace&&) noexcept = default;
Workspace& Workspace::operator=(Workspace&&) noexcept = default;

void* Workspace::room(int purpose, std::size_t bytes, const Context& context) {
  Buffer<std::byte>& room = rooms_->by_purpose[purpose];
  if (room.size() < bytes) {
    room = {};  // gives the old memory back first: its content is not kept
    room = Buffer<std::byte>(context, bytes, "the workspace of a kernel");
  }
  return room.data();
}

std::uint64_t Workspace::bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const auto& [purpose, room] : rooms_->by_purpose) sum += room.bytes();
  return sum;
}

void Workspace::clear() noexcept { rooms_->by_purpose.clear(); }

}  // namespace polyad
