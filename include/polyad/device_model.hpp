// SPDX-License-Identifier: MIT
/// \file What MTTKRPs would take on a GPU: an estimate from published figures of one that is not here, or from the
/// bandwidths of one that is; never a measurement of MTTKRPs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "polyad/context.hpp"
#include "polyad/coo_tensor.hpp"

namespace polyad {

/// A device as a roofline.
struct DeviceModel {
  std::string_view name;         ///< "a100"
  std::string_view description;  ///< the maker's name
  double memory_gbs = 0;         ///< GB/s of its memory
  double f32_tflops = 0;
  double f64_tflops = 0;
  double cache_mb = 0;   ///< last level of cache
  double memory_gb = 0;  ///< its memory
  double copy_gbs = 0;   ///< GB/s to and from the host, one direction
};

/// All lines of device_models.list.
[[nodiscard]] std::span<const DeviceModel> device_models();
/// The line of a name; Error (usage) that says which there are.
[[nodiscard]] const DeviceModel& device_model(std::string_view name);

/// The devices of the context as one: bandwidths as they are when some MB are cleared and copied, which takes a
/// fraction of a second; peaks are not known and count as infinite. Names are views of what the first device is called.
[[nodiscard]] DeviceModel model_of_devices(const Context& context);

/// What a format is expected to take on a device, for MTTKRPs in all modes in turn.
struct DeviceEstimate {
  std::string_view format;
  double seconds = 0;         ///< of a sweep over the modes; with the copies when the tensor does not fit
  double moved_bytes = 0;     ///< to and from the device's memory
  double flops = 0;           ///< nnz * R * N a mode
  double tensor_bytes = 0;    ///< arrays of the format
  double upload_seconds = 0;  ///< copying the tensor there, once when it fits
  bool fits = true;           ///< the tensor, the factors and an output
  bool factors_fit = true;    ///< the factors and an output: else nothing can run there
  std::string_view bound;     ///< what takes longest: "memory", "arithmetic", "copies"
};

/// The formats that device kernels work on, the fastest first. A roofline: the larger of bytes / bandwidth and flops /
/// peak, per mode. Bytes are the arrays of the format, rows of factors and of the output. A row is read from memory
/// when it is first needed; later uses find it in the cache with the probability cache / (bytes of the factors that are
/// read), at most 1. Launches, imbalance and conflicts of atomics are left out, so times are on the fast side.
[[nodiscard]] std::vector<DeviceEstimate> estimate_on_device(const CooTensor& x, std::uint64_t rank,
                                                             const DeviceModel& device, const Context& context = {});

}  // namespace polyad
