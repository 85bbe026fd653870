// SPDX-License-Identifier: MIT
/// \file A decomposition as one page for a browser.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "polyad/cp_als.hpp"
#include "polyad/cp_model.hpp"

namespace polyad {

/// What the page says beside the model.
struct ReportOptions {
  std::string title;  ///< e.g. the name of the tensor
  /// Rows of the table of the run: what, how much.
  std::vector<std::pair<std::string, std::string>> facts = {};
  /// Sentences that the reader should see first.
  std::vector<std::string> notes = {};
  /// Entries shown per component and mode.
  std::uint64_t top = 12;
};

/// One self-contained HTML page (no network): convergence, weights, a panel per component with a chart per mode, search
/// for a label, the table of the run. Modes whose labels are in an order (years, hours, days, dates, numbers) become
/// lines, others bars of their top entries.
[[nodiscard]] std::string html_report(const CpModel& model, std::span<const CpIteration> history,
                                      const ReportOptions& options);

}  // namespace polyad
