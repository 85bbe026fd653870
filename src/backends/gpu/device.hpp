// SPDX-License-Identifier: MIT
/// \file A device that runs kernels compiled at run time: what OpenCL and CUDA have in common, no more. Whoever uses it
/// does not know which of them is behind it. Design: docs/design/0007-gpu.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace polyad::gpu {

/// How a number is added to memory that other work-items add to as well, best first.
enum class Atomics : std::uint8_t {
  native,    ///< one instruction of the device
  exchange,  ///< a loop of exchanges (sums only): what every OpenCL 1.2 device can do
};

/// What is known of a device.
struct Facts {
  std::string name;            ///< how users call it: "opencl:0", "cuda:0"
  std::string backend;         ///< "opencl", "cuda"
  std::string description;     ///< the vendor's name of it, the driver
  std::uint32_t number = 0;    ///< the driver's
  std::string place;           ///< on the bus: "0000:3b:00", whichever driver tells it; empty when unknown
  bool is_gpu = false;         ///< else a CPU that pretends (PoCL)
  bool shares_memory = false;  ///< with the host: a GPU on the processor's chip
  bool has_f64 = false;
  Atomics atomics_f32 = Atomics::exchange;
  Atomics atomics_f64 = Atomics::exchange;
  std::uint32_t compute_units = 1;
  std::uint32_t largest_group = 256;     ///< work-items of a group; at most 256 are used
  std::uint64_t local_bytes = 32768;     ///< memory of a group; at most 32 KiB are used
  std::uint64_t cache_bytes = 0;         ///< last level of cache; 0 when unknown
  std::uint64_t memory_bytes = 0;        ///< that a program may use, a limit of the user's included
  std::uint64_t largest_allocation = 0;  ///< of one Memory
  std::uint64_t offset_alignment = 128;  ///< of a View that a kernel is given
};

/// A piece of device memory; freed with the last owner.
class Memory {
 public:
  virtual ~Memory() = default;
  [[nodiscard]] virtual std::uint64_t bytes() const = 0;
};
using MemoryPtr = std::shared_ptr<Memory>;

/// Memory of the host that copies can run from and to while other things run.
class PinnedMemory {
 public:
  virtual ~PinnedMemory() = default;
  [[nodiscard]] virtual std::byte* data() const = 0;
  [[nodiscard]] virtual std::uint64_t bytes() const = 0;
};

/// Device memory from a byte on (a multiple of Facts::offset_alignment when a kernel is given it).
struct View {
  MemoryPtr memory;
  std::uint64_t offset = 0;
};

/// When something happened on the device, in nanoseconds of one clock per device.
struct EventTimes {
  std::uint64_t queued = 0;
  std::uint64_t start = 0;
  std::uint64_t end = 0;
};

/// Something that was put into a queue. Copies are cheap; an empty one is over already.
class EventBody {
 public:
  virtual ~EventBody() = default;
  /// Returns when it is over; an Error when it failed.
  virtual void wait() = 0;
  /// After wait().
  [[nodiscard]] virtual EventTimes times() = 0;
};
using Event = std::shared_ptr<EventBody>;

/// A function of a compiled program. One handle serves one host thread at a time.
class Kernel {
 public:
  virtual ~Kernel() = default;
};
using KernelPtr = std::shared_ptr<Kernel>;

/// Work-groups and the work-items of each; the second direction is 1 unless said otherwise.
struct Grid {
  std::array<std::uint64_t, 2> groups = {1, 1};
  std::array<std::uint32_t, 2> items = {1, 1};
};

/// What a kernel is called with: memory, or a number.
using Argument = std::variant<View, std::uint32_t, std::uint64_t, float, double>;

/// What runs one after the other. Different queues run side by side; `after` is what must be over before.
/// Nothing is copied when a call returns: sources and targets on the host must live until the event is over.
class Queue {
 public:
  virtual ~Queue() = default;
  virtual Event write(const View& to, std::span<const std::byte> from, std::span<const Event> after = {},
                      std::string_view label = "copy in") = 0;
  virtual Event read(std::span<std::byte> to, const View& from, std::span<const Event> after = {},
                     std::string_view label = "copy out") = 0;
  /// Sets bytes to 0.
  virtual Event clear(const View& to, std::uint64_t bytes, std::span<const Event> after = {}) = 0;
  virtual Event launch(Kernel& kernel, const Grid& grid, std::span<const Argument> arguments,
                       std::span<const Event> after = {}, std::string_view label = "kernel") = 0;
  /// Begins what was put in, if the driver had been waiting for more. Called by whoever makes another queue wait.
  virtual void flush() = 0;
  /// Returns when all is over.
  virtual void finish() = 0;
};

/// A name and a value for the compiler: -D name=value.
using Define = std::pair<std::string, std::string>;

/// Who keeps on a device what could be copied there again.
class Tenant {
 public:
  virtual ~Tenant() = default;
  /// Gives that up unless it is being used; whether there was something. Called by any thread.
  virtual bool give_up() = 0;
};

/// The tenants of a device. Thread-safe.
class Tenants {
 public:
  void add(Tenant& tenant);
  void remove(const Tenant& tenant);
  /// Makes one that is idle, other than who asks, give up what it keeps; false when there is none.
  [[nodiscard]] bool others_give_up(const Tenant& asks);

 private:
  std::mutex mutex_;
  std::vector<Tenant*> all_;
};

/// A device that was opened.
class Device {
 public:
  virtual ~Device() = default;
  /// Who keeps something on it.
  [[nodiscard]] Tenants& tenants() { return tenants_; }
  [[nodiscard]] virtual const Facts& facts() const = 0;
  /// Null when the device has no room: a caller that can do with less tries again.
  [[nodiscard]] virtual MemoryPtr allocate(std::uint64_t bytes) = 0;
  [[nodiscard]] virtual std::unique_ptr<PinnedMemory> pin(std::uint64_t bytes) = 0;
  [[nodiscard]] virtual std::unique_ptr<Queue> make_queue() = 0;
  /// The function of a text of src/device (`unit` is its name there), compiled with the defines; the binary comes from
  /// the cache when it was compiled before. Error with the compiler's words when it does not compile.
  [[nodiscard]] virtual KernelPtr kernel(std::string_view unit, std::string_view function,
                                         std::span<const Define> defines) = 0;
  /// How many texts were compiled since it was opened; those from the cache do not count.
  [[nodiscard]] virtual std::uint64_t compilations() const { return 0; }

 private:
  Tenants tenants_;
};
using DevicePtr = std::shared_ptr<Device>;

}  // namespace polyad::gpu
