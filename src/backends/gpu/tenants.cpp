// SPDX-License-Identifier: MIT
/// \file Who keeps something on a device, and who makes room for whom.
#include <algorithm>

#include "backends/gpu/device.hpp"

namespace polyad::gpu {

void Tenants::add(Tenant& tenant) {
  const std::scoped_lock lock(mutex_);
  all_.push_back(&tenant);
}

void Tenants::remove(const Tenant& tenant) {
  const std::scoped_lock lock(mutex_);
  std::erase(all_, &tenant);
}

bool Tenants::others_give_up(const Tenant& asks) {
  // Under the lock: a tenant that gives up does not go away meanwhile.
  const std::scoped_lock lock(mutex_);
  return std::ranges::any_of(all_, [&](Tenant* t) { return t != &asks && t->give_up(); });
}

}  // namespace polyad::gpu
