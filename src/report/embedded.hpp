// SPDX-License-Identifier: MIT
/// \file The files that the build puts into the library (cmake/polyad_embed.cmake).
#pragma once

#include <string_view>

namespace polyad::report {

extern const std::string_view chart_js;  ///< Chart.js, with its licence comment
extern const std::string_view page_css;
extern const std::string_view page_js;

}  // namespace polyad::report
