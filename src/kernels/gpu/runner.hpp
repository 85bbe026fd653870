// SPDX-License-Identifier: MIT
/// \file Runs parts on devices: what is kept there from call to call, slots, queues.
///
/// A tensor that fits stays on the device: every part has a slot of its own. Else its parts go through a pipeline
/// (pipeline.hpp). Kernels do not see the difference.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/gpu/device.hpp"
#include "kernels/gpu/part.hpp"
#include "kernels/gpu/pipeline.hpp"
#include "polyad/context.hpp"
#include "polyad/kernels.hpp"
#include "polyad/pipeline.hpp"

namespace polyad::gpu {

/// Memory on the device for one part: head, then arrays.
struct Slot {
  MemoryPtr memory;
  Event written;  ///< the copy of the part
};

/// A part with all that is needed to launch it.
struct Job {
  const Part* part = nullptr;
  KernelPtr kernel;
  std::string_view name;  ///< of the kernel, for timelines
  Grid grid;
  std::uint64_t seam_bytes = 0;  ///< 0: no side rows
};

/// Where parts read the factors and write.
struct Target {
  View factors;
  View out;
  View seams;
  KernelPtr add_seams;  ///< null when no job has side rows
  std::array<std::uint32_t, 2> items = {1, 1};
  std::uint64_t column_groups = 1;  ///< of add_seams
  std::uint64_t stride = 0;
};

/// Bytes of a slot in front of the arrays.
[[nodiscard]] std::uint64_t head_bytes(const Part& part, std::size_t factors, std::uint64_t alignment);

/// A device in use: queues, compiled kernels and what lies in its memory.
class DeviceState {
 public:
  explicit DeviceState(DevicePtr device);

  [[nodiscard]] Device& device() { return *device_; }
  [[nodiscard]] const Facts& facts() const { return device_->facts(); }
  /// Where what a kernel is given may begin in memory.
  [[nodiscard]] std::uint64_t alignment() const { return std::max(slot_alignment, facts().offset_alignment); }
  [[nodiscard]] Queue& copies() { return *copies_; }
  [[nodiscard]] Queue& compute() { return *compute_; }
  /// A compiled kernel; asked for once.
  [[nodiscard]] KernelPtr kernel(std::string_view unit, std::string_view function, std::span<const Define> defines);

  /// Memory for a purpose, kept from call to call and made larger as needed; its content is lost then. Error (limit)
  /// when there is no room even after tensors that were kept are given up.
  [[nodiscard]] View room(const std::string& purpose, std::uint64_t bytes);
  /// The same; false when there is no room.
  [[nodiscard]] bool try_room(const std::string& purpose, std::uint64_t bytes);
  /// Gives the memory of a purpose back.
  void drop_room(const std::string& purpose) { rooms_.erase(purpose); }
  /// Bytes that rooms take.
  [[nodiscard]] std::uint64_t room_bytes() const;
  /// Memory that may not be there: null when there is no room, after tensors that were kept are given up.
  [[nodiscard]] MemoryPtr try_allocate(std::uint64_t bytes, bool may_evict, const std::string& kept = {});

  /// Puts all of a part into a slot.
  void fill(Slot& slot, const Part& part, std::span<const std::uint64_t> factor_rows, std::uint64_t stride);
  /// Puts the jobs into the queue, in order; slot k has part k.
  void run(std::span<const Job> jobs, std::span<const Slot> slots, std::size_t factor_count, const Target& target,
           std::span<const Event> after);
  /// The jobs as collections for the pipeline; they view what they are made from.
  [[nodiscard]] static std::vector<Collection> collections(std::span<const Job> jobs,
                                                           std::span<const std::uint64_t> factor_rows,
                                                           const Target& target);
  /// Waits for everything.
  void finish();

  /// Tensors that stay: by a key of the caller's.
  struct Resident {
    std::vector<Slot> slots;
    std::uint64_t used = 0;  ///< the call that used it last
  };
  std::map<std::string, Resident> residents;
  /// What parts go through that do not stay, and the bytes of its slots.
  std::unique_ptr<Pipeline> pipeline;
  std::uint64_t pipeline_bytes = 0;
  std::uint64_t calls = 0;

  /// The factors that are there.
  struct Factors {
    const Memory* memory = nullptr;
    std::vector<std::uint64_t> dims;
    std::array<std::uint64_t, 2> row = {};  ///< columns of a row, bytes of a number
    std::vector<std::uint64_t> versions;    ///< as of Workspace::version; 0: not there
  } factors;

 private:
  DevicePtr device_;
  std::vector<std::vector<std::uint64_t>> heads_;  // on their way: gone after the queues
  std::unique_ptr<Queue> copies_;
  std::unique_ptr<Queue> compute_;
  std::map<std::string, KernelPtr> kernels_;
  std::map<std::string, MemoryPtr> rooms_;
};

/// How a tensor is run on the devices.
struct Plan {
  std::vector<PartGroup> groups;
  /// A part by its group and its place there.
  struct Place {
    std::size_t group = 0;
    std::size_t part = 0;
  };
  std::vector<std::vector<Place>> of_device;  ///< [device]
  bool stays = true;                          ///< parts have slots of their own; else they pass through the pipeline
  StepRates rates;                            ///< what was measured for the pipeline
};

/// The devices of a Context in use by a Workspace.
struct DeviceStates {
  std::vector<std::unique_ptr<DeviceState>> all;
  std::map<std::string, Plan> plans;  ///< by a key of the caller's
  PipelineReport* report = nullptr;   ///< set: all tensors pass through the pipeline, both ways
  bool output_stays = false;          ///< on the only device: whoever asked for it will look for it there (dense.hpp)
};

/// What the Workspace keeps on the devices of the context; begun anew when they are others than at the last call.
[[nodiscard]] DeviceStates& states_of(Workspace& workspace, const Context& context);

/// Lanes along the columns and workers of a group.
[[nodiscard]] std::array<std::uint32_t, 2> group_items(std::uint64_t stride, const Facts& facts);

}  // namespace polyad::gpu
