// SPDX-License-Identifier: MIT
/// \file How well a device is used: how equal the work of its groups is, and how long an operation takes whose tensor
/// goes through it in collections of slices, with and without overlap, beside what the model says (Yang, Li and Li
/// 2019, section 6.2).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "polyad/context.hpp"
#include "polyad/kernels.hpp"
#include "polyad/matrix.hpp"
#include "polyad/tensor.hpp"

namespace polyad {

/// Seconds of an operation: Ts when the steps of all collections follow each other, Tp when those of different
/// collections run side by side.
struct PipelineReport {
  KernelChoice kernel;
  int queues = 0;                 ///< collections under way at once, on each device
  std::uint64_t collections = 0;  ///< into how many the tensor was cut
  std::uint64_t slot_bytes = 0;   ///< device memory of each that is under way
  double measured_ts = 0;
  double measured_tp = 0;
  double model_ts = 0;  ///< from the rates that were measured on two small collections
  double model_tp = 0;
  double steps_tp = 0;  ///< Tp of the model from the steps as the synchronous run measured them
  /// What the model was given, of the first device: seconds to begin a step, and per byte or nonzero.
  struct Rate {
    double begin = 0;
    double each = 0;
  };
  Rate copy_in;   ///< per byte
  Rate compute;   ///< per nonzero
  Rate copy_out;  ///< per byte
};

/// How the nonzeros of a tensor are shared out over the work-groups of a device kernel: a group that has many times the
/// mean is waited for by all others.
struct GroupBalance {
  std::uint64_t groups = 0;
  std::uint64_t heaviest = 0;  ///< nonzeros of the group that has most
  double mean = 0;             ///< nonzeros of a group
  /// 1 is perfect.
  [[nodiscard]] double ratio() const { return mean > 0 ? static_cast<double>(heaviest) / mean : 1.0; }
};

/// The balance of a device kernel ('polyad list kernels') for an MTTKRP, from how the tensor is cut; one for each
/// kernel text that runs (hb-csf has three groups of slices). Error (usage) when the kernel cannot work on the tensor.
[[nodiscard]] std::vector<GroupBalance> mttkrp_balance(const Tensor& x, int mode, std::string_view kernel);

/// ttv() on the devices of the context, both ways; of several, the one that takes longest counts.
[[nodiscard]] PipelineReport ttv_pipeline(const Tensor& x, int mode, std::span<const double> vector,
                                          const Context& context, std::string_view kernel = {});

/// mttkrp() on the devices of the context, both ways; the tensor passes through them even when it would fit.
template <class T>
[[nodiscard]] PipelineReport mttkrp_pipeline(Tensor& x, std::span<const FactorMatrix<T>> factors, int mode,
                                             FactorMatrix<T>& out, const Context& context,
                                             std::string_view kernel = {});

}  // namespace polyad
