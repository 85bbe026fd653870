// SPDX-License-Identifier: MIT
/// \file The functions of CUDA's driver and of NVRTC that are used, declared here: their headers come with a toolkit of
/// gigabytes, and both libraries are opened at run time. Names, numbers and types are those of the driver's interface.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/gpu/device.hpp"

namespace polyad::gpu::cuda {

using Result = int;  ///< CUresult; 0 is success
using DeviceNumber = int;
using DevicePointer = unsigned long long;
using ContextHandle = struct ContextObject*;
using ModuleHandle = struct ModuleObject*;
using FunctionHandle = struct FunctionObject*;
using StreamHandle = struct StreamObject*;
using EventHandle = struct EventObject*;

inline constexpr Result out_of_memory = 2;          // CUDA_ERROR_OUT_OF_MEMORY
inline constexpr Result not_found = 500;            // CUDA_ERROR_NOT_FOUND
inline constexpr int attribute_compute_units = 16;  // CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
inline constexpr int attribute_pci_bus = 33;        // CU_DEVICE_ATTRIBUTE_PCI_BUS_ID
inline constexpr int attribute_pci_device = 34;     // CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID
inline constexpr int attribute_pci_domain = 50;     // CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID
inline constexpr int attribute_cache_bytes = 38;    // CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE
inline constexpr int attribute_major = 75;          // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
inline constexpr int attribute_minor = 76;          // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR
inline constexpr int function_largest_group = 0;    // CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK
inline constexpr int function_shared_bytes = 1;     // CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES
inline constexpr unsigned stream_non_blocking = 1;  // CU_STREAM_NON_BLOCKING
inline constexpr unsigned host_portable = 1;        // CU_MEMHOSTALLOC_PORTABLE
inline constexpr unsigned long long largest_grid_0 = 0x7fffffff;
inline constexpr unsigned long long largest_grid_1 = 65535;

/// Functions of libcuda.so.1.
struct Api {
#define POLYAD_CUDA(name, ...) Result (*name)(__VA_ARGS__) = nullptr;
#include "backends/gpu/cuda/functions.list"
#undef POLYAD_CUDA
};
using ApiPtr = std::shared_ptr<const Api>;

/// The driver's functions; null with a clause why when it is not there.
[[nodiscard]] ApiPtr load(std::string& why_not);

/// "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered".
[[nodiscard]] std::string error_name(const Api& api, Result code);
/// Error (limit) "CUDA: WHAT failed: ..." unless the code is 0.
void check(const Api& api, Result code, std::string_view what);

/// What NVRTC made of a source.
struct Compiled {
  std::string binary;  ///< a cubin, or PTX
  bool is_ptx = false;
};

/// What a compiler can make for a device that its driver takes, best first.
enum class Product : std::uint8_t { cubin, ptx, nothing };

/// What a version of NVRTC (12040: 12.4) that makes cubins for these architectures, ascending, can make for a device
/// (90: sm_90) with a driver of a version. A driver loads cubins of compilers up to its own major version, and
/// translates PTX of compilers up to its own version: newer PTX is another language.
/// \param why_not a clause when it is nothing
[[nodiscard]] Product product_of(int version, std::span<const int> architectures, int architecture, int driver,
                                 std::string& why_not);

/// NVRTC: compiles CUDA C++ with no driver and no GPU. Versions 13, 12 and 11.2 are looked for.
class Compiler {
 public:
  /// The first version that makes cubins for the architecture (90: sm_90) that the driver (12040: CUDA 12.4) loads,
  /// else the first whose PTX it translates. Null with a clause why when there is none.
  static std::shared_ptr<const Compiler> find(int architecture, int driver, std::string& why_not);
  ~Compiler();
  Compiler(const Compiler&) = delete;
  Compiler& operator=(const Compiler&) = delete;

  /// "NVRTC 13.4".
  [[nodiscard]] const std::string& name() const { return name_; }
  /// Architectures it makes cubins for, ascending.
  [[nodiscard]] const std::vector<int>& architectures() const { return architectures_; }
  /// A cubin for the architecture, PTX when it is newer than the compiler. Error with the compiler's words when the
  /// source does not compile.
  [[nodiscard]] Compiled compile(const std::string& source, std::string_view unit, int architecture) const;

 private:
  struct Functions;
  Compiler();
  std::unique_ptr<Functions> functions_;
  std::string name_;
  std::vector<int> architectures_;
};

/// The text of a unit as NVRTC gets it for an architecture.
[[nodiscard]] std::string cuda_source(std::string_view unit, std::span<const Define> defines, int architecture);

}  // namespace polyad::gpu::cuda
