// SPDX-License-Identifier: MIT
/// \file GPUs and other devices that kernels run on: find them, open one, give it to a Context.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "polyad/registry.hpp"

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

/// What is known of devices that were opened.
[[nodiscard]] std::vector<DeviceEntry> devices_of(const std::vector<std::shared_ptr<gpu::Device>>& devices);

/// Opens devices by name ('polyad list devices'): "gpu" is the best that was found, "opencl:0,opencl:1" two that share
/// the work. "cpu" gives none: the processor itself needs no opening. Error when there is no such device, with the
/// reason why a driver could not be used.
[[nodiscard]] std::vector<std::shared_ptr<gpu::Device>> open_devices(std::string_view names,
                                                                     const DeviceOptions& options = {});

/// Something that ran on a device.
struct TimelineSpan {
  std::string lane;   ///< the device and the queue, e.g. "opencl:0 queue 1"
  std::string label;  ///< "copy in", "clear", the kernel's
  double begin = 0;   ///< seconds since the first command of its device
  double end = 0;
};

/// Records what the queues of devices do and when.
class Timeline {
 public:
  Timeline();
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  /// The same devices; all that is put into queues made from these is recorded, also after the timeline is gone.
  [[nodiscard]] std::vector<std::shared_ptr<gpu::Device>> watch(
      const std::vector<std::shared_ptr<gpu::Device>>& devices);
  /// What ran, by lane and begin; waits for what still runs.
  [[nodiscard]] std::vector<TimelineSpan> spans() const;
  /// A sentence for each two commands of different queues that used the same device memory at the same time although
  /// one of them copied into it or out of it. Empty: events kept the order. Kernels are taken to use the memory from
  /// where an argument begins to where the next begins; two kernels may share memory.
  [[nodiscard]] std::vector<std::string> conflicts() const;
  /// Forgets what was recorded.
  void clear();

 private:
  struct Record;
  std::shared_ptr<Record> record_;
};

}  // namespace polyad
