// SPDX-License-Identifier: MIT
/// \file What read() and check_file() do alike with their options.
#pragma once

#include <string>

#include "io/dialect.hpp"

namespace polyad::io {

/// The dialect asked for, else CSV when columns are named, else the one detected.
[[nodiscard]] const Dialect& choose_dialect(InputStream& input, const ReadOptions& options);

/// Attaches the labels asked for, else those found beside the file.
void attach_labels(CooTensor& x, const std::string& path, const ReadOptions& options, ReadReport& report);

}  // namespace polyad::io
