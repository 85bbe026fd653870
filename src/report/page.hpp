// SPDX-License-Identifier: MIT
/// \file What a page is made of, before it is text.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "polyad/report.hpp"
#include "report/columns.hpp"
#include "report/mode_order.hpp"

namespace polyad::report {

/// What the page shows of a mode.
struct ModeView {
  std::string name;  // clean
  std::uint64_t dim = 0;
  ModeOrder order;
  bool labelled = false;
  bool whole = false;                      // the lines have every entry
  std::vector<std::vector<TopEntry>> top;  // per component
  std::vector<Line> lines;                 // per component; none when the mode is not ordered
  std::vector<std::uint64_t> ids;          // the indices that are on the page, ascending
  std::vector<std::string> texts;          // their labels, clean; none when the mode has no labels

  [[nodiscard]] std::uint64_t index_at(std::uint64_t place) const {
    return order.sequence.empty() ? place : order.sequence[place];
  }
  [[nodiscard]] std::string label(std::uint64_t index) const {
    if (!labelled) return std::to_string(index + 1);
    return texts[static_cast<std::size_t>(std::ranges::lower_bound(ids, index) - ids.begin())];
  }
};

/// All that the page is made of.
struct Page {
  const CpModel& model;
  std::span<const CpIteration> history;
  const ReportOptions& options;
  std::uint64_t bars = 0;      // per component and mode
  std::uint64_t searched = 0;  // entries per component and mode that the search knows
  double all_weights = 0;      // sum of magnitudes
  std::vector<ModeView> modes = {};

  [[nodiscard]] double share(std::uint64_t r) const {
    return all_weights > 0 && std::isfinite(all_weights) ? std::abs(model.weights[r]) / all_weights : 0;
  }
};

/// Takes from the model what the page shows. Throws when weights and factors do not fit together.
[[nodiscard]] Page page_of(const CpModel& model, std::span<const CpIteration> history, const ReportOptions& options);

/// Places on the axis of a line that may carry a label.
[[nodiscard]] std::vector<std::uint64_t> axis_places(std::uint64_t dim);

/// The numbers and labels of the charts as JSON for page.js; it may stand in a script element.
[[nodiscard]] std::string data_of(const Page& page);

}  // namespace polyad::report
