// SPDX-License-Identifier: MIT
/// \file A tensor to lines of "index index ... value": the part that all text dialects share.
#pragma once

#include "io/output_file.hpp"
#include "polyad/context.hpp"
#include "polyad/coo_tensor.hpp"

namespace polyad::io {

/// Writes every nonzero as a line, indices from `base`; formatted (and compressed) in parallel, written in order.
void write_lines(const CooTensor& x, OutputFile& output, int base, const Context& context);

}  // namespace polyad::io
