// SPDX-License-Identifier: MIT
/// \file Label files: one per mode, line i is the label of index i.
#pragma once

#include <string>
#include <vector>

#include "polyad/coo_tensor.hpp"

namespace polyad::io {

/// Attaches the labels found beside the tensor: `NAME.mode-K-MODENAME.map`, else `mode-K-MODENAME.map` (each perhaps
/// with .gz or .zst). A file with too few labels is not used, and that is noted.
void attach_found_labels(CooTensor& x, const std::string& tensor_path, std::vector<std::string>& notes);

/// Attaches the given label files ("" for none); too few labels are an Error.
void attach_given_labels(CooTensor& x, const std::vector<std::string>& files, std::vector<std::string>& notes);

/// Writes the labels beside the tensor as `mode-K-MODENAME.map`; a file of that name with other content is left alone
/// and `NAME.mode-K-MODENAME.map` is written in its place. Returns the paths written.
std::vector<std::string> write_label_files(const CooTensor& x, const std::string& tensor_path);

}  // namespace polyad::io
