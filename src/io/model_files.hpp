// SPDX-License-Identifier: MIT
/// \file The pieces of reading and writing models that several files share.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "io/output_file.hpp"
#include "polyad/context.hpp"
#include "polyad/cp_model.hpp"

namespace polyad::io {

/// Counts what a model takes while it is being read. A Matrix is an ordinary vector that no budget knows, but a file
/// that does not fit the limit is refused with a sentence.
class ModelMemory {
 public:
  explicit ModelMemory(const Context& context) : budget_(context.memory) {}
  ~ModelMemory();
  ModelMemory(const ModelMemory&) = delete;
  ModelMemory& operator=(const ModelMemory&) = delete;

  /// `numbers` more were read; Error (limit) when they do not fit.
  void add(std::uint64_t numbers);
  /// A label of so many bytes was read.
  void add_label(std::uint64_t bytes);

 private:
  void take(std::uint64_t bytes);

  std::shared_ptr<MemoryBudget> budget_;
  std::uint64_t taken_ = 0;
};

/// Appends a number as %.16e does: 17 significant digits, which read back to the same bits.
void append_number(std::string& text, double value);

/// Calls put(rows, text) for parts of a matrix in order; format(text, begin, end) appends rows and is called by all
/// threads.
void write_rows(const Matrix& a, const Context& context,
                const std::function<void(std::string& text, std::uint64_t begin, std::uint64_t end)>& format,
                const std::function<void(std::uint64_t rows, const std::string& text)>& put);

/// `modeK.labels` of a mode counted from 0: a label per line, with \\, \n and \r for backslashes and line breaks.
[[nodiscard]] std::string labels_file(std::size_t mode);
void write_labels(const ModeLabels& labels, OutputFile& file);
/// Takes the labels from the `modeK.labels` and the names from the `summary.json` of a model's directory, those that
/// are there. A `summary.json` of another program has no names.
void read_labels(CpModel& model, const std::string& folder, const Context& context);
/// Drops labels that say nothing: no mode has a name or labels.
void drop_empty_labels(CpModel& model);

/// A model is one file of JSON when its path ends so, compressed or not.
[[nodiscard]] bool is_json(std::string_view path);
/// {"weights": [..], "factors": [[[..], ..], ..], "modes": [{"name": "..", "labels": ["..", ..]}, ..]}; modes and what
/// is in them may be missing, other names are passed over.
[[nodiscard]] CpModel read_json_model(const std::string& path, const Context& context);
/// Writes it, a row per line.
void write_json_model(const CpModel& model, const std::string& path, const Context& context);

/// A model is one NumPy archive when its path ends so.
[[nodiscard]] bool is_npz(std::string_view path);
/// Arrays `lambda`, `mode1`, ..., and if they are there `mode1_labels`, ..., `mode_names` of an archive.
[[nodiscard]] CpModel read_npz_model(const std::string& path, const Context& context);
/// Writes them, f64 and Unicode, stored.
void write_npz_model(const CpModel& model, const std::string& path, const Context& context);

}  // namespace polyad::io
