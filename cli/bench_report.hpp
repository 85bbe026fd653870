// SPDX-License-Identifier: MIT
/// \file What `bench` measured, and how people and programs see it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "session.hpp"

namespace polyad::cli {

/// Smallest and middle of some times.
struct Times {
  double min = 0;
  double median = 0;
};
[[nodiscard]] Times times_of(std::vector<double> seconds);

/// A kernel on one mode of one format.
struct ModeResult {
  int mode = 0;  ///< from 0
  std::string kernel;
  std::string why;
  Times seconds;
  std::vector<GroupBalance> balance = {};  ///< of kernels that run on devices
};

/// One format, perhaps with a kernel that was asked for.
struct FormatResult {
  std::string format;
  std::string kernel;  ///< the one asked for, else empty
  std::vector<ModeResult> modes;
  Times sweep;  ///< all modes, one after the other
  double build_seconds = 0;
  std::uint64_t bytes = 0;
  std::string refused;  ///< why there are no numbers

  [[nodiscard]] std::string label() const { return kernel.empty() ? format : format + " " + kernel; }
};

/// A whole call of `bench`.
struct BenchReport {
  std::string file;
  std::vector<std::uint64_t> dims;
  std::uint64_t nnz = 0;
  std::string operation;
  std::uint64_t rank = 0;
  std::string precision;
  int threads = 0;
  std::vector<int> modes;            ///< from 0
  double flops = 0;                  ///< of one mode
  double traffic = 0;                ///< bytes of one mode, by the model
  std::optional<double> stream_gbs;  ///< unset when its arrays did not fit the memory
  std::vector<FormatResult> results;

  /// The fastest format; null when all refused.
  [[nodiscard]] const FormatResult* best() const;
};

/// For --json: a row per format and mode, then one for all modes.
[[nodiscard]] Json describe(const BenchReport& report);

/// The table for people, at most 100 columns.
void print_table(const BenchReport& report, Session& session);

/// A bar per format, fastest first, as a self-contained SVG.
[[nodiscard]] std::string plot(const BenchReport& report);

}  // namespace polyad::cli
