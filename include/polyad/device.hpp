// SPDX-License-Identifier: MIT
/// \file GPUs and other devices that kernels run on: find them, open one, give it to a Context.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace polyad {

namespace gpu {
class Device;
}  // namespace gpu

/// How devices are opened.
struct DeviceOptions {
  /// Most device memory to use, in bytes; 0: what the device has.
  std::uint64_t memory = 0;
  /// Folder that keeps compiled kernels; empty: none are kept.
  std::string cache;
};

/// Opens devices by name ('polyad list devices'): "gpu" is the best that was found, "opencl:0,opencl:1" two that share
/// the work. "cpu" gives none: the processor itself needs no opening. Error when there is no such device, with the
/// reason why a driver could not be used.
[[nodiscard]] std::vector<std::shared_ptr<gpu::Device>> open_devices(std::string_view names,
                                                                     const DeviceOptions& options = {});

}  // namespace polyad
