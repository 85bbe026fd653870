// SPDX-License-Identifier: MIT
/// \file What tests of devices share: kernel texts of their own, a device or the reason why the test is left out.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <polyad/device.hpp>

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/gpu/device.hpp"
#include "backends/gpu/driver.hpp"
#include "scratch.hpp"

namespace polyad::test {

/// Sets an environment variable for as long as it lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* old = getenv(name)) old_ = old;
    setenv(name, value.c_str(), 1);
  }
  ~Variable() {
    if (old_) {
      setenv(name_, old_->c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_;
};

/// The test double of NVIDIA's driver in place of the real one, for as long as it lives.
class CudaDouble {
 public:
  explicit CudaDouble(unsigned seed = 1) : seed_("FAKE_CUDA_SEED", std::to_string(seed)) { reset(); }
  /// Forgets what was counted; the wait of this number for an event is forgotten, -1: none.
  void reset(std::int64_t dropped_wait = -1) const { call<void(std::int64_t)>("fake_cuda_reset")(dropped_wait); }
  [[nodiscard]] std::uint64_t waits() const { return call<std::uint64_t()>("fake_cuda_waits")(); }
  [[nodiscard]] std::uint64_t launches() const { return call<std::uint64_t()>("fake_cuda_launches")(); }
  [[nodiscard]] std::uint64_t used_bytes() const { return call<std::uint64_t()>("fake_cuda_used_bytes")(); }
  /// All that went wrong, a line each.
  [[nodiscard]] std::string faults() const {
    const auto fault = call<const char*(std::uint64_t)>("fake_cuda_fault");
    std::string all;
    for (std::uint64_t i = 0; fault(i) != nullptr; ++i) all += fault(i) + std::string("\n");
    return all;
  }

 private:
  template <class F>
  [[nodiscard]] F* call(const char* name) const {
    void* found = dlsym(library_, name);
    EXPECT_NE(found, nullptr) << name;
    return reinterpret_cast<F*>(found);
  }

  Variable driver_{"POLYAD_CUDA_LIBRARY", POLYAD_FAKE_CUDA};
  Variable compiler_{"POLYAD_NVRTC_LIBRARY", POLYAD_FAKE_CUDA};
  Variable seed_;
  void* library_ = dlopen(POLYAD_FAKE_CUDA, RTLD_NOW);
};

/// Kernels small enough to know their results: what the doors must be able to do.
inline constexpr const char* small_kernels = R"(
// out[i] = factor * x[i] + y[i] for n numbers, by groups that stride
PD_KERNEL void scale_add(PD_GLOBAL const real* PD_RESTRICT x, PD_GLOBAL const real* PD_RESTRICT y,
                         PD_GLOBAL real* PD_RESTRICT out, u64 n, real factor) {
  for (u64 i = pd_group_id(0) * ITEMS + pd_local_id(0); i < n; i += pd_group_count(0) * ITEMS)
    out[i] = pd_fma(factor, x[i], y[i]);
}
// every work-item adds its number in the grid to out[0] and 1 to out[1 + its place in the group]
PD_KERNEL void add_all(PD_GLOBAL real* out) {
  const u64 me = (pd_group_id(1) * pd_group_count(0) + pd_group_id(0)) * ITEMS + pd_local_id(0);
  pd_atomic_add(out, (real)me);
  pd_atomic_add(out + 1 + pd_local_id(0), (real)1);
}
// each group turns its ITEMS numbers round
PD_KERNEL void turn_round(PD_GLOBAL u32* data) {
  PD_LOCAL(u32, there, ITEMS);
  const u32 i = pd_local_id(0);
  PD_GLOBAL u32* mine = data + pd_group_id(0) * ITEMS;
  there[i] = mine[i];
  PD_BARRIER();
  mine[i] = there[ITEMS - 1 - i];
}
// to[0] = from[0] + 1, after a while
PD_KERNEL void slow_next(PD_GLOBAL const u64* from, PD_GLOBAL u64* to, u64 rounds) {
  u64 x = 1;
  for (u64 i = 0; i < rounds; ++i) x = x * 6364136223846793005UL + i;
  if (pd_local_id(0) == 0) to[0] = from[0] + (x == 0 ? 2 : 1);
}
)";

/// A folder with the kernels above as "small", used for as long as it lives.
struct SmallTexts {
  Scratch folder;
  std::string file = folder.file("small.h", small_kernels);
  Variable variable{"POLYAD_DEVICE_TEXTS", folder.path("")};
};

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& v) {
  return std::as_bytes(std::span(v));
}
template <class T>
std::span<std::byte> bytes_of(std::vector<T>& v) {
  return std::as_writable_bytes(std::span(v));
}

/// The value a kernel is given for a number of type T.
template <class T>
std::vector<gpu::Define> defines_for(int items = 64) {
  return {{"PD_REAL_BITS", std::to_string(sizeof(T) * 8)}, {"ITEMS", std::to_string(items)}};
}

}  // namespace polyad::test
