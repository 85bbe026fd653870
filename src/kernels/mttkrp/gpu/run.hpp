// SPDX-License-Identifier: MIT
/// \file MTTKRP on the devices of the Context, given how the format is cut.
#pragma once

#include <optional>
#include <string_view>

#include "kernels/mttkrp/gpu/cutters.hpp"
#include "kernels/mttkrp/request.hpp"

namespace polyad::gpu {

/// What all device kernels answer. \param fits the tensor is of the kernel's format
/// \param cost of a nonzero, in rows read
[[nodiscard]] Answer ask(const MttkrpQuestion& q, bool fits, std::string_view format, double cost, const char* reason);

/// Uploads what is not there yet, runs the parts, brings the output back.
template <class T>
void run_parts_of(const MttkrpRequest<T>& r, Cutter cut);

/// The `run` of a MttkrpKernel.
template <class T, Cutter cut>
void run(const MttkrpRequest<T>& r) {
  run_parts_of(r, cut);
}

}  // namespace polyad::gpu
