// SPDX-License-Identifier: MIT
/// \file TTV on the devices of the Context, given how the format is cut.
#pragma once

#include "kernels/ttv/gpu_parts.hpp"
#include "polyad/pipeline.hpp"

namespace polyad {

/// Uploads the vector, sends the parts through the devices, puts the sums together.
/// \param report also run synchronously, on the first device, and say what both ways took; may be null
[[nodiscard]] CooTensor run_on_devices(const TtvRequest& r, TtvJob job, PipelineReport* report = nullptr);

}  // namespace polyad
