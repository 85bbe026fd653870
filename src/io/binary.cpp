// SPDX-License-Identifier: MIT
#include "io/binary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "polyad/error.hpp"

namespace polyad::io {

namespace {

constexpr std::size_t block_bytes = std::size_t{1} << 20U;
constexpr std::uint64_t least_growth = std::uint64_t{1} << 16U;  // elements

/// Calls f(std::type_identity<T>) with the type of an integer (a boolean is a byte).
template <class F>
decltype(auto) with_integer(Scalar type, F&& f) {
  const bool is_signed = type.kind == ScalarKind::signed_integer;
  switch (type.bytes) {
    case 1:
      return is_signed ? f(std::type_identity<std::int8_t>{}) : f(std::type_identity<std::uint8_t>{});
    case 2:
      return is_signed ? f(std::type_identity<std::int16_t>{}) : f(std::type_identity<std::uint16_t>{});
    case 4:
      return is_signed ? f(std::type_identity<std::int32_t>{}) : f(std::type_identity<std::uint32_t>{});
    default:
      return is_signed ? f(std::type_identity<std::int64_t>{}) : f(std::type_identity<std::uint64_t>{});
  }
}

template <class F>
decltype(auto) with_scalar(Scalar type, F&& f) {
  if (type.kind != ScalarKind::real) return with_integer(type, std::forward<F>(f));
  return type.bytes == 4 ? f(std::type_identity<float>{}) : f(std::type_identity<double>{});
}

/// Calls f(step): with a constant when the numbers lie side by side, so that the loop over them vectorises.
template <class File, class F>
void with_stride(std::size_t stride, F&& f) {
  if (stride == sizeof(File)) {
    f(std::integral_constant<std::size_t, sizeof(File)>{});
  } else {
    f(stride);
  }
}

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

void swap_bytes(std::byte* from, std::size_t stride, std::size_t count, std::size_t width) {
  for (std::size_t k = 0; k < count; ++k) std::reverse(from + k * stride, from + k * stride + width);
}

/// to[k] = from[k] - base; false when one of them is not in [0, dim).
template <class File, class Index>
bool convert_indices(const std::byte* from, std::size_t stride, std::size_t count, std::uint64_t base,
                     std::uint64_t dim, Index* to) {
  // Narrow arithmetic where it suffices. Base 1 turns index 0 into the largest number, which is never below a dim.
  using Work = std::conditional_t<sizeof(File) <= 4 && sizeof(Index) == 4, std::uint32_t, std::uint64_t>;
  const auto b = static_cast<Work>(base);
  const auto d = static_cast<Work>(dim);
  bool bad = false;
  with_stride<File>(stride, [&](auto step) {
    for (std::size_t k = 0; k < count; ++k) {
      const auto i = load<File>(from + k * step);
      const auto w = static_cast<Work>(static_cast<Work>(i) - b);
      bad |= w >= d;
      if constexpr (std::is_signed_v<File>) bad |= i < 0;
      to[k] = static_cast<Index>(w);
    }
  });
  return !bad;
}

/// to[k] = from[k]; false when the type of `to` cannot hold one of them: not finite, or 0 for what is not 0.
template <class File, class Value>
bool convert_values(const std::byte* from, std::size_t stride, std::size_t count, Value* to) {
  bool bad = false;
  with_stride<File>(stride, [&](auto step) {
    for (std::size_t k = 0; k < count; ++k) {
      const File source = load<File>(from + k * step);
      const auto v = static_cast<Value>(source);
      if constexpr (std::is_floating_point_v<File>)
        bad |= !(std::abs(v) <= std::numeric_limits<Value>::max()) || (v == 0 && source != 0);
      to[k] = v;
    }
  });
  return !bad;
}

template <class File>
[[noreturn]] void refuse_index(const std::string& file, const std::byte* from, std::size_t stride, std::uint64_t first,
                               int mode, std::uint64_t base, std::uint64_t dim) {
  for (std::size_t k = 0;; ++k) {
    const auto i = load<File>(from + k * stride);
    const std::uint64_t w = static_cast<std::uint64_t>(i) - base;
    bool good = w < dim;
    if constexpr (std::is_signed_v<File>) good = good && i >= 0;
    if (good) continue;
    throw file_error(file, 0,
                     fmt::format("found index {} in mode {} of nonzero {}, expected {} to {}", i, mode + 1,
                                 first + k + 1, base, dim - 1 + base));
  }
}

template <class File, class Value>
[[noreturn]] void refuse_value(const std::string& file, const std::byte* from, std::size_t stride,
                               std::uint64_t first) {
  for (std::size_t k = 0;; ++k) {
    const auto v = load<File>(from + k * stride);
    if (std::isfinite(static_cast<Value>(v))) continue;
    if (!std::isfinite(v)) {
      throw file_error(file, 0,
                       fmt::format("found value {} in nonzero {}, expected a finite number", v, first + k + 1));
    }
    throw file_error(file, 0,
                     fmt::format("found value {} in nonzero {}, expected at most {} in magnitude to hold it as f32", v,
                                 first + k + 1, std::numeric_limits<float>::max()));
  }
}

std::vector<std::uint64_t> checked_dims(const std::string& file, std::vector<std::uint64_t> dims,
                                        const ReadOptions& options) {
  check_order(file, dims.size());
  if (!options.dims.empty()) {
    if (options.dims.size() != dims.size()) {
      throw file_error(
          file, 0, fmt::format("found order {}, expected {} as in the given dims", dims.size(), options.dims.size()));
    }
    dims = options.dims;
  }
  for (std::size_t m = 0; m < dims.size(); ++m) {
    if (dims[m] == 0) throw file_error(file, 0, fmt::format("found dim 0 for mode {}, expected at least 1", m + 1));
  }
  return dims;
}

std::string what_of(std::span<const Field> fields) {
  if (fields.size() > 1) return "nonzeros";
  return fields[0].mode == value_field ? "values" : fmt::format("indices of mode {}", fields[0].mode + 1);
}

}  // namespace

RecordReader::RecordReader(std::string file, std::vector<std::uint64_t> dims, std::uint64_t nnz, bool nnz_is_proved,
                           const ReadOptions& options, const Context& context)
    : file_(std::move(file)),
      nnz_(nnz),
      base_(static_cast<std::uint64_t>(base_of(options))),
      context_(&context),
      x_(make_coo(checked_dims(file_, std::move(dims), options), nnz_is_proved ? nnz : 0, options.precision, context)) {
}

void RecordReader::make_room(const Field& field, std::uint64_t count) {
  const auto grow = [&](auto& buffer, std::string_view purpose) {
    if (buffer.size() >= count) return;
    buffer.resize(std::min(nnz_, std::max({count, 2 * std::uint64_t{buffer.size()}, least_growth})), purpose);
  };
  if (field.mode == value_field) {
    std::visit([&](auto& b) { grow(b, "the array of values"); }, x_.values);
  } else {
    std::visit([&](auto& b) { grow(b, fmt::format("the index array of mode {}", field.mode + 1)); },
               x_.indices[static_cast<std::size_t>(field.mode)]);
  }
}

void RecordReader::convert(const Field& field, const std::byte* from, std::size_t stride, std::size_t count,
                           std::uint64_t first) {
  if (field.mode == value_field) {
    std::visit(
        [&]<class Value>(Buffer<Value>& to) {
          with_scalar(field.type, [&]<class File>(std::type_identity<File>) {
            if (convert_values<File>(from, stride, count, to.data() + first)) return;
            if constexpr (std::is_floating_point_v<File>) refuse_value<File, Value>(file_, from, stride, first);
          });
          if (field.type.kind == ScalarKind::boolean) {  // any byte but 0 is true
            for (std::size_t k = 0; k < count; ++k) to[first + k] = to[first + k] == 0 ? Value{0} : Value{1};
          }
        },
        x_.values);
    return;
  }
  const auto m = static_cast<std::size_t>(field.mode);
  std::visit(
      [&](auto& to) {
        with_integer(field.type, [&]<class File>(std::type_identity<File>) {
          if (convert_indices<File>(from, stride, count, base_, x_.dims[m], to.data() + first)) return;
          refuse_index<File>(file_, from, stride, first, field.mode, base_, x_.dims[m]);
        });
      },
      x_.indices[m]);
}

void RecordReader::read(ByteSource& from, std::span<const Field> fields, std::size_t record_bytes) {
  const std::size_t per_block = block_bytes / record_bytes;
  std::vector<std::byte> block(std::min<std::uint64_t>(per_block, nnz_) * record_bytes);
  for (std::uint64_t done = 0; done < nnz_;) {
    const std::size_t count = std::min<std::uint64_t>(per_block, nnz_ - done);
    const std::size_t got = from.read(block.data(), count * record_bytes);
    if (got < count * record_bytes) {
      throw file_error(file_, 0,
                       fmt::format("found the end of the data after {} {}, expected {}", done + got / record_bytes,
                                   what_of(fields), nnz_));
    }
    for (const Field& field : fields) {
      make_room(field, done + count);
      std::byte* const begin = block.data() + field.offset;
      if (field.type.big_endian) swap_bytes(begin, record_bytes, count, field.type.bytes);
      convert(field, begin, record_bytes, count, done);
    }
    done += count;
    context_->report(from.progress());
  }
}

void write_records(const CooTensor& x, std::span<const Field> fields, std::size_t record_bytes, const ByteSink& to,
                   Progress& progress, const Context& context) {
  const std::uint64_t nnz = x.nnz();
  const std::size_t per_block = block_bytes / record_bytes;
  std::vector<std::byte> block(std::min<std::uint64_t>(per_block, nnz) * record_bytes);
  for (std::uint64_t done = 0; done < nnz;) {
    const std::size_t count = std::min<std::uint64_t>(per_block, nnz - done);
    for (const Field& field : fields) {
      const auto gather = [&](const auto& from) {
        with_scalar(field.type, [&]<class File>(std::type_identity<File>) {
          std::byte* const begin = block.data() + field.offset;
          with_stride<File>(record_bytes, [&](auto step) {
            for (std::size_t k = 0; k < count; ++k) {
              const auto v = static_cast<File>(from[done + k]);
              std::memcpy(begin + k * step, &v, sizeof v);
            }
          });
        });
      };
      if (field.mode == value_field) {
        std::visit(gather, x.values);
      } else {
        std::visit(gather, x.indices[static_cast<std::size_t>(field.mode)]);
      }
    }
    to(block.data(), count * record_bytes);
    done += count;
    progress.done += count * record_bytes;
    context.report(progress);
  }
}

double decode(Scalar type, const std::byte* from) {
  std::byte bytes[8] = {};
  std::memcpy(bytes, from, type.bytes);
  if (type.big_endian) std::reverse(bytes, bytes + type.bytes);
  return with_scalar(type,
                     [&]<class File>(std::type_identity<File>) { return static_cast<double>(load<File>(bytes)); });
}

void check_order(std::string_view file, std::uint64_t order) {
  if (order >= 1 && order <= std::uint64_t{max_order}) return;
  throw file_error(file, 0, fmt::format("found order {}, expected 1 to {}", order, max_order));
}

int base_of(const ReadOptions& options) {
  const int base = options.index_base.value_or(0);
  if (base != 0 && base != 1) throw usage_error(fmt::format("found index base {}, expected 0 or 1", base));
  return base;
}

bool check_size(const InputStream& input, std::uint64_t nnz, std::uint64_t record_bytes) {
  const auto total = input.total_bytes();
  if (!total) return false;
  const std::uint64_t rest = *total - std::min(*total, input.position());
  if (rest / record_bytes != nnz || rest % record_bytes != 0) {
    throw file_error(
        input.name(), 0,
        fmt::format("found {} bytes after the header, expected {} for each of {} nonzeros", rest, record_bytes, nnz));
  }
  return true;
}

void check_end(InputStream& input) {
  if (input.peek(1).empty()) return;
  throw file_error(
      input.name(), 0,
      fmt::format("found more data after the last nonzero, expected the end at byte {}", input.position()));
}

std::uint64_t take_unsigned(InputStream& input, Scalar type) {
  return type.bytes == 4 ? take<std::uint32_t>(input) : take<std::uint64_t>(input);
}

void append_unsigned(std::string& header, Scalar type, std::uint64_t value) {
  if (type.bytes == 4) {
    append(header, static_cast<std::uint32_t>(value));
  } else {
    append(header, value);
  }
}

CooTensor read_columns(InputStream& input, std::uint64_t order, Scalar index, Scalar value, const ReadOptions& options,
                       const Context& context, ReadReport& report) {
  check_order(input.name(), order);
  std::vector<std::uint64_t> dims(order);
  for (auto& d : dims) d = take_unsigned(input, index);
  const std::uint64_t nnz = take_unsigned(input, index);
  const bool proved = check_size(input, nnz, order * index.bytes + value.bytes);
  RecordReader reader(input.name(), std::move(dims), nnz, proved, options, context);
  StreamSource source(input);
  for (int m = 0; m < static_cast<int>(order); ++m) {
    const Field indices{m, index, 0};
    reader.read(source, {&indices, 1}, index.bytes);
  }
  const Field values{value_field, value, 0};
  reader.read(source, {&values, 1}, value.bytes);
  check_end(input);
  report.index_base = base_of(options);
  return reader.take();
}

void write_columns(const CooTensor& x, Scalar index, Scalar value, OutputFile& output, const Context& context) {
  std::string header;
  for (const std::uint64_t d : x.dims) append_unsigned(header, index, d);
  append_unsigned(header, index, x.nnz());
  output.write(header);
  const auto order = static_cast<std::uint64_t>(x.order());
  Progress progress{"writing", 0, x.nnz() * (order * index.bytes + value.bytes), "bytes"};
  const ByteSink sink = [&](const void* from, std::size_t n) { output.write(from, n); };
  for (int m = 0; m < x.order(); ++m) {
    const Field indices{m, index, 0};
    write_records(x, {&indices, 1}, index.bytes, sink, progress, context);
  }
  const Field values{value_field, value, 0};
  write_records(x, {&values, 1}, value.bytes, sink, progress, context);
}

}  // namespace polyad::io
