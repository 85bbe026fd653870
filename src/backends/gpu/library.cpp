// SPDX-License-Identifier: MIT
#include "backends/gpu/library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <vector>

namespace polyad::gpu {

Library::Library(const char* variable, std::span<const char* const> names, const char* marker) {
  std::vector<std::string> tried;
  if (const char* named = std::getenv(variable); named != nullptr && *named != '\0') {
    tried.emplace_back(named);
  } else {
    if (marker != nullptr && dlsym(RTLD_DEFAULT, marker) != nullptr) {
      handle_ = dlopen(nullptr, RTLD_NOW);
      if (handle_ != nullptr) return;
    }
    tried.assign(names.begin(), names.end());
  }
  for (const std::string& name : tried) {
    handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) return;
  }
  for (std::size_t i = 0; i < tried.size(); ++i)
    why_not_ += fmt::format("{}{}", i == 0 ? "" : i + 1 == tried.size() ? " or " : ", ", tried[i]);
  why_not_ += " was not found";
}

void* Library::symbol(const char* name) const { return handle_ == nullptr ? nullptr : dlsym(handle_, name); }

}  // namespace polyad::gpu
