// SPDX-License-Identifier: MIT
// NumPy's .npz as PyData sparse writes a COO array (sparse/_io.py): a zip archive of
//   coords.npy [order][nnz] integers, 0-based | data.npy [nnz] | shape.npy [order] | fill_value.npy, one number, 0
// sparse.load_npz takes the nonzeros for sorted by mode 0, 1, ... and free of duplicates; they are written in the order
// of the tensor.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io/binary.hpp"
#include "io/dialect.hpp"
#include "io/npy.hpp"
#include "io/zip_archive.hpp"
#include "polyad/error.hpp"

namespace polyad::io {

namespace {

std::string text_of(std::span<const std::uint64_t> shape) {
  std::string text;
  for (const std::uint64_t n : shape) text += fmt::format("{}{}", text.empty() ? "" : " x ", n);
  return text.empty() ? "one number" : text;
}

/// The bytes of an array of at most max_order numbers.
std::vector<std::byte> read_small(ZipReader& zip, const std::string& file, const std::string& entry,
                                  NpyHeader& header) {
  zip.open(entry);
  header = read_npy_header(zip, file, entry);
  const std::uint64_t count = header.shape.empty() ? 1 : header.shape[0];
  if (header.shape.size() > 1 || count > std::uint64_t{max_order}) {
    throw file_error(
        file, 0,
        fmt::format("found {} of shape {}, expected at most {} numbers", entry, text_of(header.shape), max_order));
  }
  std::vector<std::byte> bytes(count * header.type.bytes);
  if (zip.read(bytes.data(), bytes.size()) < bytes.size()) {
    throw file_error(file, 0, fmt::format("found the end of {}, expected {} numbers", entry, count));
  }
  zip.close();
  return bytes;
}

std::vector<std::uint64_t> read_shape(ZipReader& zip, const std::string& file) {
  NpyHeader header;
  std::vector<std::byte> bytes = read_small(zip, file, "shape.npy", header);
  if (header.shape.size() != 1) throw file_error(file, 0, "found one number in shape.npy, expected one per mode");
  check_order(file, header.shape[0]);
  if (header.type.kind != ScalarKind::signed_integer && header.type.kind != ScalarKind::unsigned_integer) {
    throw file_error(file, 0, "found numbers that are no integers in shape.npy, expected dims");
  }
  const std::size_t width = header.type.bytes;
  std::vector<std::uint64_t> dims(header.shape[0]);
  for (std::size_t m = 0; m < dims.size(); ++m) {
    std::byte* const at = bytes.data() + m * width;
    if (header.type.big_endian) std::reverse(at, at + width);
    std::memcpy(&dims[m], at, width);
    const bool negative = (static_cast<unsigned>(at[width - 1]) & 0x80U) != 0;
    if (negative && header.type.kind == ScalarKind::signed_integer) {
      throw file_error(file, 0, fmt::format("found a negative dim for mode {}, expected at least 1", m + 1));
    }
  }
  return dims;
}

void check_fill_value(ZipReader& zip, const std::string& file) {
  if (!zip.find("fill_value.npy")) return;
  NpyHeader header;
  const std::vector<std::byte> bytes = read_small(zip, file, "fill_value.npy", header);
  const double fill = bytes.empty() ? 0.0 : decode(header.type, bytes.data());
  if (fill != 0)
    throw file_error(file, 0, fmt::format("found fill value {}, expected 0: the array is not sparse", fill));
}

/// Error unless the open entry is as long as its header says; both are compared before anything is allocated.
void check_array(const ZipReader& zip, const std::string& file, const std::string& entry, const NpyHeader& header,
                 std::uint64_t count, std::uint64_t record_bytes) {
  const std::uint64_t rest = zip.entry_bytes() - std::min(zip.entry_bytes(), header.bytes);
  if (rest / record_bytes == count && rest % record_bytes == 0) return;
  throw file_error(file, 0,
                   fmt::format("found {} bytes of numbers in {}, expected {} for each of {} nonzeros", rest, entry,
                               record_bytes, count));
}

bool detect(std::string_view head, std::string_view /*extension*/) { return head.starts_with("PK\x03\x04"); }

CooTensor read(InputStream& input, const ReadOptions& options, const Context& context, ReadReport& report) {
  const std::string& file = input.name();
  ZipReader zip(input, context);
  const auto coords_bytes = zip.find("coords.npy");
  const auto data_bytes = zip.find("data.npy");
  if (!coords_bytes && zip.find("indptr.npy")) {
    throw file_error(file, 0, "found compressed rows (indptr.npy), expected coordinates (coords.npy): save it as COO");
  }
  zip.set_total(coords_bytes.value_or(0) + data_bytes.value_or(0));
  std::vector<std::uint64_t> dims = read_shape(zip, file);
  check_fill_value(zip, file);
  const auto order = static_cast<std::uint64_t>(dims.size());

  zip.open("coords.npy");
  const NpyHeader coords = read_npy_header(zip, file, "coords.npy");
  if (coords.shape.size() != 2 || coords.shape[0] != order) {
    throw file_error(
        file, 0,
        fmt::format("found coords.npy of shape {}, expected {} x nnz as in shape.npy", text_of(coords.shape), order));
  }
  if (coords.type.kind != ScalarKind::signed_integer && coords.type.kind != ScalarKind::unsigned_integer) {
    throw file_error(file, 0, "found numbers that are no integers in coords.npy, expected indices");
  }
  const std::uint64_t nnz = coords.shape[1];
  const std::size_t width = coords.type.bytes;
  check_array(zip, file, "coords.npy", coords, nnz, order * width);
  RecordReader reader(file, std::move(dims), nnz, zip.is_stored(), options, context);
  std::vector<Field> fields;
  for (int m = 0; m < static_cast<int>(order); ++m)
    fields.push_back({m, coords.type, coords.fortran_order ? static_cast<std::size_t>(m) * width : 0});
  if (coords.fortran_order) {
    reader.read(zip, fields, order * width);
  } else {
    for (const Field& field : fields) reader.read(zip, {&field, 1}, width);
  }
  zip.close();

  zip.open("data.npy");
  const NpyHeader data = read_npy_header(zip, file, "data.npy");
  if (data.shape.size() != 1 || data.shape[0] != nnz) {
    throw file_error(file, 0,
                     fmt::format("found data.npy of shape {}, expected {} as in coords.npy", text_of(data.shape), nnz));
  }
  check_array(zip, file, "data.npy", data, nnz, data.type.bytes);
  const Field values{value_field, data.type, 0};
  reader.read(zip, {&values, 1}, data.type.bytes);
  zip.close();
  report.index_base = base_of(options);
  CooTensor x = reader.take();
  if (data.type.kind != ScalarKind::real && data.type.bytes == 8) {
    constexpr double exact = 9007199254740992;  // 2^53
    const bool rounded = std::visit(
        [](const auto& all) { return std::ranges::any_of(all, [](auto v) { return std::abs(v) >= exact; }); },
        x.values);
    if (rounded) report.notes.emplace_back("The values are 64-bit integers; those above 2^53 may be rounded.");
  }
  return x;
}

void write(const CooTensor& x, OutputFile& output, const WriteOptions& /*options*/, const Context& context) {
  for (std::size_t m = 0; m < x.dims.size(); ++m) {
    if (x.dims[m] > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      throw usage_error(fmt::format("npz cannot hold dim {} of mode {}: its integers end at 2^63-1", x.dims[m], m + 1));
    }
  }
  const auto order = static_cast<std::uint64_t>(x.order());
  const std::uint64_t nnz = x.nnz();
  const std::size_t value_bytes = bytes_of(x.precision());
  const std::string real = x.precision() == Precision::f32 ? "<f4" : "<f8";
  // Progress counts the checksum and the writing.
  Progress progress{"writing", 0, 2 * nnz * (order * 8 + value_bytes), "bytes"};
  // Stored, not deflated. 20 million nonzeros of order 3: 0.9 s and 640 MB, against 3.3 s and 115 MB by deflate level
  // 1; np.load takes three times as long for the latter.
  ZipWriter zip(output);
  const auto add = [&](std::string_view entry, std::string_view descr, const std::vector<std::uint64_t>& shape,
                       const std::function<void(const ByteSink&)>& numbers) {
    const std::string header = npy_header(descr, shape);
    zip.add(entry, [&](const ByteSink& sink) {
      sink(header.data(), header.size());
      numbers(sink);
    });
  };
  add("data.npy", real, {nnz}, [&](const ByteSink& sink) {
    const Field values{value_field, real_scalar(value_bytes), 0};
    write_records(x, {&values, 1}, value_bytes, sink, progress, context);
  });
  add("shape.npy", "<i8", {order}, [&](const ByteSink& sink) { sink(x.dims.data(), order * 8); });
  add("fill_value.npy", real, {}, [&](const ByteSink& sink) {
    constexpr std::array<char, 8> zero = {};
    sink(zero.data(), value_bytes);
  });
  add("coords.npy", "<i8", {order, nnz}, [&](const ByteSink& sink) {
    for (int m = 0; m < x.order(); ++m) {
      const Field indices{m, unsigned_scalar(8), 0};
      write_records(x, {&indices, 1}, 8, sink, progress, context);
    }
  });
  zip.finish();
}

}  // namespace

const Dialect npz_dialect = {.name = "npz",
                             .summary = "NumPy archive of a COO array, as PyData sparse writes it",
                             .extensions = {".npz"},
                             .is_text = false,
                             .holds_labels = false,
                             .holds_dims = true,
                             .detect = detect,
                             .read = read,
                             .write = write};

}  // namespace polyad::io
