// SPDX-License-Identifier: MIT
#include "backends/gpu/cuda/api.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "backends/gpu/library.hpp"
#include "polyad/error.hpp"

namespace polyad::gpu::cuda {

ApiPtr load(std::string& why_not) {
  static constexpr auto names = std::to_array<const char*>({"libcuda.so.1"});
  const Library library("POLYAD_CUDA_LIBRARY", names, nullptr);
  if (!library.found()) {
    why_not = fmt::format("no NVIDIA driver: {}", library.why_not());
    return nullptr;
  }
  auto api = std::make_shared<Api>();
  for (const auto& [name, to] : std::to_array<std::pair<const char*, void**>>({
#define POLYAD_CUDA(name, ...) {#name, reinterpret_cast<void**>(&api->name)},
#include "backends/gpu/cuda/functions.list"
#undef POLYAD_CUDA
       })) {
    *to = library.symbol(name);
    if (*to == nullptr) {
      why_not = fmt::format("the NVIDIA driver has no {}: it is too old", name);
      return nullptr;
    }
  }
  if (const Result code = api->cuInit(0); code != 0) {
    why_not = fmt::format("the NVIDIA driver does not start: {}", error_name(*api, code));
    return nullptr;
  }
  return api;
}

std::string error_name(const Api& api, Result code) {
  const char* name = nullptr;
  const char* words = nullptr;
  if (api.cuGetErrorName(code, &name) != 0 || name == nullptr) return fmt::format("error {}", code);
  if (api.cuGetErrorString(code, &words) != 0 || words == nullptr) return name;
  return fmt::format("{}: {}", name, words);
}

void check(const Api& api, Result code, std::string_view what) {
  if (code != 0) throw Error(ErrorKind::limit, fmt::format("CUDA: {} failed: {}", what, error_name(api, code)));
}

}  // namespace polyad::gpu::cuda
