// SPDX-License-Identifier: MIT
#include "io/npy.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <charconv>
#include <optional>

#include "io/shown.hpp"
#include "polyad/error.hpp"

namespace polyad::io {

namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::size_t largest_header = 1U << 16U;  // far above what an array without named fields needs
constexpr std::size_t largest_shape = 64;          // NumPy's own limit on the number of axes

/// What follows "'key':" in the text of a Python dict, or nothing.
std::optional<std::string_view> value_of(std::string_view dict, std::string_view key) {
  for (const char quote : {'\'', '"'}) {
    const std::string quoted = fmt::format("{0}{1}{0}", quote, key);
    auto at = dict.find(quoted);
    if (at == std::string_view::npos) continue;
    at = dict.find_first_not_of(" ", at + quoted.size());
    if (at == std::string_view::npos || dict[at] != ':') continue;
    at = dict.find_first_not_of(" ", at + 1);
    if (at != std::string_view::npos) return dict.substr(at);
  }
  return std::nullopt;
}

/// '<i8' -> a signed integer of 8 bytes.
std::optional<Scalar> scalar_of(std::string_view descr) {
  if (descr.size() != 3 || (descr[0] != '<' && descr[0] != '>' && descr[0] != '|' && descr[0] != '=')) {
    return std::nullopt;
  }
  Scalar type;
  type.bytes = static_cast<std::uint8_t>(descr[2] - '0');
  type.big_endian = descr[0] == '>';
  switch (descr[1]) {
    case 'b':
      type.kind = ScalarKind::boolean;
      return type.bytes == 1 ? std::optional(type) : std::nullopt;
    case 'i':
    case 'u':
      type.kind = descr[1] == 'i' ? ScalarKind::signed_integer : ScalarKind::unsigned_integer;
      return type.bytes == 1 || type.bytes == 2 || type.bytes == 4 || type.bytes == 8 ? std::optional(type)
                                                                                      : std::nullopt;
    case 'f':
      type.kind = ScalarKind::real;
      return type.bytes == 4 || type.bytes == 8 ? std::optional(type) : std::nullopt;
    default:
      return std::nullopt;
  }
}

/// "(3, 100), ..." -> 3, 100. Python 2 wrote 3L.
std::optional<std::vector<std::uint64_t>> shape_of(std::string_view text) {
  if (!text.starts_with('(')) return std::nullopt;
  const auto end = text.find(')');
  if (end == std::string_view::npos) return std::nullopt;
  text = text.substr(1, end - 1);
  std::vector<std::uint64_t> shape;
  while (true) {
    const auto at = text.find_first_not_of(" ,L");
    if (at == std::string_view::npos) return shape;
    std::uint64_t n = 0;
    const auto [rest, code] = std::from_chars(text.data() + at, text.data() + text.size(), n);
    if (code != std::errc{} || shape.size() == largest_shape) return std::nullopt;
    shape.push_back(n);
    text = text.substr(static_cast<std::size_t>(rest - text.data()));
  }
}

/// '<U5' -> 5 characters.
std::optional<NpyTextHeader> text_type_of(std::string_view descr) {
  if (descr.size() < 3 || (descr[0] != '<' && descr[0] != '>' && descr[0] != '=') || descr[1] != 'U')
    return std::nullopt;
  std::uint32_t width = 0;
  const auto [rest, code] = std::from_chars(descr.data() + 2, descr.data() + descr.size(), width);
  if (code != std::errc{} || rest != descr.data() + descr.size()) return std::nullopt;
  NpyTextHeader header;
  header.width = width;
  header.big_endian = descr[0] == '>';
  return header;
}

Error failure(std::string_view file, std::string_view array, const std::string& sentence) {
  return file_error(file, 0, fmt::format("{}: {}", array, sentence));
}

/// What every header says.
struct Dict {
  std::string descr;  // without quotation marks; "with named fields" when it is no word
  bool is_word = false;
  bool fortran_order = false;
  std::vector<std::uint64_t> shape;
  std::uint64_t bytes = 0;
};

Dict read_dict(ByteSource& from, std::string_view file, std::string_view array) {
  const auto fail = [&](const std::string& sentence) { return failure(file, array, sentence); };
  std::array<char, 8> start = {};
  const std::size_t got = from.read(start.data(), start.size());
  if (got < start.size() || !std::string_view(start.data(), start.size()).starts_with(magic)) {
    throw fail("found other first bytes, expected a NumPy array");
  }
  const int version = static_cast<unsigned char>(start[6]);
  if (version < 1 || version > 3) throw fail(fmt::format("found npy version {}, expected 1, 2 or 3", version));
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  std::uint32_t length = 0;
  if (from.read(&length, length_bytes) < length_bytes) throw fail("found the end of the data, expected its header");
  if (length > largest_header) {
    throw fail(fmt::format("found a header of {} bytes, expected at most {}", length, largest_header));
  }
  std::string text(length, '\0');
  if (from.read(text.data(), length) < length) throw fail("found the end of the data, expected its header");

  Dict dict;
  dict.bytes = start.size() + length_bytes + length;
  const auto descr = value_of(text, "descr");
  const auto order = value_of(text, "fortran_order");
  const auto shape = value_of(text, "shape");
  if (!descr || !order || !shape)
    throw fail("found a header without descr, fortran_order and shape, expected all three");
  const char quote = descr->front();
  const auto end = descr->find(quote, 1);
  dict.is_word = (quote == '\'' || quote == '"') && end != std::string_view::npos;
  dict.descr = dict.is_word ? descr->substr(1, end - 1) : "with named fields";
  dict.fortran_order = order->starts_with("True");
  if (!dict.fortran_order && !order->starts_with("False")) throw fail("found no fortran_order, expected True or False");
  auto lengths = shape_of(*shape);
  if (!lengths) throw fail("found a shape that is no tuple of lengths, expected one");
  dict.shape = std::move(*lengths);
  return dict;
}

Error other_type(std::string_view file, std::string_view array, const Dict& dict, std::string_view expected) {
  const std::string found = dict.is_word ? fmt::format("'{}'", shown(dict.descr)) : dict.descr;
  return failure(file, array, fmt::format("found type {}, expected {}", found, expected));
}

}  // namespace

NpyHeader read_npy_header(ByteSource& from, std::string_view file, std::string_view array) {
  Dict dict = read_dict(from, file, array);
  const auto type = dict.is_word ? scalar_of(dict.descr) : std::nullopt;
  if (!type) throw other_type(file, array, dict, "an integer, a boolean, f4 or f8");
  return {*type, dict.fortran_order, std::move(dict.shape), dict.bytes};
}

NpyTextHeader read_npy_text_header(ByteSource& from, std::string_view file, std::string_view array) {
  Dict dict = read_dict(from, file, array);
  auto header = dict.is_word ? text_type_of(dict.descr) : std::nullopt;
  if (!header) throw other_type(file, array, dict, "text such as '<U20'");
  header->shape = std::move(dict.shape);
  header->bytes = dict.bytes;
  return *header;
}

std::string npy_header(std::string_view descr, std::span<const std::uint64_t> shape) {
  std::string dict = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", descr,
                                 fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  // The numbers begin at a multiple of 64 bytes.
  constexpr std::size_t before = 10;  // magic, version, length
  const std::size_t total = (before + dict.size() + 1 + 63) / 64 * 64;
  dict.append(total - before - dict.size() - 1, ' ');
  dict.push_back('\n');
  std::string header(magic);
  header += '\x01';
  header += '\0';
  append(header, static_cast<std::uint16_t>(dict.size()));
  return header + dict;
}

}  // namespace polyad::io
