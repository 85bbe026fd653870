// SPDX-License-Identifier: MIT
/// \file Formats that were measured to be the best for a tensor on this machine.
#pragma once

#include <optional>
#include <vector>

#include "polyad/planner.hpp"

namespace polyad {

/// What was found for this tensor, rank, precision and size on this machine, or on these devices, by this version;
/// nothing for a deterministic context; unset when nothing was or it is not in this build.
[[nodiscard]] std::optional<Choice> tuned_format(const CooTensor& x, std::uint64_t rank, double most_size,
                                                 const Context& context);

/// A format and the seconds its sweep took.
struct TunedFormat {
  std::string_view format;
  std::vector<int> leaf_modes;
  double seconds = 0;
};

/// Whether an MTTKRP kernel for devices works on a format, with the same bits every time if the context asks for that.
[[nodiscard]] bool runs_on_devices(std::string_view format, const Context& context);

/// Keeps it for tuned_format; the fastest first. Returns what tuned_format will say.
Choice remember_tuned(const CooTensor& x, std::uint64_t rank, double most_size, const std::vector<TunedFormat>& found,
                      const Context& context);

}  // namespace polyad
