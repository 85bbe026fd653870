// SPDX-License-Identifier: MIT
#include "backends/gpu/opencl/api.hpp"

#include <fmt/format.h>

#include <array>

#include "backends/gpu/library.hpp"
#include "polyad/error.hpp"

namespace polyad::gpu::opencl {

std::shared_ptr<const Api> load(std::string& why_not) {
  static constexpr auto names = std::to_array<const char*>({"libOpenCL.so.1"});
  const Library library("POLYAD_OPENCL_LIBRARY", names, "clGetPlatformIDs");
  if (!library.found()) {
    why_not = fmt::format("no OpenCL driver: {}; install your vendor's driver or Debian's pocl-opencl-icd",
                          library.why_not());
    return nullptr;
  }
  auto api = std::make_shared<Api>();
  for (const auto& [name, to] : std::to_array<std::pair<const char*, void**>>({
#define POLYAD_CL(name) {#name, reinterpret_cast<void**>(&api->name)},
#include "backends/gpu/opencl/functions.list"
#undef POLYAD_CL
       })) {
    *to = library.symbol(name);
    if (*to == nullptr) {
      why_not = fmt::format("the OpenCL library has no {}: it is older than OpenCL 1.2", name);
      return nullptr;
    }
  }
  return api;
}

std::string error_name(cl_int code) {
  switch (code) {
#define POLYAD_CL_ERROR(name) \
  case name:                  \
    return #name;
#include "backends/gpu/opencl/errors.list"
#undef POLYAD_CL_ERROR
    default:
      return fmt::format("error {}", code);
  }
}

void check(cl_int code, std::string_view what) {
  if (code != CL_SUCCESS) throw Error(ErrorKind::limit, fmt::format("OpenCL: {} failed: {}", what, error_name(code)));
}

}  // namespace polyad::gpu::opencl
