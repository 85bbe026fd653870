// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "backends/gpu/driver.hpp"
#include "backends/gpu/opencl/objects.hpp"
#include "polyad/error.hpp"

namespace polyad::gpu::opencl {

namespace {

// Of extensions that Debian's headers do not name.
constexpr cl_device_info single_fp_atomics = 0x4231;  // CL_DEVICE_SINGLE_FP_ATOMIC_CAPABILITIES_EXT
constexpr cl_device_info double_fp_atomics = 0x4232;  // CL_DEVICE_DOUBLE_FP_ATOMIC_CAPABILITIES_EXT
constexpr cl_ulong global_fp_add = 1U << 1U;          // CL_DEVICE_GLOBAL_FP_ATOMIC_ADD_EXT
constexpr cl_device_info nvidia_major = 0x4000;       // CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV
constexpr cl_device_info pci_bus_info = 0x410F;       // CL_DEVICE_PCI_BUS_INFO_KHR

/// The device's answer of a plain type; 0 when it does not know the question.
template <class T>
T answer(const Api& api, cl_device_id id, cl_device_info what) {
  T value = {};
  return api.clGetDeviceInfo(id, what, sizeof value, &value, nullptr) == CL_SUCCESS ? value : T{};
}

std::string text(const Api& api, cl_device_id id, cl_device_info what) {
  std::size_t bytes = 0;
  if (api.clGetDeviceInfo(id, what, 0, nullptr, &bytes) != CL_SUCCESS || bytes == 0) return {};
  std::string value(bytes, '\0');
  if (api.clGetDeviceInfo(id, what, bytes, value.data(), nullptr) != CL_SUCCESS) return {};
  value.resize(value.find('\0') == std::string::npos ? bytes : value.find('\0'));
  return value;
}

/// How the preludes add atomically: the values of PD_ATOMIC_F32 and PD_ATOMIC_F64 (src/device/README.md).
struct AtomicKinds {
  int f32 = 0;
  int f64 = 0;
};

bool has_extension(const std::string& all, std::string_view name) {
  return fmt::format(" {} ", all).find(fmt::format(" {} ", name)) != std::string::npos;
}

AtomicKinds atomic_kinds(const Api& api, cl_device_id id) {
  const std::string extensions = text(api, id, CL_DEVICE_EXTENSIONS);
  if (has_extension(extensions, "cl_nv_device_attribute_query")) {
    const auto major = answer<cl_uint>(api, id, nvidia_major);
    return {major >= 2 ? 1 : 0, major >= 6 ? 1 : 0};
  }
  if (!has_extension(extensions, "cl_ext_float_atomics")) return {};
  return {(answer<cl_ulong>(api, id, single_fp_atomics) & global_fp_add) != 0 ? 2 : 0,
          (answer<cl_ulong>(api, id, double_fp_atomics) & global_fp_add) != 0 ? 2 : 0};
}

/// Devices of all platforms in the order of the drivers; which platforms there are that have none.
struct DeviceIds {
  std::vector<cl_device_id> all;
  std::string idle_platforms;  ///< "Portable Computing Language (CL_DEVICE_NOT_FOUND)"
};

DeviceIds device_ids(const Api& api) {
  cl_uint count = 0;
  if (api.clGetPlatformIDs(0, nullptr, &count) != CL_SUCCESS || count == 0) return {};
  std::vector<cl_platform_id> platforms(count);
  if (api.clGetPlatformIDs(count, platforms.data(), nullptr) != CL_SUCCESS) return {};
  DeviceIds found;
  for (cl_platform_id p : platforms) {
    cl_uint here = 0;
    cl_int code = api.clGetDeviceIDs(p, CL_DEVICE_TYPE_ALL, 0, nullptr, &here);
    std::vector<cl_device_id> ids(code == CL_SUCCESS ? here : 0);
    if (!ids.empty()) code = api.clGetDeviceIDs(p, CL_DEVICE_TYPE_ALL, here, ids.data(), nullptr);
    if (code == CL_SUCCESS && !ids.empty()) {
      found.all.insert(found.all.end(), ids.begin(), ids.end());
      continue;
    }
    char name[256] = {};
    (void)api.clGetPlatformInfo(p, CL_PLATFORM_NAME, sizeof name - 1, name, nullptr);
    found.idle_platforms += fmt::format("{}{} ({})", found.idle_platforms.empty() ? "" : ", ", name,
                                        code == CL_SUCCESS ? "none" : error_name(code));
  }
  return found;
}

Facts facts_of(const Api& api, cl_device_id id, std::size_t number) {
  Facts f;
  f.name = fmt::format("opencl:{}", number);
  f.backend = "opencl";
  f.number = static_cast<std::uint32_t>(number);
  f.shares_memory = answer<cl_bool>(api, id, CL_DEVICE_HOST_UNIFIED_MEMORY) != CL_FALSE;
  f.description = fmt::format("{}, driver {}", text(api, id, CL_DEVICE_NAME), text(api, id, CL_DRIVER_VERSION));
  f.is_gpu = (answer<cl_device_type>(api, id, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_GPU) != 0;
  const std::string extensions = text(api, id, CL_DEVICE_EXTENSIONS);
  if (has_extension(extensions, "cl_khr_pci_bus_info")) {
    struct Place {
      cl_uint domain, bus, device, function;
    };
    const auto at = answer<Place>(api, id, pci_bus_info);
    f.place = place_on_bus(at.domain, at.bus, at.device);
  }
  const AtomicKinds atomics = atomic_kinds(api, id);
  f.atomics_f32 = atomics.f32 != 0 ? Atomics::native : Atomics::exchange;
  f.atomics_f64 = atomics.f64 != 0 ? Atomics::native : Atomics::exchange;
  // Doubles are added with 64-bit exchanges: without those they would be half there.
  f.has_f64 = answer<cl_device_fp_config>(api, id, CL_DEVICE_DOUBLE_FP_CONFIG) != 0 &&
              (atomics.f64 != 0 || has_extension(extensions, "cl_khr_int64_base_atomics"));
  f.compute_units = std::max<cl_uint>(1, answer<cl_uint>(api, id, CL_DEVICE_MAX_COMPUTE_UNITS));
  f.largest_group = static_cast<std::uint32_t>(
      std::min<std::size_t>(f.largest_group, answer<std::size_t>(api, id, CL_DEVICE_MAX_WORK_GROUP_SIZE)));
  f.local_bytes = std::min<std::uint64_t>(f.local_bytes, answer<cl_ulong>(api, id, CL_DEVICE_LOCAL_MEM_SIZE));
  f.memory_bytes = answer<cl_ulong>(api, id, CL_DEVICE_GLOBAL_MEM_SIZE);
  f.cache_bytes = answer<cl_ulong>(api, id, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE);
  f.largest_allocation = answer<cl_ulong>(api, id, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  const auto bits = answer<cl_uint>(api, id, CL_DEVICE_MEM_BASE_ADDR_ALIGN);
  f.offset_alignment = std::max<std::uint64_t>(1, bits / 8);
  return f;
}

class ClDevice final : public Device {
 public:
  /// \param memory that the device has
  ClDevice(SharedPtr shared, std::uint64_t memory, const DeviceOptions& options)
      : shared_(std::move(shared)),
        count_(std::make_shared<MemoryCount>(shared_->facts.memory_bytes, count_of_all(shared_->facts, memory))),
        cache_(options.cache),
        service_(make_command_queue(*shared_)) {}

  [[nodiscard]] const Facts& facts() const override { return shared_->facts; }
  [[nodiscard]] MemoryPtr allocate(std::uint64_t bytes) override;
  [[nodiscard]] std::unique_ptr<PinnedMemory> pin(std::uint64_t bytes) override {
    return std::make_unique<ClPinned>(shared_, bytes);
  }
  [[nodiscard]] std::unique_ptr<Queue> make_queue() override { return std::make_unique<ClQueue>(shared_); }
  [[nodiscard]] KernelPtr kernel(std::string_view unit, std::string_view function,
                                 std::span<const Define> defines) override;
  [[nodiscard]] std::uint64_t compilations() const override { return compilations_.load(); }

 private:
  [[nodiscard]] std::shared_ptr<ClProgram> build(const std::string& source, std::string_view unit);
  [[nodiscard]] Handle<cl_program> from_binary(const std::string& binary) const;
  [[nodiscard]] std::string binary_of(cl_program program) const;
  [[nodiscard]] std::string log_of(cl_program program) const;
  [[nodiscard]] std::string options() const {
    const AtomicKinds kinds = atomic_kinds(*shared_->api, shared_->id);
    return kinds.f32 == 2 || kinds.f64 == 2 ? "-cl-std=CL3.0" : "-cl-std=CL1.2";
  }

  SharedPtr shared_;
  std::shared_ptr<MemoryCount> count_;
  ProgramCache cache_;
  Programs<ClProgram> programs_;
  std::atomic<std::uint64_t> compilations_{0};
  Handle<cl_command_queue> service_;  // for what the device does by itself
};

MemoryPtr ClDevice::allocate(std::uint64_t bytes) {
  const std::uint64_t room = std::max<std::uint64_t>(bytes, 1);  // OpenCL has no empty buffers
  if (room > shared_->facts.largest_allocation || !count_->take(room)) return nullptr;
  auto taken = std::make_unique<Taken>(count_, room);
  const Api& api = *shared_->api;
  cl_int code = CL_SUCCESS;
  Handle<cl_mem> buffer(api.clCreateBuffer(shared_->context.get(), CL_MEM_READ_WRITE, room, nullptr, &code),
                        api.clReleaseMemObject);
  // Drivers allocate when memory is first used; moving it to the device makes them say now that there is no room.
  cl_mem object = buffer.get();
  if (code == CL_SUCCESS)
    code = api.clEnqueueMigrateMemObjects(service_.get(), 1, &object, CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED, 0,
                                          nullptr, nullptr);
  if (code == CL_SUCCESS) code = api.clFinish(service_.get());
  if (code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_RESOURCES || code == CL_OUT_OF_HOST_MEMORY ||
      code == CL_INVALID_BUFFER_SIZE)
    return nullptr;
  check(code, fmt::format("allocating {} bytes on {}", bytes, shared_->facts.name));
  return std::make_shared<ClMemory>(shared_, std::move(taken), std::move(buffer));
}

KernelPtr ClDevice::kernel(std::string_view unit, std::string_view function, std::span<const Define> defines) {
  const AtomicKinds kinds = atomic_kinds(*shared_->api, shared_->id);
  std::vector<Define> all(defines.begin(), defines.end());
  all.emplace_back("PD_ATOMIC_F32", std::to_string(kinds.f32));
  all.emplace_back("PD_ATOMIC_F64", std::to_string(kinds.f64));
  const std::string source = assemble("opencl", unit, all);
  return std::make_shared<ClKernel>(*shared_, programs_.get(source, [&] { return build(source, unit); }), function);
}

std::shared_ptr<ClProgram> ClDevice::build(const std::string& source, std::string_view unit) {
  const Api& api = *shared_->api;
  const std::string build_options = options();
  const std::string key = program_key(source, build_options, text(api, shared_->id, CL_DEVICE_NAME),
                                      text(api, shared_->id, CL_DRIVER_VERSION));
  auto result = std::make_shared<ClProgram>();
  result->unit = unit;
  if (const std::string binary = cache_.load(key); !binary.empty()) {
    result->program = from_binary(binary);
    if (result->program.get() != nullptr) return result;
  }
  const char* begin = source.data();
  const std::size_t length = source.size();
  cl_int code = CL_SUCCESS;
  result->program = Handle<cl_program>(api.clCreateProgramWithSource(shared_->context.get(), 1, &begin, &length, &code),
                                       api.clReleaseProgram);
  check(code, fmt::format("making the program {}", unit));
  ++compilations_;
  code = api.clBuildProgram(result->program.get(), 1, &shared_->id, build_options.c_str(), nullptr, nullptr);
  if (code == CL_BUILD_PROGRAM_FAILURE || code == CL_COMPILE_PROGRAM_FAILURE)
    throw Error(ErrorKind::limit, fmt::format("the kernels of {}.h do not compile on {}: {}", unit, shared_->facts.name,
                                              log_of(result->program.get())));
  check(code, fmt::format("compiling the kernels of {}.h", unit));
  // PoCL compiles every kernel of the program once more to hand out its binary.
  if (cache_.keeps()) cache_.store(key, binary_of(result->program.get()));
  return result;
}

/// Null when the driver does not take it any more.
Handle<cl_program> ClDevice::from_binary(const std::string& binary) const {
  const Api& api = *shared_->api;
  const auto* bytes = reinterpret_cast<const unsigned char*>(binary.data());
  const std::size_t length = binary.size();
  cl_int status = CL_SUCCESS;
  cl_int code = CL_SUCCESS;
  Handle<cl_program> program(
      api.clCreateProgramWithBinary(shared_->context.get(), 1, &shared_->id, &length, &bytes, &status, &code),
      api.clReleaseProgram);
  if (code != CL_SUCCESS || status != CL_SUCCESS ||
      api.clBuildProgram(program.get(), 1, &shared_->id, "", nullptr, nullptr) != CL_SUCCESS)
    return {};
  return program;
}

std::string ClDevice::binary_of(cl_program program) const {
  const Api& api = *shared_->api;
  std::size_t bytes = 0;
  if (api.clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, nullptr) != CL_SUCCESS) return {};
  std::string binary(bytes, '\0');
  char* to = binary.data();
  if (api.clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof to, static_cast<void*>(&to), nullptr) != CL_SUCCESS)
    return {};
  return binary;
}

std::string ClDevice::log_of(cl_program program) const {
  const Api& api = *shared_->api;
  std::size_t bytes = 0;
  if (api.clGetProgramBuildInfo(program, shared_->id, CL_PROGRAM_BUILD_LOG, 0, nullptr, &bytes) != CL_SUCCESS)
    return "the driver gives no reason";
  std::string log(bytes, '\0');
  if (api.clGetProgramBuildInfo(program, shared_->id, CL_PROGRAM_BUILD_LOG, bytes, log.data(), nullptr) != CL_SUCCESS)
    return "the driver gives no reason";
  log.resize(std::min(log.find('\0'), log.size()));
  while (!log.empty() && (log.back() == '\n' || log.back() == ' ')) log.pop_back();
  return log;
}

}  // namespace

cl_mem ClMemory::from(std::uint64_t offset) {
  if (offset == 0) return buffer_.get();
  const std::uint64_t step = shared_->facts.offset_alignment;
  if (offset >= bytes() || offset % step != 0)
    throw usage_error(fmt::format("a kernel is given device memory from byte {} of {} on; {} wants multiples of {}",
                                  offset, bytes(), shared_->facts.name, step));
  const std::scoped_lock lock(mutex_);
  Handle<cl_mem>& view = views_[offset];
  if (view.get() == nullptr) {
    const cl_buffer_region region = {offset, bytes() - offset};
    cl_int code = CL_SUCCESS;
    view = Handle<cl_mem>(
        shared_->api->clCreateSubBuffer(buffer_.get(), CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &code),
        shared_->api->clReleaseMemObject);
    check(code, fmt::format("taking device memory from byte {} on", offset));
  }
  return view.get();
}

ClPinned::ClPinned(SharedPtr shared, std::uint64_t bytes) : shared_(std::move(shared)), bytes_(bytes) {
  const Api& api = *shared_->api;
  queue_ = make_command_queue(*shared_);
  const std::size_t room = std::max<std::uint64_t>(bytes, 1);
  const std::string what = fmt::format("pinning {} bytes of the host", bytes);
  cl_int code = CL_SUCCESS;
  buffer_ = Handle<cl_mem>(
      api.clCreateBuffer(shared_->context.get(), CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, room, nullptr, &code),
      api.clReleaseMemObject);
  check(code, what);
  data_ = static_cast<std::byte*>(api.clEnqueueMapBuffer(
      queue_.get(), buffer_.get(), CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, room, 0, nullptr, nullptr, &code));
  check(code, what);
}

ClPinned::~ClPinned() {
  (void)shared_->api->clEnqueueUnmapMemObject(queue_.get(), buffer_.get(), data_, 0, nullptr, nullptr);
  (void)shared_->api->clFinish(queue_.get());
}

ClKernel::ClKernel(const Shared& shared, std::shared_ptr<ClProgram> program, std::string_view function)
    : program_(std::move(program)), name_(function) {
  const Api& api = *shared.api;
  cl_int code = CL_SUCCESS;
  kernel_ = Handle<cl_kernel>(api.clCreateKernel(program_->program.get(), name_.c_str(), &code), api.clReleaseKernel);
  if (code == CL_INVALID_KERNEL_NAME)
    throw usage_error(fmt::format("there is no kernel '{}' in {}.h", function, program_->unit));
  check(code, fmt::format("making kernel {}", function));
  std::size_t group = 0;
  cl_ulong local = 0;
  cl_uint arguments = 0;
  api.clGetKernelWorkGroupInfo(kernel_.get(), shared.id, CL_KERNEL_WORK_GROUP_SIZE, sizeof group, &group, nullptr);
  api.clGetKernelWorkGroupInfo(kernel_.get(), shared.id, CL_KERNEL_LOCAL_MEM_SIZE, sizeof local, &local, nullptr);
  check(api.clGetKernelInfo(kernel_.get(), CL_KERNEL_NUM_ARGS, sizeof arguments, &arguments, nullptr),
        fmt::format("asking about kernel {}", function));
  largest_group_ = std::min<std::uint64_t>(group, shared.facts.largest_group);
  argument_count_ = arguments;
  // PoCL gives a group as much as it asks for; a GPU does not.
  if (local > shared.facts.local_bytes)
    throw usage_error(fmt::format("kernel {} wants {} bytes of local memory, {} has {}", function, local,
                                  shared.facts.name, shared.facts.local_bytes));
}

Found find() {
  Found found;
  const ApiPtr api = load(found.why_none);
  if (!api) return found;
  const DeviceIds ids = device_ids(*api);
  for (std::size_t i = 0; i < ids.all.size(); ++i) found.devices.push_back(facts_of(*api, ids.all[i], i));
  if (!ids.all.empty()) return found;
  found.why_none = ids.idle_platforms.empty()
                       ? "the OpenCL library knows no driver; install your vendor's or Debian's pocl-opencl-icd (CPU)"
                       : fmt::format("OpenCL drivers are installed but give no device: {}", ids.idle_platforms);
  return found;
}

DevicePtr open(std::uint32_t number, const DeviceOptions& options) {
  std::string why_not;
  auto shared = std::make_shared<Shared>();
  shared->api = load(why_not);
  if (!shared->api) throw Error(ErrorKind::input, why_not);
  const std::vector<cl_device_id> ids = device_ids(*shared->api).all;
  if (number >= ids.size())
    throw Error(ErrorKind::input, fmt::format("there is no device opencl:{}; OpenCL has {}", number, ids.size()));
  shared->id = ids[number];
  shared->facts = facts_of(*shared->api, shared->id, number);
  const std::uint64_t memory = shared->facts.memory_bytes;
  if (options.memory != 0) {
    shared->facts.memory_bytes = std::min(shared->facts.memory_bytes, options.memory);
    shared->facts.largest_allocation = std::min(shared->facts.largest_allocation, options.memory);
  }
  cl_int code = CL_SUCCESS;
  shared->context = Handle<cl_context>(shared->api->clCreateContext(nullptr, 1, &shared->id, nullptr, nullptr, &code),
                                       shared->api->clReleaseContext);
  check(code, fmt::format("opening {}", shared->facts.name));
  return std::make_shared<ClDevice>(std::move(shared), memory, options);
}

}  // namespace polyad::gpu::opencl
