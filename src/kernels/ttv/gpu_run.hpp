// SPDX-License-Identifier: MIT
/// \file TTV on the devices of the Context, given how the format is cut.
#pragma once

#include <memory>

#include "kernels/ttv/gpu_parts.hpp"
#include "polyad/pipeline.hpp"

namespace polyad {

/// The devices of a Context with the vector of a request: jobs run one after the other.
class TtvDevices {
 public:
  /// Uploads the vector. \param report jobs also run synchronously, and what both ways took is added; may be null
  [[nodiscard]] static std::unique_ptr<TtvDevices> open(const TtvRequest& r, PipelineReport* report = nullptr);
  virtual ~TtvDevices() = default;
  /// Sends the parts through the devices, puts the sums together. All jobs must want the same kernel.
  [[nodiscard]] virtual CooTensor run(TtvJob job) = 0;
};

/// TTV of a tensor that stays in its file (Stream): window by window. \param report as above
[[nodiscard]] CooTensor run_windows(const TtvRequest& r, PipelineReport* report);

}  // namespace polyad
