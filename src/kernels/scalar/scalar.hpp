// SPDX-License-Identifier: MIT
/// \file The operations that give one number. Each has one way for all formats, so a line of kernels.list only names
/// it.
#pragma once

#include "polyad/registry.hpp"

namespace polyad {

/// A line of kernels.list.
struct ScalarKernel {
  KernelEntry entry;
};

}  // namespace polyad
