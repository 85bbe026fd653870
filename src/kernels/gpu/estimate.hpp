// SPDX-License-Identifier: MIT
/// \file The roofline behind estimate_on_device, from counts alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "polyad/device_model.hpp"

namespace polyad::gpu {

/// Rows of one factor or output in one MTTKRP.
struct RowUse {
  double uses = 0;   ///< how often a row is wanted
  double rows = 0;   ///< rows that there are
  double times = 1;  ///< bytes moved per use: 1 to read, 2 to add to (read and write)
};

/// The work of one MTTKRP.
struct MttkrpWork {
  double array_bytes = 0;  ///< of the format
  double row_bytes = 0;
  double flops = 0;
  double output_rows = 0;  ///< cleared, or written once where sums stay in registers
  std::vector<RowUse> rows;

  /// Probability that a row is in the cache when it is wanted again.
  [[nodiscard]] double hit(const DeviceModel& d) const {
    double bytes = 0;
    for (const RowUse& r : rows) bytes += r.rows * row_bytes;
    return bytes <= 0 ? 1 : std::min(1.0, 1e6 * d.cache_mb / bytes);
  }
  [[nodiscard]] double moved_bytes(const DeviceModel& d) const {
    double sum = array_bytes + output_rows * row_bytes;
    for (const RowUse& r : rows) {
      const double first = std::min(r.uses, r.rows);
      sum += r.times * row_bytes * (first + (r.uses - first) * (1 - hit(d)));
    }
    return sum;
  }
};

}  // namespace polyad::gpu
