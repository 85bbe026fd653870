// SPDX-License-Identifier: MIT
/// \file A model for people, on a terminal.
#pragma once

#include <cstdint>
#include <polyad/polyad.hpp>
#include <string>

namespace polyad::cli {

/// Weight, share of the sum of weights and the `top` entries of largest magnitude of each mode, component by component.
[[nodiscard]] std::string components_text(const CpModel& model, std::uint64_t top, const Context& context);

}  // namespace polyad::cli
