// SPDX-License-Identifier: MIT
/// \file The functions of libOpenCL.so.1 by name, and handles that release themselves.
#pragma once

#include <CL/cl.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace polyad::gpu::opencl {

/// The functions of OpenCL 1.2 that are used.
struct Api {
#define POLYAD_CL(name) decltype(&::name) name = nullptr;
#include "backends/gpu/opencl/functions.list"
#undef POLYAD_CL
};

/// The library's functions; null with a clause why when it is not there or lacks one.
[[nodiscard]] std::shared_ptr<const Api> load(std::string& why_not);

/// "CL_OUT_OF_RESOURCES" of -5.
[[nodiscard]] std::string error_name(cl_int code);
/// Error (limit) "OpenCL: WHAT failed: CL_..." unless the code is CL_SUCCESS.
void check(cl_int code, std::string_view what);

/// An OpenCL object, released at the end.
template <class T>
class Handle {
 public:
  Handle() = default;
  Handle(T object, cl_int (*release)(T)) : object_(object), release_(release) {}
  Handle(Handle&& other) noexcept : object_(std::exchange(other.object_, nullptr)), release_(other.release_) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(object_, other.object_);
    std::swap(release_, other.release_);
    return *this;
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    if (object_ != nullptr) release_(object_);
  }
  [[nodiscard]] T get() const { return object_; }

 private:
  T object_ = nullptr;
  cl_int (*release_)(T) = nullptr;
};

}  // namespace polyad::gpu::opencl
