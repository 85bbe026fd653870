// SPDX-License-Identifier: MIT
/// \file What a file dialect is. One file per dialect, one line in lists/dialects.list; detection, `convert`, `list
/// dialects`, the round-trip tests and the fuzz targets all come from that line.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "io/input_stream.hpp"
#include "io/output_file.hpp"
#include "io/text_reader.hpp"
#include "polyad/context.hpp"
#include "polyad/coo_tensor.hpp"
#include "polyad/io.hpp"

namespace polyad::io {

/// A file dialect.
struct Dialect {
  std::string_view name;
  std::string_view summary;
  /// Endings without compression, with the dot; the first is the one people should write. Several dialects may share
  /// one.
  std::vector<std::string_view> extensions;
  bool is_text = false;
  /// The file itself holds labels (else they go to `.map` files beside it).
  bool holds_labels = false;
  /// The file holds dims: trailing empty slices survive.
  bool holds_dims = false;
  /// Does a file that begins with `head` (up to 64 KiB, decompressed) look like this? `extension` is lower-case.
  bool (*detect)(std::string_view head, std::string_view extension) = nullptr;
  /// Reads the stream from its beginning; fills report.index_base and report.notes.
  CooTensor (*read)(InputStream& input, const ReadOptions& options, const Context& context,
                    ReadReport& report) = nullptr;
  /// Writes; null when the dialect is only read.
  void (*write)(const CooTensor& x, OutputFile& output, const WriteOptions& options, const Context& context) = nullptr;
  /// Text dialects: reads the header alone, so that check_file() can go through the lines itself.
  TextHeader (*header)(InputStream& input, const ReadOptions& options, ReadReport& report) = nullptr;
};

/// All dialects, in the order in which detection asks them.
[[nodiscard]] std::span<const Dialect* const> all_dialects();
/// The dialect of that name, or an Error (usage) that lists the names.
[[nodiscard]] const Dialect& dialect_by_name(std::string_view name);
/// The dialect to write a path in, by its extension, or an Error (usage).
[[nodiscard]] const Dialect& dialect_for_writing(std::string_view path);
/// The dialect of an opened input: by its first bytes, then its extension.
[[nodiscard]] const Dialect& detect_dialect(InputStream& input);

#define POLYAD_DIALECT(name) extern const Dialect name##_dialect;
#include "lists/dialects.list"
#undef POLYAD_DIALECT

}  // namespace polyad::io
