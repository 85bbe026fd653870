// SPDX-License-Identifier: MIT
/// \file Label files: one per mode, line i is the label of index i.
#pragma once

#include <string>
#include <vector>

#include "polyad/coo_tensor.hpp"
#include "polyad/io.hpp"

namespace polyad::io {

/// Attaches the labels found beside the tensor: `NAME.mode-K-MODENAME.map`, else `mode-K-MODENAME.map` (each perhaps
/// with .gz or .zst). A file with too few labels is not used, and that is noted.
void attach_found_labels(CooTensor& x, const std::string& tensor_path, std::vector<std::string>& notes);

/// Attaches the given label files ("" for none); too few labels are an Error.
void attach_given_labels(CooTensor& x, const std::vector<std::string>& files, std::vector<std::string>& notes);

/// The label files to write beside the tensor: `NAME.mode-K-MODENAME.map`, named after it so that no other tensor of
/// the folder takes them for its own.
[[nodiscard]] std::vector<Companion> label_files_of(const CooTensor& x, const std::string& tensor_path);

}  // namespace polyad::io
