// SPDX-License-Identifier: MIT
/// \file The files of a model: `model.ktensor` as the Tensor Toolbox and GenTen read it, `lambda.mat` and `modeK.mat`
/// as SPLATT reads them, `modeK.labels`, `summary.json`. Rows of numbers are the same text in both, so each is
/// formatted once.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <system_error>
#include <vector>

#include "backends/cpu/ordered_pipeline.hpp"
#include "io/model_files.hpp"
#include "io/output_file.hpp"
#include "io/scientific_digits.hpp"
#include "polyad/error.hpp"
#include "polyad/io.hpp"
#include "polyad/types.hpp"
#include "polyad/version.hpp"

namespace polyad {

namespace io {

/// 20 ns whatever the exponent; with std::to_chars 56 (near 1) to 98 (of any exponent). A zero, most of a sparse
/// factor, takes 3 instead of the 10 that it takes format_17_digits and the copy.
void append_number(std::string& text, double value) {
  if (value == 0 && !std::signbit(value)) {
    text += "0.0000000000000000e+00";
    return;
  }
  char digits[room_for_17_digits];
  text.append(digits, format_17_digits(digits, value));
}

void write_rows(const Matrix& a, const Context& context,
                const std::function<void(std::string&, std::uint64_t, std::uint64_t)>& format,
                const std::function<void(std::uint64_t, const std::string&)>& put) {
  struct Rows {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::string text;
  };
  const std::uint64_t step = 1 + 16384 / (a.cols + 1);  // a few hundred kilobytes of text
  std::uint64_t next = 0;
  cpu::ordered_pipeline<Rows>(
      a.rows <= step ? 1 : context.thread_count(),
      [&](Rows& part) {
        part.begin = next;
        part.end = next = std::min(a.rows, next + step);
        return part.begin < part.end;
      },
      [&](Rows& part) {
        part.text.clear();
        format(part.text, part.begin, part.end);
      },
      [&](Rows& part) { put(part.end - part.begin, part.text); });
}

}  // namespace io

namespace {

/// The rows of a matrix, one per line.
template <class Put>
void write_lines(const Matrix& a, const Context& context, const Put& put) {
  const auto format = [&](std::string& text, std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t i = begin; i < end; ++i) {
      for (std::uint64_t r = 0; r < a.cols; ++r) {
        if (r > 0) text += ' ';
        io::append_number(text, a(i, r));
      }
      text += '\n';
    }
  };
  io::write_rows(a, context, format, put);
}

void check_shape(const CpModel& model) {
  if (model.factors.empty()) throw usage_error("a model without factors cannot be written");
  for (int m = 0; m < model.order(); ++m) {
    const Matrix& a = model.factors[static_cast<std::size_t>(m)];
    if (a.cols != model.rank())
      throw usage_error(
          fmt::format("the factor of mode {} has {} columns and the model {} weights", m + 1, a.cols, model.rank()));
  }
  if (model.labels.empty()) return;
  if (model.labels.size() != model.factors.size())
    throw usage_error(
        fmt::format("the model has labels for {} modes, expected {} or none", model.labels.size(), model.order()));
  for (std::size_t m = 0; m < model.labels.size(); ++m)
    if (!model.labels[m].empty() && model.labels[m].size() != model.factors[m].rows)
      throw usage_error(
          fmt::format("mode {} has {} labels for {} indices", m + 1, model.labels[m].size(), model.factors[m].rows));
}

void make_directory(const std::filesystem::path& directory) {
  std::error_code failure;
  const std::filesystem::file_status status = std::filesystem::status(directory, failure);
  if (std::filesystem::exists(status) && !std::filesystem::is_directory(status))
    throw file_error(directory.string(), 0, "is a file; a model is written as a directory of files");
  std::filesystem::create_directories(directory, failure);
  if (failure) throw file_error(directory.string(), 0, fmt::format("cannot be created: {}", failure.message()));
}

std::string summary(const CpModel& model, const std::vector<std::uint64_t>& dims) {
  std::vector<std::string> names;
  for (const ModeLabels& labels : model.labels) names.push_back(labels.name());
  nlohmann::ordered_json json;
  json["rank"] = model.rank();
  json["order"] = model.order();
  json["dims"] = dims;
  json["weights"] = model.weights;
  json["labels"] = names;
  json["version"] = version;
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

/// Removes what a model of other labels or more modes left behind and this one does not overwrite: it would be taken
/// for a part of this one.
void remove_leftovers(const CpModel& model, const std::filesystem::path& folder) {
  const auto remove = [&](const std::string& name) {
    std::error_code failure;
    if (std::filesystem::is_directory(std::filesystem::symlink_status(folder / name, failure))) return;
    std::filesystem::remove(folder / name, failure);
    if (failure)
      throw file_error((folder / name).string(), 0,
                       fmt::format("belongs to another model and cannot be removed: {}", failure.message()));
  };
  for (std::size_t m = 0; m < static_cast<std::size_t>(max_order); ++m) {
    if (m >= model.factors.size()) remove(fmt::format("mode{}.mat", m + 1));
    if (m >= model.labels.size() || model.labels[m].empty()) remove(io::labels_file(m));
  }
}

}  // namespace

void write(const Matrix& matrix, const std::string& path, const Context& context) {
  io::OutputFile file(path, io::compression_of(path), context.cancelled);
  std::uint64_t written = 0;
  write_lines(matrix, context, [&](std::uint64_t count, const std::string& text) {
    file.write(text);
    written += count;
    context.report({"writing", written, matrix.rows, "rows"});
  });
  file.commit();
}

namespace {

std::vector<std::uint64_t> dims_of(const CpModel& model) {
  std::vector<std::uint64_t> dims;
  for (const Matrix& a : model.factors) dims.push_back(a.rows);
  return dims;
}

/// The whole `ktensor`, and the rows of every mode also into its file of `mats` unless that is empty.
void write_ktensor(const CpModel& model, io::OutputFile& ktensor, const std::vector<io::OutputFile*>& mats,
                   const Context& context) {
  const std::vector<std::uint64_t> dims = dims_of(model);
  ktensor.write(fmt::format("ktensor\n{}\n{}\n{}\n", model.order(), fmt::join(dims, " "), model.rank()));
  std::string line;
  for (std::size_t r = 0; r < model.weights.size(); ++r) {
    if (r > 0) line += ' ';
    io::append_number(line, model.weights[r]);
  }
  ktensor.write(line + '\n');
  const std::uint64_t rows = std::accumulate(dims.begin(), dims.end(), std::uint64_t{0});
  std::uint64_t written = 0;
  for (std::size_t m = 0; m < model.factors.size(); ++m) {
    const Matrix& a = model.factors[m];
    ktensor.write(fmt::format("matrix\n2\n{} {}\n", a.rows, a.cols));
    write_lines(a, context, [&](std::uint64_t count, const std::string& text) {
      ktensor.write(text);
      if (!mats.empty()) mats[m]->write(text);
      written += count;
      context.report({"writing", written, rows, "rows"});
    });
  }
}

}  // namespace

void write(const CpModel& model, const std::string& path, const Context& context) {
  check_shape(model);
  if (io::is_npz(path)) return io::write_npz_model(model, path, context);
  if (io::is_json(path)) return io::write_json_model(model, path, context);
  if (io::without_compression(path).ends_with(".ktensor")) {
    io::OutputFile file(path, io::compression_of(path), context.cancelled);
    write_ktensor(model, file, {}, context);
    file.commit();
    return;
  }
  const std::filesystem::path folder(path);
  make_directory(folder);
  std::vector<std::unique_ptr<io::OutputFile>> files;
  const auto open = [&](const std::string& name) -> io::OutputFile& {
    files.push_back(std::make_unique<io::OutputFile>((folder / name).string(), io::Compression::none));
    return *files.back();
  };
  io::OutputFile& ktensor = open("model.ktensor");
  std::string column;
  for (const double weight : model.weights) {
    io::append_number(column, weight);
    column += '\n';
  }
  open("lambda.mat").write(column);
  std::vector<io::OutputFile*> mats;
  for (std::size_t m = 0; m < model.factors.size(); ++m) mats.push_back(&open(fmt::format("mode{}.mat", m + 1)));
  write_ktensor(model, ktensor, mats, context);
  for (std::size_t m = 0; m < model.labels.size(); ++m) {
    if (model.labels[m].empty()) continue;
    io::write_labels(model.labels[m], open(io::labels_file(m)));
  }
  open("summary.json").write(summary(model, dims_of(model)));
  for (const std::unique_ptr<io::OutputFile>& file : files)
    file->flush();                  // a full disk is noticed before any has its name
  remove_leftovers(model, folder);  // before the new model: without labels is better than with those of another
  for (const std::unique_ptr<io::OutputFile>& file : files) file->commit();
}

}  // namespace polyad
