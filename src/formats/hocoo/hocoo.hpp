// SPDX-License-Identifier: MIT
/// \file HOCOO: coordinates sorted by mode 1, 2, ... (Yang, Li and Li 2019, section 5.1).
#pragma once

#include "formats/coo/coo.hpp"

namespace polyad {

/// HOCOO: one index array per mode and the values, sorted by all modes in order.
struct Hocoo : Coo {
  [[nodiscard]] static Hocoo build(const CooTensor& x, const FormatOptions& options, const Context& context);
};

}  // namespace polyad
