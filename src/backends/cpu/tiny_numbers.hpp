// SPDX-License-Identifier: MIT
/// \file Subnormal numbers (in f32 below 1.2e-38) take a processor of Intel's some 150 cycles each. Entries of factors
/// and their products get there when components settle on a few rows: from its eighth iteration on CP-ALS took ten
/// times as long (10 million nonzeros, f32, rank 16: 12 iterations 5.9 s, with zeros in their place 1.2 s).
#pragma once

#include <cstdint>

namespace polyad::cpu {

/// While it lives, this thread (and the teams it runs, see run_team) reads and writes subnormal numbers as 0.
/// Processors that cannot do that do nothing.
class TinyNumbersAsZero {
 public:
  /// \param wanted false: nothing changes
  explicit TinyNumbersAsZero(bool wanted);
  ~TinyNumbersAsZero();
  TinyNumbersAsZero(const TinyNumbersAsZero&) = delete;
  TinyNumbersAsZero& operator=(const TinyNumbersAsZero&) = delete;

  /// Whether this thread does so now.
  [[nodiscard]] static bool active();

 private:
  bool before_;
};

}  // namespace polyad::cpu
