// SPDX-License-Identifier: MIT
/// \file From any file to a tensor and back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "polyad/context.hpp"
#include "polyad/coo_tensor.hpp"
#include "polyad/cp_model.hpp"

namespace polyad {

/// How to read. The defaults read every file of the field by looking at it.
struct ReadOptions {
  /// Name of a dialect (see registry.hpp, `polyad list dialects`); empty: detect.
  std::string dialect;
  /// 0 or 1 to force the base of the indices; unset: as the dialect says or the data shows.
  std::optional<int> index_base;
  /// Forces the dims (files that carry none lose trailing empty slices); empty: from the file.
  std::vector<std::uint64_t> dims;
  /// Type of the values in memory.
  Precision precision = Precision::f64;
  /// CSV: the columns that become modes, by name or by number from 1.
  std::vector<std::string> columns;
  /// CSV: the column of values; empty: every row counts 1.
  std::string value_column;
  /// Label files, one per mode in order ("" for none); empty: look for `.map` files beside the tensor.
  std::vector<std::string> label_files;
  /// Look for label files beside the tensor.
  bool find_labels = true;
  /// Verify the checksums of the payload (`.ptn`). Without it only the header is verified and opening takes no time.
  bool verify = true;
};

/// What the reader saw.
struct ReadReport {
  std::string dialect;             ///< name of the dialect
  std::string compression;         ///< "", "gzip" or "zstd"
  int index_base = 0;              ///< of the file
  std::uint64_t file_bytes = 0;    ///< on disk; 0 for standard input
  std::vector<std::string> notes;  ///< what was assumed or left out, one sentence each
};

/// A tensor and how it was read.
struct ReadResult {
  CooTensor tensor;
  ReadReport report;
};

/// Reads a tensor ("-": standard input). Throws Error with file and line.
[[nodiscard]] CooTensor read(const std::string& path, const ReadOptions& options = {}, const Context& context = {});

/// The same, and says what it saw.
[[nodiscard]] ReadResult read_with_report(const std::string& path, const ReadOptions& options = {},
                                          const Context& context = {});

/// A small text file that belongs to another and appears with it.
struct Companion {
  std::string path;
  std::string text;
};

/// How to write.
struct WriteOptions {
  /// Name of a dialect; empty: by the extension (`.gz` and `.zst` compress).
  std::string dialect;
  /// Base of the indices in dialects that have a choice (FROSTT text, Tensor Toolbox/GenTen text); unset: the dialect's
  /// own.
  std::optional<int> index_base;
  /// Write `.map` files beside a dialect that cannot hold labels.
  bool write_labels = true;
  /// `.ptn`: the narrowest index width per mode (smaller file; opening has to widen them).
  bool compact = false;
  /// Other files that appear together with the tensor, or not at all.
  std::vector<Companion> companions = {};
};

/// Writes a tensor ("-": standard output). The file appears whole or not at all. Numbers read back to the same bits.
/// Returns every file written: the tensor, its label files, the companions.
std::vector<std::string> write(const CooTensor& x, const std::string& path, const WriteOptions& options = {},
                               const Context& context = {});

/// Writes a model with its labels: a directory with `model.ktensor`, `lambda.mat`, `mode1.mat` ..., `mode1.labels` ...
/// (a label per line; \\, \n and \r stand for backslashes and line breaks) and `summary.json`, which has the names of
/// the modes. When the path ends in `.npz`, one NumPy archive with the arrays `lambda`, `mode1`, ..., `mode1_labels`,
/// ..., `mode_names`; when it ends in `.ktensor` (perhaps `.gz` or `.zst` behind it), that file alone, without labels;
/// when it ends in `.json` (perhaps `.gz` or `.zst` behind it), one file
/// {"weights": [..], "factors": [[[..], ..], ..], "modes": [{"name": "..", "labels": ["..", ..]}, ..]}. Every number
/// and label reads back to the same bytes.
void write(const CpModel& model, const std::string& path, const Context& context = {});

/// Reads a model: a directory as written by write() (`model.ktensor`, else `lambda.mat` and `mode1.mat` ...), an `.npz`
/// or `.json` as written by write(), or a text file of the Tensor Toolbox ("ktensor", which has no labels). Labels may
/// be missing everywhere. Throws Error with file and line.
[[nodiscard]] CpModel read_model(const std::string& path, const Context& context = {});

/// Writes a matrix as SPLATT does, one row per line, 17 significant digits ("-": standard output; `.gz` and `.zst`
/// compress). The file appears whole or not at all.
void write(const Matrix& matrix, const std::string& path, const Context& context = {});

/// Writes a small text file ("-": standard output); it appears whole or not at all.
void write_text(const std::string& text, const std::string& path);

/// Verifies every checksum of a file that has them (`.ptn`; standard input cannot be read twice and is left alone).
/// Returns the bytes verified, 0 for other dialects. For those who read with `verify = false` and want it as a step of
/// its own.
std::uint64_t verify_file(const std::string& path, const Context& context = {});

/// Path of the mapped file that `address` lies in, or null. Async-signal-safe: a SIGBUS handler can say which file
/// became shorter under the program.
[[nodiscard]] const char* mapped_file_at(const void* address) noexcept;

/// One thing wrong, or worth knowing, in a file.
struct Problem {
  bool is_error = false;   ///< true: the file cannot be read with it; false: it can, but one should know
  std::uint64_t line = 0;  ///< from 1; 0 when the file has no lines
  std::string sentence;    ///< what was found, what was expected
};

/// What check_file() found.
struct CheckReport {
  ReadReport read;
  std::vector<Problem> problems;            ///< in the order of lines, at most `CheckOptions::most`
  std::uint64_t errors = 0;                 ///< lines that cannot be read (all of them, listed or not)
  std::uint64_t duplicates = 0;             ///< nonzeros whose coordinate occurred before
  std::uint64_t zeros = 0;                  ///< stored zeros
  std::vector<std::uint64_t> empty_slices;  ///< per mode
  std::optional<CooTensor> tensor;          ///< the tensor when there were no errors
};

/// Reads a file to the end, collecting every problem with its line.
/// \param most how many problems to list (all are counted)
[[nodiscard]] CheckReport check_file(const std::string& path, const ReadOptions& options, std::uint64_t most,
                                     const Context& context = {});

}  // namespace polyad
