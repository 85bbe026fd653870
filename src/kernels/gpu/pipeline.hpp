// SPDX-License-Identifier: MIT
/// \file Parts of a tensor through a device: copy in, compute, copy out, several parts under way at once (Yang, Li and
/// Li 2019, section 6.2). How many and how large is in pipeline_model.hpp.
///
/// Every queue has a slot: device memory for a part and what it gives, and pinned memory of the host in the same
/// layout. Part i goes through queue i mod n, whose steps run one after the other, so a slot is not refilled before its
/// compute and its copy out are over; the host waits for both before it refills the pinned memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/gpu/device.hpp"
#include "core/counted.hpp"
#include "kernels/gpu/part.hpp"
#include "kernels/gpu/pipeline_model.hpp"
#include "polyad/pipeline.hpp"

namespace polyad::gpu {

/// Where the kernels of a part find its arrays, and where they write.
struct Stage {
  View slot;
  View head;
  View second_head;  ///< Collection::second_head
  View out;          ///< Collection::out_bytes
  View seams;        ///< Collection::seam_bytes
};

/// A part that goes through the pipeline.
struct Collection {
  const Part* part = nullptr;
  std::span<const std::uint64_t> factor_begins;  ///< for the head
  std::vector<std::uint64_t> second_head;        ///< for a second kernel; may be empty
  std::uint64_t out_bytes = 0;                   ///< copied out; 0 when the output stays on the device
  std::uint64_t seam_bytes = 0;
  /// Launches its kernels after the events; the event of the last one.
  std::function<Event(Queue& queue, const Stage& stage, std::span<const Event> after)> compute;
  /// What was copied out, on the thread that runs the pipeline, in the order of parts.
  std::function<void(std::span<const std::byte> out)> take;

  /// Bytes of a slot that holds all of it, every array at a multiple of `alignment` (Facts::offset_alignment).
  [[nodiscard]] std::uint64_t slot_bytes(std::uint64_t alignment) const;
  [[nodiscard]] CollectionSize size() const {
    return {static_cast<double>(part->bytes()), static_cast<double>(part->nnz), static_cast<double>(out_bytes)};
  }
};

/// What a run took whose steps did not overlap, in seconds by the host's clock.
struct SynchronousTimes {
  double seconds = 0;
  std::vector<CollectionTimes> collections;
};

/// Queues and slots of one device. One thread at a time.
class Pipeline {
 public:
  /// Null when the device has no room for so many slots of that size, or the context's memory none for as much pinned
  /// memory.
  [[nodiscard]] static std::unique_ptr<Pipeline> make(Device& device, std::uint64_t slot_bytes, int queues,
                                                      const Context& context);
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  [[nodiscard]] int queues() const { return static_cast<int>(lanes_.size()); }
  [[nodiscard]] std::uint64_t slot_bytes() const { return lanes_.front().memory->bytes(); }

  /// All of them, the steps of different ones side by side; the seconds, by the host's clock.
  /// \param in_turn computing waits until the collection before was computed: they add to the same output
  /// \param after what must be over before the first is computed
  double run(std::span<const Collection> collections, bool in_turn, std::span<const Event> after = {});
  /// All of them, one step after the other: the steps are what the model calls t1, t2, t3. Copying to and from pinned
  /// memory is a part of copy in and copy out.
  SynchronousTimes run_synchronously(std::span<const Collection> collections, std::span<const Event> after = {});
  /// The shortest that each step took in some synchronous runs: what else the machine does is left out.
  std::vector<CollectionTimes> shortest_times(std::span<const Collection> collections);

 private:
  /// A queue and its slot.
  struct Lane {
    MemoryPtr memory;
    std::unique_ptr<PinnedMemory> pinned;  // as the memory
    std::unique_ptr<Queue> queue;          // last: gone first
    const Collection* busy = nullptr;
    Event copied_in;
    Event computed;
    Event copied_out;
    std::span<const std::byte> out;  // where it was copied to
  };

  Pipeline() = default;
  /// Puts the steps of a collection into the queue of a lane. `step_over` is called after each.
  void begin(Lane& lane, const Collection& collection, std::span<const Event> compute_after,
             const std::function<void(int step)>& step_over) const;
  /// Waits for the collection of a lane, if there is one, and hands on its output.
  static void end(Lane& lane);

  std::uint64_t alignment_ = slot_alignment;
  std::unique_ptr<Counted> pinned_;  // the bytes of all lanes
  std::vector<Lane> lanes_;
};

/// Parts of the whole that are run first, to find the rates: a small one and a larger one.
inline constexpr std::array<std::uint64_t, 2> measured_shares = {128, 32};
/// Runs such collections, and gives the rates that explain what they took (all 0 unless they are two); unset when there
/// is no room for a slot.
[[nodiscard]] std::optional<StepRates> measured_rates(Device& device, std::span<const Collection> collections,
                                                      const Context& context);
/// Bytes of a slot for any of them.
[[nodiscard]] std::uint64_t largest_slot(std::span<const Collection> collections, const Facts& facts);

/// The report of one device but for the kernel and the measured Tp.
[[nodiscard]] PipelineReport report_of(const StepRates& rates, std::span<const Collection> collections,
                                       const SynchronousTimes& synchronous, int queues, std::uint64_t slot_bytes);
/// Adds the report of a device that works at the same time: the one that takes longest is waited for.
void add_beside(PipelineReport& all, const PipelineReport& device);
/// Adds the report of what is done afterwards.
void add_after(PipelineReport& all, const PipelineReport& next);

}  // namespace polyad::gpu
