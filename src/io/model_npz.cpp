// SPDX-License-Identifier: MIT
// A model as NumPy reads it: lambda.npy [rank], mode1.npy [dim][rank], mode2.npy, ... in a zip archive (np.savez).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "io/input_stream.hpp"
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
  std::vector<double> values;  // in C order
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
    std::vector<double> by_rows(array.values.size());
    for (std::uint64_t i = 0; i < rows; ++i)
      for (std::uint64_t r = 0; r < cols; ++r) by_rows[i * cols + r] = array.values[r * rows + i];
    array.values = std::move(by_rows);
  }
  return array;
}

std::string entry_of(std::size_t mode) { return fmt::format("mode{}.npy", mode + 1); }

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
    total += *zip.find(entry_of(order));
  zip.set_total(total);

  ModelMemory memory(context);
  CpModel model;
  model.weights = read_array(zip, file, "lambda.npy", 1, memory, context).values;
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
  return model;
}

void write_npz_model(const CpModel& model, const std::string& path, const Context& context) {
  OutputFile file(path, Compression::none, context.cancelled);
  ZipWriter zip(file);
  const auto add = [&](std::string_view entry, const std::vector<std::uint64_t>& shape,
                       const std::vector<double>& values) {
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
  zip.finish();
  file.commit();
}

}  // namespace polyad::io
