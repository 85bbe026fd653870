// SPDX-License-Identifier: MIT
/// \file Runs parts on devices: what is kept there from call to call, slots, queues.
///
/// A tensor that fits stays on the device: its arrays once, whatever the modes, and a head for each mode and rank. Else
/// its parts go through a pipeline (pipeline.hpp). Kernels do not see the difference.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <semaphore>
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

/// Arrays of a part that stay on the device. Parts of other modes, ranks and kernels with the same arrays use the same.
struct Resident {
  MemoryPtr memory;
  Event written;             ///< the copies, while they may be under way
  std::uint64_t filled = 0;  ///< bit k: array k is there
  std::uint64_t used = 0;    ///< the call that used it last
};

/// The name of a part's arrays: those with the same name are the same bytes. It begins with the tensor's number.
[[nodiscard]] std::string resident_name(std::uint64_t tensor, const Part& part);

/// The heads of parts that stay, one behind the other.
struct Heads {
  MemoryPtr memory;
  Event written;
  std::vector<std::uint64_t> begins;  ///< [parts + 1], in bytes; that of add_seams is an alignment before the next
};

/// A lock that the thread which holds it may try to take: a Context may list a device twice.
class UseLock {
 public:
  void lock() { free_.acquire(); }
  [[nodiscard]] bool try_lock() { return free_.try_acquire(); }
  void unlock() { free_.release(); }

 private:
  std::binary_semaphore free_{1};
};

/// A device in use: queues, compiled kernels and what lies in its memory.
class DeviceState final : public Tenant {
 public:
  explicit DeviceState(DevicePtr device);
  ~DeviceState() override;
  DeviceState(const DeviceState&) = delete;
  DeviceState& operator=(const DeviceState&) = delete;

  /// Held by whoever works with it: another Workspace may only take away what is idle.
  UseLock in_use;
  /// Tensors, and the slots of a pipeline, when it is idle.
  bool give_up() override;

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
  /// Memory that may not be there: null when there is no room, after tensors that were kept are given up, those of
  /// others that are idle too.
  /// \param kept tensors whose name begins so stay
  [[nodiscard]] MemoryPtr try_allocate(std::uint64_t bytes, bool may_evict, const std::string& kept = {});

  /// Copies the arrays that the part's kernel reads and that are not there yet.
  void fill(Resident& resident, const Part& part);
  /// Copies the heads of parts to memory of their own; false when there is no room. \param kept as of try_allocate
  [[nodiscard]] bool put_heads(Heads& to, std::span<const Part* const> parts,
                               std::span<const std::uint64_t> factor_rows, std::uint64_t stride,
                               const std::string& kept);
  /// Puts the jobs into the queue, in order; stage k has the arrays and heads of job k.
  void run(std::span<const Job> jobs, std::span<const Stage> stages, const Target& target,
           std::span<const Event> after);
  /// The jobs as collections for the pipeline; they view what they are made from.
  [[nodiscard]] static std::vector<Collection> collections(std::span<const Job> jobs,
                                                           std::span<const std::uint64_t> factor_rows,
                                                           const Target& target);
  /// Waits for everything.
  void finish();

  std::map<std::string, Resident> residents;  ///< by resident_name
  std::map<std::string, Heads> heads;         ///< by a key of the caller's
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
  std::vector<std::vector<std::uint64_t>> leaving_;  // heads on their way: gone after the queues
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
  bool stays = true;                          ///< parts stay on the device; else they pass through the pipeline
  StepRates rates;                            ///< what was measured for the pipeline
};

/// The devices of a Context in use by a Workspace.
struct DeviceStates {
  std::vector<std::unique_ptr<DeviceState>> all;
  std::map<std::string, Plan> plans;  ///< by a key of the caller's
  PipelineReport* report = nullptr;   ///< set: all tensors pass through the pipeline, both ways
  bool output_stays = false;          ///< on the only device: whoever asked for it will look for it there (dense.hpp)

  /// While it lives, no other Workspace takes away what lies on the devices.
  [[nodiscard]] std::vector<std::unique_lock<UseLock>> lock() const {
    std::vector<std::unique_lock<UseLock>> locks;
    for (const auto& state : all) locks.emplace_back(state->in_use);
    return locks;
  }
};

/// What the Workspace keeps on the devices of the context; begun anew when they are others than at the last call.
[[nodiscard]] DeviceStates& states_of(Workspace& workspace, const Context& context);

/// Lanes along the columns and workers of a group.
[[nodiscard]] std::array<std::uint32_t, 2> group_items(std::uint64_t stride, const Facts& facts);

}  // namespace polyad::gpu
