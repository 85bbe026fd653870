// SPDX-License-Identifier: MIT
/// \file A device that runs the kernel texts compiled as C++, work-items as threads: gdb, ASan, UBSan and TSan see what
/// they do. Two groups run at a time, so that races between groups show too.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "backends/gpu/device.hpp"

namespace polyad::plain {

/// How the device is.
struct Options {
  std::uint64_t memory_bytes = std::uint64_t{1} << 30U;
  std::uint32_t largest_group = 16;  ///< threads of a group
  bool has_f64 = true;
};

[[nodiscard]] gpu::DevicePtr make_device(const Options& options = {});

/// The kernels that any such device has run since the last call.
[[nodiscard]] std::set<std::string> launched();
/// The kernels of the texts of src/device whose names begin so.
[[nodiscard]] std::set<std::string> kernels_of(std::string_view texts);

}  // namespace polyad::plain
