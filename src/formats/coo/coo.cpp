// SPDX-License-Identifier: MIT
#include "polyad/registry.hpp"

namespace polyad {

extern const FormatEntry coo_format;
const FormatEntry coo_format = {{"coo", "coordinates: N index arrays and the values"}, "", false};

}  // namespace polyad
