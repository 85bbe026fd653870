// SPDX-License-Identifier: MIT
/// \file A model as NumPy reads it: lambda.npy [rank], mode1.npy [dim][rank], mode2.npy, ... in a zip archive
/// (np.savez); text of labels as fixed-width Unicode in mode1_labels.npy [dim], ... and mode_names.npy [order].
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <vector>

#include "io/input_stream.hpp"
#include "io/label_text.hpp"
#include "io/model_files.hpp"
#include "io/npy.hpp"
#include "io/output_file.hpp"
#include "io/zip_archive.hpp"
#include "polyad/error.hpp"
#include "polyad/types.hpp"

namespace polyad::io {

namespace {

struct Array {
  std::vector<std::uint64_t> shape;
  LargeVector<double> values;  // in C order
};

/// Reads an array of 1 or 2 axes. The numbers grow with the bytes that arrive: a deflated entry's size is a promise.
Array read_array(ZipReader& zip, const std::string& file, const std::string& entry, std::size_t axes,
                 ModelMemory& memory, const Context& context) {
  zip.open(entry);
  const NpyHeader header = read_npy_header(zip, file, entry);
  const std::string shape = fmt::format("{}", fmt::join(header.shape, " x "));
  if (header.shape.size() != axes || std::ranges::count(header.shape, std::uint64_t{0}) > 0)
    throw file_error(file, 0,
                     fmt::format("found {} of shape {}, expected {}", entry, shape.empty() ? "()" : shape,
                                 axes == 1 ? "one number per component" : "dim x rank"));
  const std::size_t width = header.type.bytes;
  const std::uint64_t bytes = zip.entry_bytes() - std::min(zip.entry_bytes(), header.bytes);
  std::uint64_t count = bytes / width;
  bool fits = bytes % width == 0;
  for (const std::uint64_t n : header.shape) {
    fits = fits && count % n == 0;
    count /= n;
  }
  if (!fits || count != 1)
    throw file_error(file, 0,
                     fmt::format("found {} bytes of numbers in {}, expected {} x {}", bytes, entry, shape, width));

  Array array{header.shape, {}};
  std::vector<std::byte> chunk(width << 15U);
  for (std::uint64_t left = bytes; left > 0;) {
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(left, chunk.size()));
    if (zip.read(chunk.data(), part) < part)
      throw file_error(file, 0, fmt::format("found the end of {}, expected {} more bytes", entry, left));
    memory.add(part / width);
    for (std::size_t k = 0; k < part; k += width) {
      const double value = decode(header.type, chunk.data() + k);
      if (!std::isfinite(value))
        throw file_error(file, 0, fmt::format("found {} in {}, expected finite numbers", value, entry));
      array.values.push_back(value);
    }
    left -= part;
    context.report(zip.progress());
  }
  zip.close();
  if (axes == 2 && header.fortran_order) {
    const std::uint64_t rows = header.shape[0];
    const std::uint64_t cols = header.shape[1];
    LargeVector<double> by_rows(array.values.size());
    for (std::uint64_t i = 0; i < rows; ++i)
      for (std::uint64_t r = 0; r < cols; ++r) by_rows[i * cols + r] = array.values[r * rows + i];
    array.values = std::move(by_rows);
  }
  return array;
}

/// NumPy fills texts up with zeros, so that a NUL at the end would go: it is written as the byte that it is (see
/// append_character).
constexpr std::uint32_t escaped_nul = 0xDC00;

/// Calls put(text) for each of `count` texts. They grow with the characters that arrive: the width may be a lie.
void read_texts(ZipReader& zip, const std::string& file, const std::string& entry, std::uint64_t count,
                ModelMemory& memory, const Context& context, const std::function<void(std::string_view)>& put) {
  zip.open(entry);
  const NpyTextHeader header = read_npy_text_header(zip, file, entry);
  if (header.shape.size() != 1 || header.shape[0] != count)
    throw file_error(
        file, 0, fmt::format("found {} of shape ({}), expected {} texts", entry, fmt::join(header.shape, ", "), count));
  const std::uint64_t bytes = zip.entry_bytes() - std::min(zip.entry_bytes(), header.bytes);
  const std::uint64_t width = header.width * sizeof(std::uint32_t);
  if (width == 0 ? bytes != 0 : bytes % width != 0 || bytes / width != count)
    throw file_error(file, 0,
                     fmt::format("found {} bytes of text in {}, expected {} x {}", bytes, entry, count, width));
  for (std::uint64_t i = 0; i < count && width == 0; ++i) put("");

  std::string text;
  std::uint64_t nuls = 0;        // not yet known whether they end the text
  std::uint64_t characters = 0;  // of the text at hand
  std::vector<std::uint32_t> chunk(std::size_t{1} << 14U);
  for (std::uint64_t left = bytes; left > 0;) {
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(left, chunk.size() * sizeof chunk[0]));
    if (zip.read(chunk.data(), part) < part)
      throw file_error(file, 0, fmt::format("found the end of {}, expected {} more bytes", entry, left));
    for (std::size_t k = 0; k < part / sizeof chunk[0]; ++k) {
      const std::uint32_t character = header.big_endian ? __builtin_bswap32(chunk[k]) : chunk[k];
      if (character == 0) {
        ++nuls;
      } else {
        if (text.size() + nuls > longest_label)
          throw file_error(file, 0, fmt::format("found a text of more than {} MB in {}", longest_label >> 20U, entry));
        text.append(nuls, '\0');
        nuls = 0;
        if (!append_character(text, character))
          throw file_error(file, 0, fmt::format("found U+{:04X} in {}, expected characters", character, entry));
      }
      if (++characters < header.width) continue;
      memory.add_label(text.size());
      put(text);
      text.clear();
      nuls = 0;
      characters = 0;
    }
    left -= part;
    context.report(zip.progress());
  }
  zip.close();
}

/// Adds an array of `count` texts.
void add_texts(ZipWriter& zip, const std::string& entry, std::uint64_t count,
               const std::function<std::string_view(std::size_t)>& text_of) {
  std::uint64_t width = 1;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t characters = 0;
    for (std::size_t at = 0; at < text_of(i).size(); ++characters) (void)next_character(text_of(i), at);
    width = std::max(width, characters);
  }
  // One long label makes all of them long.
  constexpr std::uint64_t most = std::uint64_t{1} << 34U;
  if (width > longest_label || count > most / (width * sizeof(std::uint32_t)))
    throw Error(ErrorKind::limit,
                fmt::format("{} would be {} texts of {} characters each, which is too much for a NumPy "
                            "array; write the model as a directory or .json",
                            entry, count, width));
  const std::string header = npy_header(fmt::format("<U{}", width), std::vector<std::uint64_t>{count});
  zip.add(entry, [&](const ByteSink& sink) {
    sink(header.data(), header.size());
    std::vector<std::uint32_t> characters;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t end = characters.size() + width;
      for (std::size_t at = 0; at < text_of(i).size();) {
        const std::uint32_t character = next_character(text_of(i), at);
        characters.push_back(character == 0 ? escaped_nul : character);
      }
      characters.resize(end);
      if (end < (1U << 14U) && i + 1 < count) continue;
      sink(characters.data(), characters.size() * sizeof characters[0]);
      characters.clear();
    }
  });
}

std::string entry_of(std::size_t mode) { return fmt::format("mode{}.npy", mode + 1); }
std::string labels_entry_of(std::size_t mode) { return fmt::format("mode{}_labels.npy", mode + 1); }
constexpr const char* names_entry = "mode_names.npy";

/// Reads the labels and names that there are.
void read_texts_of(CpModel& model, ZipReader& zip, const std::string& file, ModelMemory& memory,
                   const Context& context) {
  model.labels.assign(model.factors.size(), {});
  if (zip.find(names_entry)) {
    std::size_t mode = 0;
    read_texts(zip, file, names_entry, model.labels.size(), memory, context,
               [&](std::string_view name) { model.labels[mode++].set_name(std::string(name)); });
  }
  for (std::size_t m = 0; m < model.labels.size(); ++m)
    if (zip.find(labels_entry_of(m)))
      read_texts(zip, file, labels_entry_of(m), model.factors[m].rows, memory, context,
                 [&](std::string_view label) { model.labels[m].push_back(label); });
  drop_empty_labels(model);
}

}  // namespace

bool is_npz(std::string_view path) { return path.ends_with(".npz"); }

CpModel read_npz_model(const std::string& path, const Context& context) {
  InputStream input(path, context.cancelled);
  const std::string& file = input.name();
  ZipReader zip(input, context);
  if (!zip.find("lambda.npy") || !zip.find("mode1.npy"))
    throw file_error(file, 0, "found no arrays lambda and mode1, expected a model: lambda, mode1, mode2, ...");
  std::uint64_t total = zip.find("lambda.npy").value_or(0);
  std::size_t order = 0;
  for (; order < static_cast<std::size_t>(max_order) && zip.find(entry_of(order)); ++order)
    total += *zip.find(entry_of(order)) + zip.find(labels_entry_of(order)).value_or(0);
  zip.set_total(total);

  ModelMemory memory(context);
  CpModel model;
  const Array lambda = read_array(zip, file, "lambda.npy", 1, memory, context);
  model.weights.assign(lambda.values.begin(), lambda.values.end());
  for (std::size_t m = 0; m < order; ++m) {
    Array a = read_array(zip, file, entry_of(m), 2, memory, context);
    if (a.shape[1] != model.rank())
      throw file_error(
          file, 0,
          fmt::format("found {} columns in {}, expected {} as in lambda.npy", a.shape[1], entry_of(m), model.rank()));
    Matrix& factor = model.factors.emplace_back();
    factor.rows = a.shape[0];
    factor.cols = a.shape[1];
    factor.values = std::move(a.values);
  }
  read_texts_of(model, zip, file, memory, context);
  return model;
}

void write_npz_model(const CpModel& model, const std::string& path, const Context& context) {
  OutputFile file(path, Compression::none, context.cancelled);
  ZipWriter zip(file);
  const auto add = [&](std::string_view entry, const std::vector<std::uint64_t>& shape,
                       std::span<const double> values) {
    const std::string header = npy_header("<f8", shape);
    zip.add(entry, [&](const ByteSink& sink) {
      sink(header.data(), header.size());
      sink(values.data(), values.size() * sizeof(double));
    });
  };
  add("lambda.npy", {model.rank()}, model.weights);
  for (std::size_t m = 0; m < model.factors.size(); ++m) {
    add(entry_of(m), {model.factors[m].rows, model.factors[m].cols}, model.factors[m].values);
    context.report({"writing", m + 1, model.factors.size(), "matrices"});
  }
  for (std::size_t m = 0; m < model.labels.size(); ++m)
    if (const ModeLabels& labels = model.labels[m]; !labels.empty())
      add_texts(zip, labels_entry_of(m), labels.size(), [&](std::size_t i) { return labels[i]; });
  if (std::ranges::any_of(model.labels, [](const ModeLabels& labels) { return !labels.name().empty(); }))
    add_texts(zip, names_entry, model.labels.size(),
              [&](std::size_t m) { return std::string_view(model.labels[m].name()); });
  zip.finish();
  file.commit();
}

}  // namespace polyad::io
