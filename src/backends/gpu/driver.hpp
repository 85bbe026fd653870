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

/// "0000:3b:00" of a place on the PCI bus; empty where a driver gives zeros because it does not know.
[[nodiscard]] std::string place_on_bus(std::uint32_t domain, std::uint32_t bus, std::uint32_t device);
/// Whether both are the same device: by its name, or by its place when two drivers know it. A driver that shows the
/// parts of a GPU as devices gives them one place.
[[nodiscard]] bool is_same_device(const Facts& a, const Facts& b);

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
