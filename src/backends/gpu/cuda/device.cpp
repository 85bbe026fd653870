// SPDX-License-Identifier: MIT
/// \file The device interface over CUDA's driver.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <utility>

#include "backends/gpu/cuda/api.hpp"
#include "backends/gpu/driver.hpp"
#include "backends/gpu/memory_count.hpp"
#include "backends/gpu/program.hpp"
#include "polyad/error.hpp"

namespace polyad::gpu::cuda {

namespace {

/// What all objects of one device share. The primary context is the one that other libraries of the process use too.
struct Shared {
  ApiPtr api;
  DeviceNumber number = 0;
  ContextHandle context = nullptr;
  int architecture = 0;  // 90: sm_90
  Facts facts;

  Shared() = default;
  ~Shared() {
    if (context != nullptr) (void)api->cuDevicePrimaryCtxRelease_v2(number);
  }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
};
using SharedPtr = std::shared_ptr<const Shared>;

/// Makes the device's context the thread's for as long as it lives; the caller's own comes back after. When that fails
/// the next call says so.
class Current {
 public:
  explicit Current(const Shared& shared)
      : shared_(shared), pushed_(shared.api->cuCtxPushCurrent_v2(shared.context) == 0) {}
  ~Current() {
    ContextHandle popped = nullptr;
    if (pushed_) (void)shared_.api->cuCtxPopCurrent_v2(&popped);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  const Shared& shared_;
  bool pushed_;
};

/// An event of the driver.
class Mark {
 public:
  explicit Mark(SharedPtr shared) : shared_(std::move(shared)) {
    check(*shared_->api, shared_->api->cuEventCreate(&event_, 0), "making an event");
  }
  ~Mark() {
    const Current current(*shared_);
    (void)shared_->api->cuEventDestroy_v2(event_);
  }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;
  [[nodiscard]] EventHandle get() const { return event_; }
  [[nodiscard]] const SharedPtr& shared() const { return shared_; }

 private:
  SharedPtr shared_;
  EventHandle event_ = nullptr;
};

/// The zero of a device's clock. Differences of events are floats of milliseconds: over 16 s they are good to a
/// microsecond, so that a new zero is set then, whose distance from the first is known.
class Clock {
 public:
  struct Zero {
    std::shared_ptr<Mark> mark;
    std::uint64_t nanoseconds = 0;  // since the first
  };

  explicit Clock(SharedPtr shared) : shared_(std::move(shared)) {
    const Current current(*shared_);
    check(*shared_->api, shared_->api->cuStreamCreate(&stream_, stream_non_blocking), "making a queue");
    set(0);
  }
  ~Clock() {
    const Current current(*shared_);
    (void)shared_->api->cuStreamDestroy_v2(stream_);
  }
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;

  /// With the device's context current.
  Zero zero() {
    const std::scoped_lock lock(mutex_);
    if (std::chrono::steady_clock::now() - since_ > std::chrono::seconds(16)) {
      const Zero old = zero_;
      set(0);
      zero_.nanoseconds = old.nanoseconds + between(*old.mark, *zero_.mark);
    }
    return zero_;
  }
  [[nodiscard]] static std::uint64_t between(const Mark& a, const Mark& b) {
    float milliseconds = 0;
    check(*a.shared()->api, a.shared()->api->cuEventElapsedTime(&milliseconds, a.get(), b.get()), "asking for times");
    return milliseconds <= 0 ? 0 : static_cast<std::uint64_t>(static_cast<double>(milliseconds) * 1e6);
  }

 private:
  void set(std::uint64_t nanoseconds) {
    auto mark = std::make_shared<Mark>(shared_);
    check(*shared_->api, shared_->api->cuEventRecord(mark->get(), stream_), "setting the clock");
    check(*shared_->api, shared_->api->cuEventSynchronize(mark->get()), "setting the clock");
    zero_ = {std::move(mark), nanoseconds};
    since_ = std::chrono::steady_clock::now();
  }

  SharedPtr shared_;
  StreamHandle stream_ = nullptr;
  std::mutex mutex_;
  Zero zero_;
  std::chrono::steady_clock::time_point since_;
};

class CudaMemory final : public Memory {
 public:
  CudaMemory(SharedPtr shared, std::unique_ptr<Taken> taken, DevicePointer pointer)
      : shared_(std::move(shared)), taken_(std::move(taken)), pointer_(pointer) {}
  ~CudaMemory() override {
    // Waits for what still uses it, as the driver promises.
    const Current current(*shared_);
    (void)shared_->api->cuMemFree_v2(pointer_);
  }
  CudaMemory(const CudaMemory&) = delete;
  CudaMemory& operator=(const CudaMemory&) = delete;
  [[nodiscard]] std::uint64_t bytes() const override { return taken_->bytes(); }
  [[nodiscard]] DevicePointer pointer() const { return pointer_; }

 private:
  SharedPtr shared_;
  std::unique_ptr<Taken> taken_;
  DevicePointer pointer_;
};

class CudaPinned final : public PinnedMemory {
 public:
  CudaPinned(SharedPtr shared, std::uint64_t bytes) : shared_(std::move(shared)), bytes_(bytes) {
    const Current current(*shared_);
    void* data = nullptr;
    check(*shared_->api, shared_->api->cuMemHostAlloc(&data, std::max<std::uint64_t>(bytes, 1), host_portable),
          fmt::format("pinning {} bytes of the host", bytes));
    data_ = static_cast<std::byte*>(data);
  }
  ~CudaPinned() override {
    const Current current(*shared_);
    (void)shared_->api->cuMemFreeHost(data_);
  }
  CudaPinned(const CudaPinned&) = delete;
  CudaPinned& operator=(const CudaPinned&) = delete;
  [[nodiscard]] std::byte* data() const override { return data_; }
  [[nodiscard]] std::uint64_t bytes() const override { return bytes_; }

 private:
  SharedPtr shared_;
  std::uint64_t bytes_;
  std::byte* data_ = nullptr;
};

/// A command: marks before and after it.
class CudaEvent final : public EventBody {
 public:
  CudaEvent(SharedPtr shared, Clock::Zero zero, std::string label)
      : shared_(std::move(shared)), zero_(std::move(zero)), label_(std::move(label)), begin_(shared_), end_(shared_) {}
  void wait() override {
    const Current current(*shared_);
    check(*shared_->api, shared_->api->cuEventSynchronize(end_.get()), label_);
  }
  [[nodiscard]] EventTimes times() override {
    const Current current(*shared_);
    const std::uint64_t start = zero_.nanoseconds + Clock::between(*zero_.mark, begin_);
    return {start, start, zero_.nanoseconds + Clock::between(*zero_.mark, end_)};
  }
  [[nodiscard]] const Mark& begin() const { return begin_; }
  [[nodiscard]] const Mark& end() const { return end_; }
  [[nodiscard]] const Shared* shared() const { return shared_.get(); }

 private:
  SharedPtr shared_;
  Clock::Zero zero_;
  std::string label_;
  Mark begin_;
  Mark end_;
};

/// A module of the driver; kernels keep it alive.
struct CudaProgram {
  SharedPtr shared;
  std::string unit;
  ModuleHandle module = nullptr;

  CudaProgram(SharedPtr s, std::string_view u) : shared(std::move(s)), unit(u) {}
  ~CudaProgram() {
    const Current current(*shared);
    (void)shared->api->cuCtxSynchronize();  // its kernels may still run
    if (module != nullptr) (void)shared->api->cuModuleUnload(module);
  }
  CudaProgram(const CudaProgram&) = delete;
  CudaProgram& operator=(const CudaProgram&) = delete;
};

class CudaKernel final : public Kernel {
 public:
  CudaKernel(std::shared_ptr<CudaProgram> program, std::string_view function)
      : program_(std::move(program)), name_(function) {
    const Shared& shared = *program_->shared;
    const Current current(shared);
    const Result code = shared.api->cuModuleGetFunction(&function_, program_->module, name_.c_str());
    if (code == not_found) throw usage_error(fmt::format("there is no kernel '{}' in {}.h", name_, program_->unit));
    check(*shared.api, code, fmt::format("making kernel {}", name_));
    const auto ask = [&](int what) {
      int value = 0;
      return shared.api->cuFuncGetAttribute(&value, what, function_) == 0 ? value : 0;
    };
    largest_group_ = std::min(shared.facts.largest_group, static_cast<std::uint32_t>(ask(function_largest_group)));
    if (const auto local = static_cast<std::uint64_t>(ask(function_shared_bytes)); local > shared.facts.local_bytes)
      throw usage_error(fmt::format("kernel {} wants {} bytes of local memory, {} has {}", name_, local,
                                    shared.facts.name, shared.facts.local_bytes));
  }
  [[nodiscard]] FunctionHandle get() const { return function_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::uint32_t largest_group() const { return largest_group_; }

 private:
  std::shared_ptr<CudaProgram> program_;
  std::string name_;
  FunctionHandle function_ = nullptr;
  std::uint32_t largest_group_ = 0;
};

/// A stream of the driver.
class CudaQueue final : public Queue {
 public:
  CudaQueue(SharedPtr shared, std::shared_ptr<Clock> clock) : shared_(std::move(shared)), clock_(std::move(clock)) {
    const Current current(*shared_);
    check(*shared_->api, shared_->api->cuStreamCreate(&stream_, stream_non_blocking), "making a queue");
  }
  ~CudaQueue() override {
    // Callers free what commands still use: destroying a stream does not wait for them.
    const Current current(*shared_);
    (void)shared_->api->cuStreamSynchronize(stream_);
    (void)shared_->api->cuStreamDestroy_v2(stream_);
  }
  CudaQueue(const CudaQueue&) = delete;
  CudaQueue& operator=(const CudaQueue&) = delete;

  Event write(const View& to, std::span<const std::byte> from, std::span<const Event> after,
              std::string_view label) override {
    check_range(to, from.size(), label);
    return put(after, label, [&] {
      return from.empty() ? 0 : shared_->api->cuMemcpyHtoDAsync_v2(pointer_of(to), from.data(), from.size(), stream_);
    });
  }
  Event read(std::span<std::byte> to, const View& from, std::span<const Event> after, std::string_view label) override {
    check_range(from, to.size(), label);
    return put(after, label, [&] {
      return to.empty() ? 0 : shared_->api->cuMemcpyDtoHAsync_v2(to.data(), pointer_of(from), to.size(), stream_);
    });
  }
  Event clear(const View& to, std::uint64_t bytes, std::span<const Event> after) override {
    check_range(to, bytes, "clear");
    return put(after, "clear",
               [&] { return bytes == 0 ? 0 : shared_->api->cuMemsetD8Async(pointer_of(to), 0, bytes, stream_); });
  }
  Event launch(Kernel& kernel, const Grid& grid, std::span<const Argument> arguments, std::span<const Event> after,
               std::string_view label) override;
  void flush() override {}  // the driver begins by itself
  void finish() override {
    const Current current(*shared_);
    check(*shared_->api, shared_->api->cuStreamSynchronize(stream_), "waiting for a queue");
  }

 private:
  [[nodiscard]] static DevicePointer pointer_of(const View& view) {
    return view.memory ? dynamic_cast<CudaMemory&>(*view.memory).pointer() + view.offset : 0;
  }

  /// Puts in a command: waits, mark, command, mark.
  template <class Command>
  Event put(std::span<const Event> after, std::string_view label, const Command& command) {
    const Current current(*shared_);
    const Api& api = *shared_->api;
    for (const Event& e : after) {
      if (!e) continue;
      if (const auto* mine = dynamic_cast<const CudaEvent*>(e.get());
          mine != nullptr && mine->shared() == shared_.get())
        check(api, api.cuStreamWaitEvent(stream_, mine->end().get(), 0), "waiting for an event");
      else
        e->wait();  // of another device
    }
    auto event = std::make_shared<CudaEvent>(shared_, clock_->zero(), std::string(label));
    check(api, api.cuEventRecord(event->begin().get(), stream_), label);
    check(api, command(), label);
    check(api, api.cuEventRecord(event->end().get(), stream_), label);
    return event;
  }

  SharedPtr shared_;
  std::shared_ptr<Clock> clock_;
  StreamHandle stream_ = nullptr;
};

Event CudaQueue::launch(Kernel& kernel, const Grid& grid, std::span<const Argument> arguments,
                        std::span<const Event> after, std::string_view label) {
  const auto& mine = dynamic_cast<CudaKernel&>(kernel);
  const std::uint64_t group = std::uint64_t{grid.items[0]} * grid.items[1];
  if (group == 0 || group > mine.largest_group())
    throw usage_error(fmt::format("kernel {}: groups of {} work-items, {} can have 1 to {}", mine.name(), group,
                                  shared_->facts.name, mine.largest_group()));
  if (grid.groups[0] > largest_grid_0 || grid.groups[1] > largest_grid_1)
    throw usage_error(fmt::format("kernel {}: {} x {} groups, {} can have {} x {}", mine.name(), grid.groups[0],
                                  grid.groups[1], shared_->facts.name, largest_grid_0, largest_grid_1));
  // The driver copies the values when the kernel is put in.
  std::vector<DevicePointer> pointers(arguments.size());
  std::vector<void*> values;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (const View* view = std::get_if<View>(&arguments[i])) {
      const std::uint64_t step = shared_->facts.offset_alignment;
      if (view->offset % step != 0)
        throw usage_error(fmt::format("a kernel is given device memory from byte {} on; {} wants multiples of {}",
                                      view->offset, shared_->facts.name, step));
      pointers[i] = pointer_of(*view);
      values.push_back(&pointers[i]);
    } else {
      std::visit([&](const auto& number) { values.push_back(const_cast<void*>(static_cast<const void*>(&number))); },
                 arguments[i]);
    }
  }
  return put(after, label, [&] {
    if (grid.groups[0] == 0 || grid.groups[1] == 0) return 0;
    return shared_->api->cuLaunchKernel(mine.get(), static_cast<unsigned>(grid.groups[0]),
                                        static_cast<unsigned>(grid.groups[1]), 1, grid.items[0], grid.items[1], 1, 0,
                                        stream_, values.data(), nullptr);
  });
}

class CudaDevice final : public Device {
 public:
  /// \param memory that the GPU has
  CudaDevice(SharedPtr shared, std::shared_ptr<const Compiler> compiler, std::uint64_t memory,
             const DeviceOptions& options)
      : shared_(std::move(shared)),
        compiler_(std::move(compiler)),
        count_(std::make_shared<MemoryCount>(shared_->facts.memory_bytes, count_of_all(shared_->facts, memory))),
        clock_(std::make_shared<Clock>(shared_)),
        cache_(options.cache) {}

  [[nodiscard]] const Facts& facts() const override { return shared_->facts; }
  [[nodiscard]] MemoryPtr allocate(std::uint64_t bytes) override {
    const std::uint64_t room = std::max<std::uint64_t>(bytes, 1);  // CUDA has no empty memory
    if (!count_->take(room)) return nullptr;
    auto taken = std::make_unique<Taken>(count_, room);
    const Current current(*shared_);
    DevicePointer pointer = 0;
    const Result code = shared_->api->cuMemAlloc_v2(&pointer, room);
    if (code == out_of_memory) return nullptr;
    check(*shared_->api, code, fmt::format("allocating {} bytes on {}", bytes, shared_->facts.name));
    return std::make_shared<CudaMemory>(shared_, std::move(taken), pointer);
  }
  [[nodiscard]] std::unique_ptr<PinnedMemory> pin(std::uint64_t bytes) override {
    return std::make_unique<CudaPinned>(shared_, bytes);
  }
  [[nodiscard]] std::unique_ptr<Queue> make_queue() override { return std::make_unique<CudaQueue>(shared_, clock_); }
  [[nodiscard]] KernelPtr kernel(std::string_view unit, std::string_view function,
                                 std::span<const Define> defines) override {
    const std::string source = cuda_source(unit, defines, shared_->architecture);
    return std::make_shared<CudaKernel>(programs_.get(source, [&] { return build(source, unit); }), function);
  }
  [[nodiscard]] std::uint64_t compilations() const override { return compilations_.load(); }

 private:
  [[nodiscard]] std::shared_ptr<CudaProgram> build(const std::string& source, std::string_view unit) {
    const std::string key =
        program_key(source, fmt::format("sm_{}", shared_->architecture), shared_->facts.description, compiler_->name());
    auto program = std::make_shared<CudaProgram>(shared_, unit);
    if (const std::string kept = cache_.load(key); !kept.empty() && load_module(*program, kept) == 0) return program;
    ++compilations_;
    const Compiled compiled = compiler_->compile(source, unit, shared_->architecture);
    check(*shared_->api, load_module(*program, compiled.binary), fmt::format("loading the kernels of {}.h", unit));
    cache_.store(key, compiled.binary);
    return program;
  }
  [[nodiscard]] Result load_module(CudaProgram& program, const std::string& binary) const {
    const Current current(*shared_);
    return shared_->api->cuModuleLoadDataEx(&program.module, binary.c_str(), 0, nullptr, nullptr);  // PTX ends with 0
  }

  SharedPtr shared_;
  std::shared_ptr<const Compiler> compiler_;
  std::shared_ptr<MemoryCount> count_;
  std::shared_ptr<Clock> clock_;
  ProgramCache cache_;
  Programs<CudaProgram> programs_;
  std::atomic<std::uint64_t> compilations_{0};
};

/// The version of CUDA that the driver is for: 12040 is 12.4.
int driver_version(const Api& api) {
  int version = 0;
  (void)api.cuDriverGetVersion(&version);
  return version;
}

/// What the driver says of its device of a number.
Facts facts_of(const Api& api, int number, int& architecture) {
  DeviceNumber device = 0;
  check(api, api.cuDeviceGet(&device, number), "asking for a device");
  const auto ask = [&](int what) {
    int value = 0;
    return api.cuDeviceGetAttribute(&value, what, device) == 0 ? value : 0;
  };
  char name[256] = {};
  std::size_t memory = 0;
  const int version = driver_version(api);
  check(api, api.cuDeviceGetName(name, sizeof name - 1, device), "asking for a device's name");
  check(api, api.cuDeviceTotalMem_v2(&memory, device), "asking for a device's memory");
  architecture = ask(attribute_major) * 10 + ask(attribute_minor);
  Facts f;
  f.name = fmt::format("cuda:{}", number);
  f.backend = "cuda";
  f.number = static_cast<std::uint32_t>(number);
  f.place = place_on_bus(static_cast<std::uint32_t>(ask(attribute_pci_domain)),
                         static_cast<std::uint32_t>(ask(attribute_pci_bus)),
                         static_cast<std::uint32_t>(ask(attribute_pci_device)));
  f.description =
      fmt::format("{}, sm_{}, driver for CUDA {}.{}", name, architecture, version / 1000, version % 1000 / 10);
  f.is_gpu = true;
  f.has_f64 = true;
  f.atomics_f32 = Atomics::native;
  f.atomics_f64 = architecture >= 60 ? Atomics::native : Atomics::exchange;
  f.compute_units = static_cast<std::uint32_t>(std::max(1, ask(attribute_compute_units)));
  f.cache_bytes = static_cast<std::uint64_t>(std::max(0, ask(attribute_cache_bytes)));
  f.memory_bytes = f.largest_allocation = memory;
  return f;
}

}  // namespace

std::string cuda_source(std::string_view unit, std::span<const Define> defines, int architecture) {
  std::vector<Define> all(defines.begin(), defines.end());
  all.emplace_back("PD_ATOMIC_F32", "1");
  all.emplace_back("PD_ATOMIC_F64", architecture >= 60 ? "1" : "0");
  return assemble("cuda", unit, all);
}

Found find() {
  Found found;
  const ApiPtr api = load(found.why_none);
  if (!api) return found;
  int count = 0;
  if (api->cuDeviceGetCount(&count) != 0) count = 0;
  std::string why_not;  // of the last one that cannot be used
  for (int i = 0; i < count; ++i) {
    int architecture = 0;
    try {
      Facts f = facts_of(*api, i, architecture);
      if (Compiler::find(architecture, driver_version(*api), why_not)) found.devices.push_back(std::move(f));
    } catch (const Error& e) {  // a GPU that fell off the bus must not hide the others
      why_not = e.what();
    }
  }
  if (found.devices.empty()) found.why_none = count == 0 ? "the NVIDIA driver knows no device" : why_not;
  return found;
}

DevicePtr open(std::uint32_t number, const DeviceOptions& options) {
  std::string why_not;
  auto shared = std::make_shared<Shared>();
  shared->api = load(why_not);
  if (!shared->api) throw Error(ErrorKind::input, why_not);
  int count = 0;
  check(*shared->api, shared->api->cuDeviceGetCount(&count), "counting devices");
  if (std::cmp_greater_equal(number, count))
    throw Error(ErrorKind::input, fmt::format("there is no device cuda:{}; the NVIDIA driver has {}", number, count));
  shared->facts = facts_of(*shared->api, static_cast<int>(number), shared->architecture);
  check(*shared->api, shared->api->cuDeviceGet(&shared->number, static_cast<int>(number)), "asking for a device");
  std::shared_ptr<const Compiler> compiler =
      Compiler::find(shared->architecture, driver_version(*shared->api), why_not);
  if (!compiler) throw Error(ErrorKind::input, why_not);
  const std::string what = fmt::format("opening {}", shared->facts.name);
  check(*shared->api, shared->api->cuDevicePrimaryCtxRetain(&shared->context, shared->number), what);
  std::size_t free = 0;
  std::size_t total = 0;
  {
    const Current current(*shared);
    check(*shared->api, shared->api->cuMemGetInfo_v2(&free, &total), what);
  }
  const std::uint64_t memory = shared->facts.memory_bytes;
  std::uint64_t most = std::min<std::uint64_t>(memory, free);
  if (options.memory != 0) most = std::min(most, options.memory);
  shared->facts.memory_bytes = shared->facts.largest_allocation = most;
  return std::make_shared<CudaDevice>(std::move(shared), std::move(compiler), memory, options);
}

}  // namespace polyad::gpu::cuda
