// SPDX-License-Identifier: MIT
/// \file How vectors of 64 bytes are stored where they are soon loaded again.
#pragma once

namespace polyad::cpu {

/// Whether they go in two halves. A Zen 4 stores them in two steps, and a load of the whole waits for both: 9 cycles
/// more than two loads. A Zen 5 takes them in one: scatters take 0.82 (uber) and 0.9 (vast) of the time with whole
/// vectors, a sweep 0.9 and 0.95 (f32, rank 16, in turn). Tests set it.
extern bool halve_wide_stores;

}  // namespace polyad::cpu
