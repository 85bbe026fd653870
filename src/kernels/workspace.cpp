// SPDX-License-Identifier: MIT
#include <algorithm>
#include <map>

#include "polyad/kernels.hpp"
#include "polyad/types.hpp"

namespace polyad {

struct Workspace::Rooms {
  /// What a room was made from: the maker, and the versions of the factors (0 for modes that do not matter).
  struct Origin {
    std::array<std::uint64_t, 2> maker = {};
    std::array<std::uint64_t, max_order> versions = {};

    [[nodiscard]] bool operator==(const Origin&) const = default;
  };

  std::map<int, Buffer<std::byte>> by_purpose;
  bool keeping = false;
  std::array<std::uint64_t, max_order> versions = {};  // of the factors; counted from 1 when products are kept
  std::array<bool, max_order> fixed = {};              // factors that will not change
  std::map<int, Origin> origins;                       // of rooms that hold something
  std::shared_ptr<void> on_devices;                    // what kernels keep there

  [[nodiscard]] Origin origin(std::span<const int> modes, const std::array<std::uint64_t, 2>& maker) const {
    Origin o{maker, {}};
    for (const int m : modes) o.versions[static_cast<std::size_t>(m)] = versions[static_cast<std::size_t>(m)];
    return o;
  }
};

Workspace::Workspace() : rooms_(std::make_unique<Rooms>()) {}
Workspace::~Workspace() = default;
Workspace::Workspace(Workspace&&) noexcept = default;
Workspace& Workspace::operator=(Workspace&&) noexcept = default;

void* Workspace::room(int purpose, std::size_t bytes, const Context& context) {
  Buffer<std::byte>& room = rooms_->by_purpose[purpose];
  if (room.size() < bytes) {
    rooms_->origins.erase(purpose);
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

std::uint64_t Workspace::version(int mode) const { return rooms_->versions.at(static_cast<std::size_t>(mode)); }

std::shared_ptr<void>& Workspace::on_devices() { return rooms_->on_devices; }

void Workspace::clear() noexcept {
  rooms_->on_devices.reset();
  rooms_->by_purpose.clear();
  rooms_->origins.clear();
}

void Workspace::keep_products() {
  rooms_->keeping = true;
  changed();
}

bool Workspace::keeps_products() const noexcept { return rooms_->keeping; }

void Workspace::changed(int mode) { ++rooms_->versions.at(static_cast<std::size_t>(mode)); }

void Workspace::changed() {
  for (std::uint64_t& v : rooms_->versions) ++v;
}

void Workspace::set_fixed(int mode) { rooms_->fixed.at(static_cast<std::size_t>(mode)) = true; }

bool Workspace::is_fixed(int mode) const { return rooms_->fixed.at(static_cast<std::size_t>(mode)); }

bool Workspace::holds(int purpose, std::span<const int> modes, const std::array<std::uint64_t, 2>& maker) const {
  if (!rooms_->keeping) return false;
  const auto found = rooms_->origins.find(purpose);
  return found != rooms_->origins.end() && found->second == rooms_->origin(modes, maker);
}

void Workspace::set_held(int purpose, std::span<const int> modes, const std::array<std::uint64_t, 2>& maker,
                         int about_to_change) {
  Rooms::Origin& origin = rooms_->origins[purpose] = rooms_->origin(modes, maker);
  if (about_to_change >= 0) ++origin.versions[static_cast<std::size_t>(about_to_change)];
}

}  // namespace polyad
