// SPDX-License-Identifier: MIT
/// \file What a tensor takes in every format: measured by building, predicted by the papers' formulas.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "session.hpp"

namespace polyad::cli {

/// Which formats to build in order to measure them.
enum class Measuring : std::uint8_t {
  none,      ///< predict only
  moderate,  ///< those that are predicted to stay below 16 times the coordinates: `info` never allocates by dims
  all,
};

/// One structure of one format.
struct StorageRow {
  std::string format;
  std::optional<int> mode;  ///< from 0; unset when one copy serves all modes
  std::optional<std::uint64_t> measured;
  std::optional<StoragePrediction> predicted;
  std::string refused;  ///< why it cannot be built
};

/// Every registered format, per mode where a format is built for one; built and freed one after the other.
[[nodiscard]] std::vector<StorageRow> storage_of(const CooTensor& x, const TensorStatistics& s, Measuring measuring,
                                                 const Context& context);

/// For --json.
[[nodiscard]] Json describe(const std::vector<StorageRow>& rows);

/// The table for people.
void print_table(const std::vector<StorageRow>& rows, const CooTensor& x, Session& session);

}  // namespace polyad::cli
