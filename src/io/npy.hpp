// SPDX-License-Identifier: MIT
/// \file The header of NumPy's `.npy`: type and shape of one array. (numpy/lib/format.py: versions 1, 2 and 3.)
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/binary.hpp"

namespace polyad::io {

/// What the header of an array says.
struct NpyHeader {
  Scalar type;
  bool fortran_order = false;
  std::vector<std::uint64_t> shape;
  std::uint64_t bytes = 0;  ///< of the header; the numbers follow
};

/// Takes a header from a source.
/// \param file, array what messages call them
[[nodiscard]] NpyHeader read_npy_header(ByteSource& from, std::string_view file, std::string_view array);

/// What the header of an array of text says: type '<U5', five characters of four bytes each, zeros behind shorter ones.
struct NpyTextHeader {
  std::uint64_t width = 0;  ///< characters of each text
  bool big_endian = false;
  std::vector<std::uint64_t> shape;
  std::uint64_t bytes = 0;  ///< of the header; the characters follow
};

/// The same for an array of text.
[[nodiscard]] NpyTextHeader read_npy_text_header(ByteSource& from, std::string_view file, std::string_view array);

/// The bytes before an array in C order.
/// \param descr "<i8", "<f4", "<U5", ...
[[nodiscard]] std::string npy_header(std::string_view descr, std::span<const std::uint64_t> shape);

}  // namespace polyad::io
