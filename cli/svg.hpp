// SPDX-License-Identifier: MIT
/// \file Stacked bars and timelines as SVG: one file, no scripts, no fonts or images from elsewhere.
#pragma once

#include <numeric>
#include <polyad/device.hpp>
#include <string>
#include <vector>

namespace polyad::cli {

/// Horizontal bars, each a sum of parts.
struct BarChart {
  /// One bar.
  struct Bar {
    std::string label;
    std::vector<double> parts;  ///< one per series
    std::string remark;         ///< shown in place of the bar

    [[nodiscard]] double total() const { return std::accumulate(parts.begin(), parts.end(), 0.0); }
  };

  std::string title;
  std::string subtitle;
  std::string axis;                 ///< what the numbers are
  std::vector<std::string> series;  ///< names of the parts
  std::vector<Bar> bars;            ///< from top to bottom
};

/// The text of the picture.
[[nodiscard]] std::string svg_of(const BarChart& chart);

/// What ran when on devices: a lane per queue, a box per command.
struct TimelineChart {
  std::string title;
  std::string subtitle;
  std::vector<TimelineSpan> spans;  ///< by lane and begin, as Timeline::spans gives them
};

/// The text of the picture.
[[nodiscard]] std::string svg_of(const TimelineChart& chart);

}  // namespace polyad::cli
