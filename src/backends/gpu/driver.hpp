// SPDX-License-Identifier: MIT
/// \file What each driver offers to discovery: what it found, and how to open it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/gpu/device.hpp"
#include "polyad/device.hpp"

namespace polyad::gpu {

/// What a driver found.
struct Found {
  std::vector<Facts> devices;
  std::string why_none;  ///< a clause such as "no OpenCL driver: libOpenCL.so.1 was not found"
};

namespace opencl {
/// Devices of all OpenCL platforms, one behind the other.
[[nodiscard]] Found find();
/// Opens one of them.
[[nodiscard]] DevicePtr open(std::uint32_t number, const DeviceOptions& options);
}  // namespace opencl

namespace cuda {
/// Devices of NVIDIA's driver.
[[nodiscard]] Found find();
/// Opens one of them; Error when NVRTC, which compiles the kernels, is not there.
[[nodiscard]] DevicePtr open(std::uint32_t number, const DeviceOptions& options);
}  // namespace cuda

}  // namespace polyad::gpu
