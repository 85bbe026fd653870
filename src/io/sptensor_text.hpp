// SPDX-License-Identifier: MIT
/// \file The header that Tensor Toolbox and GenTen share: "sptensor", order, dims, nnz, each on a line.
#pragma once

#include <optional>

#include "io/dialect.hpp"

namespace polyad::io {

/// Reads it. `base` is what the dialect says when the first line does not; unset: the data decide.
[[nodiscard]] TextHeader sptensor_header(InputStream& input, std::optional<int> base);

/// Does the head begin with "sptensor"? `with_base` is set when it goes on with indices-start-at-...
[[nodiscard]] bool begins_sptensor(std::string_view head, bool& with_base);

}  // namespace polyad::io
