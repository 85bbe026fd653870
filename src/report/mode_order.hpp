// SPDX-License-Identifier: MIT
/// \file Which modes are a line and which are bars.
#pragma once

#include <cstdint>
#include <vector>

#include "polyad/cp_model.hpp"

namespace polyad::report {

/// How the indices of a mode follow each other.
struct ModeOrder {
  bool ordered = false;  ///< years, hours, dates, months, numbers: neighbours belong together
  bool numbers = false;  ///< labels (or indices) are numbers at fairly even distances: an axis of numbers
  std::vector<std::uint64_t> sequence;  ///< the indices in that order; empty: as they are
};

/// Looks at the labels; without labels, at the mode's name (time, day, hour, year, chapter, ...).
[[nodiscard]] ModeOrder mode_order(const CpModel& model, int mode);

}  // namespace polyad::report
