// SPDX-License-Identifier: MIT
/// \file `bench --pipeline`: a tensor through a device in collections, with and without overlap, beside the model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "session.hpp"

namespace polyad::cli {

/// What is asked.
struct PipelineBench {
  std::string operation;  ///< "mttkrp" or "ttv"
  std::uint64_t rank = 0;
  std::vector<std::string> formats;
  std::vector<int> modes;  ///< from 0
  std::string kernel;      ///< to force; empty: the cheapest that can
};

/// Whether a kernel of the devices does the operation on a format.
[[nodiscard]] bool runs_on_devices(std::string_view format, std::string_view operation);

/// Measures, prints, and returns the JSON. A format that has no room is a line of it.
[[nodiscard]] Json bench_pipeline(CooTensor& x, const PipelineBench& bench, Session& session);

}  // namespace polyad::cli
