// SPDX-License-Identifier: MIT
/// \file Stacked bars and timelines as SVG: one file, no scripts, no fonts or images from elsewhere.
#pragma once

#include <numeric>
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

/// What ran when: a lane per queue, a colour per label.
struct LaneChart {
  /// Something that ran.
  struct Span {
    std::string lane;
    std::string label;
    double begin = 0;  ///< seconds
    double end = 0;
  };

  std::string title;
  std::string subtitle;
  std::vector<Span> spans;
};

/// The text of the picture.
[[nodiscard]] std::string svg_of(const LaneChart& chart);

}  // namespace polyad::cli
