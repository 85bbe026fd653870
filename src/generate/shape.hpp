// SPDX-License-Identifier: MIT
/// \file What both generators demand of the options.
#pragma once

#include "polyad/generate.hpp"

namespace polyad::synthetic {

/// The options with one skew and one width per mode. Throws Error (usage) with the values when they make no sense or
/// the dims cannot hold nnz nonzeros.
[[nodiscard]] GenerateOptions completed(GenerateOptions options);

}  // namespace polyad::synthetic
