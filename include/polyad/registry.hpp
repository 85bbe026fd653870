// SPDX-License-Identifier: MIT
/// \file What this build of polyad has, as data. Everything comes from the lists in src/lists.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace polyad {

/// One thing the registry knows by name.
struct Entry {
  std::string_view name;
  std::string_view summary;
};

/// A storage format.
struct FormatEntry : Entry {
  std::string_view paper;      ///< where it comes from; empty: common knowledge
  bool mode_specific = false;  ///< built for one mode, or one copy serves all
  std::string_view strengths;  ///< what it is good at
};

/// A kernel: one way to do an operation on one format.
struct KernelEntry : Entry {
  std::string_view operation;        ///< "mttkrp", "ttv", "ttm", "norm", "innerprod"
  std::string_view formats;          ///< the formats it works on, by commas; "any"
  bool deterministic = false;        ///< the same bits for any number of threads
  std::string_view backend = "cpu";  ///< or "gpu": it runs on the devices of the Context
};

/// A file dialect.
struct DialectEntry : Entry {
  std::vector<std::string_view> extensions;  ///< without compression, the first is the one to write
  bool is_text = false;
  bool can_write = false;
};

/// A device that computations can run on, or one that cannot be used and why.
struct DeviceEntry {
  std::string name;         ///< "cpu", "opencl:0", "cuda:0"; that of the backend when it found none
  std::string backend;      ///< "cpu", "opencl", "cuda"
  std::string description;  ///< or why there is none
  bool available = true;
  bool is_gpu = false;
  bool has_f64 = true;              ///< doubles
  std::uint32_t compute_units = 0;  ///< 0 when there is none, as all that follows
  std::uint32_t largest_group = 0;  ///< work-items of a group that are used at most
  std::uint64_t local_bytes = 0;    ///< memory of a group that is used at most
  std::uint64_t memory_bytes = 0;   ///< of the device
  bool native_atomics = false;      ///< adds to memory by one instruction (f32)
};

/// Storage formats, in the order of formats.list.
[[nodiscard]] std::span<const FormatEntry> formats();
/// Kernels.
[[nodiscard]] std::span<const KernelEntry> kernels();
/// Solvers.
[[nodiscard]] std::span<const Entry> solvers();
/// Backends.
[[nodiscard]] std::span<const Entry> backends();
/// File dialects, in the order in which detection asks them.
[[nodiscard]] std::span<const DialectEntry> dialects();
/// Devices found on this machine, the processor first; backends without one say why.
[[nodiscard]] std::vector<DeviceEntry> devices();

}  // namespace polyad
