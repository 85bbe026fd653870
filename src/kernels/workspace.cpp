// SPDX-License-Identifier: MIT
#include <algorithm>
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

bool Workspace::affords(int purpose, std::size_t bytes, const Context& context) const {
  if (!context.memory || context.memory->limit() == 0) return true;
  const auto found = rooms_->by_purpose.find(purpose);
  const std::uint64_t held = found == rooms_->by_purpose.end() ? 0 : found->second.bytes();
  const std::uint64_t others = context.memory->used() - std::min(context.memory->used(), held);
  return bytes <= held || (others <= context.memory->limit() && bytes <= context.memory->limit() - others);
}

std::uint64_t Workspace::bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const auto& [purpose, room] : rooms_->by_purpose) sum += room.bytes();
  return sum;
}

void Workspace::clear() noexcept { rooms_->by_purpose.clear(); }

}  // namespace polyad
