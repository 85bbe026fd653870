// SPDX-License-Identifier: MIT
#include "io/ptn_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "polyad/error.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace polyad::io::ptn {

namespace {

constexpr std::uint64_t checksum_bytes = sizeof(std::uint64_t);

template <class T>
void append(std::string& text, const T& value) {
  const std::size_t at = text.size();
  text.resize(at + sizeof(T));
  std::memcpy(text.data() + at, &value, sizeof(T));
}

template <class T>
T load(std::span<const std::byte> bytes, std::uint64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

/// Does an array of `count` elements fill `bytes` exactly? Without overflow, whatever the numbers claim.
bool fills(std::uint64_t count, std::uint64_t width, std::uint64_t bytes) {
  return bytes % width == 0 && bytes / width == count;
}

/// Turns the verified bytes of a head into a Head, distrusting what they claim.
class HeadParser {
 public:
  HeadParser(std::span<const std::byte> file, std::string_view name, const FixedHead& fixed)
      : file_(file), name_(name), fixed_(fixed) {}

  Head parse() {
    head_.minor = fixed_.minor_version;
    head_.nnz = fixed_.nnz;
    head_.head_bytes = fixed_.head_bytes;
    head_.file_bytes = fixed_.file_bytes;
    head_.duplicates_merged = (fixed_.flags & flag_duplicates_merged) != 0;
    parse_shape();
    parse_sections();
    check_pairs();
    return std::move(head_);
  }

 private:
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    throw file_error(name_, 0, fmt::format(format, std::forward<Args>(args)...));
  }

  void parse_shape() {
    if (fixed_.order == 0 || fixed_.order > static_cast<std::uint32_t>(max_order))
      refuse("has {} modes, expected 1 to {}", fixed_.order, max_order);
    const std::uint64_t least = sizeof(FixedHead) + 8ULL * fixed_.order +
                                std::uint64_t{fixed_.sections} * sizeof(SectionRecord) + checksum_bytes;
    if (fixed_.head_bytes < least)
      refuse("its header of {} bytes is too short for {} modes and {} sections", fixed_.head_bytes, fixed_.order,
             fixed_.sections);
    for (std::uint32_t m = 0; m < fixed_.order; ++m) {
      head_.dims.push_back(load<std::uint64_t>(file_, sizeof(FixedHead) + 8ULL * m));
      if (head_.dims.back() == 0) refuse("mode {} has length 0, expected at least 1", m + 1);
    }
    if (fixed_.sorted_modes > fixed_.order)
      refuse("says that it is sorted by {} modes but has {}", fixed_.sorted_modes, fixed_.order);
    for (std::uint32_t i = 0; i < fixed_.sorted_modes; ++i) {
      const int mode = fixed_.sorted_by[i];
      if (mode >= head_.order() || std::ranges::count(head_.sorted_by, mode) > 0)
        refuse("the list of modes that it is sorted by is not a list of different modes (mode {} at place {})",
               mode + 1, i + 1);
      head_.sorted_by.push_back(mode);
    }
  }

  void parse_sections() {
    const std::uint64_t table = sizeof(FixedHead) + 8ULL * fixed_.order;
    std::uint64_t end = head_.head_bytes;
    std::uint64_t chunks = 0;
    head_.sections.reserve(fixed_.sections);  // the table lies in the file: no more than its bytes
    for (std::uint32_t i = 0; i < fixed_.sections; ++i) {
      const auto record = load<SectionRecord>(file_, table + std::uint64_t{i} * sizeof(SectionRecord));
      Section s{.kind = static_cast<Kind>(record.kind),
                .mode = record.mode,
                .width = record.width,
                .offset = record.offset,
                .bytes = record.bytes,
                .first_checksum = chunks};
      // `end` is at most the length of the file, which is far from the end of the numbers.
      if (s.offset != aligned(end))
        refuse("{} should begin at byte {} but the section table says {}", s.name(), aligned(end), s.offset);
      if (s.offset > head_.file_bytes || s.bytes > head_.file_bytes - s.offset)
        refuse("{} should have {} bytes from byte {} on but the file has {} bytes", s.name(), s.bytes, s.offset,
               head_.file_bytes);
      end = s.offset + s.bytes;
      chunks += s.chunks();
      check_section(s, record);
      head_.sections.push_back(s);
    }
    if (end != head_.file_bytes) refuse("its sections end at byte {} but the file has {} bytes", end, head_.file_bytes);
    const std::uint64_t sums = table + std::uint64_t{fixed_.sections} * sizeof(SectionRecord);
    if (head_.head_bytes != sums + 8 * chunks + checksum_bytes)
      refuse("its header has {} bytes, expected {} for {} sections of {} chunks", head_.head_bytes,
             sums + 8 * chunks + checksum_bytes, fixed_.sections, chunks);
    head_.checksums.resize(chunks);
    if (chunks > 0) std::memcpy(head_.checksums.data(), file_.data() + sums, 8 * chunks);
  }

  void check_section(const Section& s, const SectionRecord& record) {
    if (record.kind == 0 || record.kind > static_cast<std::uint32_t>(Kind::label_text)) {
      if ((record.flags & flag_needed) != 0)
        refuse(
            "cannot be understood without {}, which this polyad does not know: it needs a later one (file version "
            "{}.{}, this one reads {}.{})",
            s.name(), major_version, head_.minor, major_version, minor_version);
      return;
    }
    if (s.mode >= (s.kind == Kind::values ? 1 : head_.order()))
      refuse("has {} but only {} modes", s.name(), head_.order());
    std::uint32_t& seen = seen_[record.kind];
    if ((seen >> static_cast<unsigned>(s.mode) & 1U) != 0) refuse("has {} twice", s.name());
    seen |= 1U << static_cast<unsigned>(s.mode);

    const bool is_text = s.kind == Kind::mode_name || s.kind == Kind::label_text;
    const bool width_is_right = is_text                  ? s.width == 1
                                : s.kind == Kind::values ? s.width == 4 || s.width == 8
                                                         : s.width == 1 || s.width == 2 || s.width == 4 || s.width == 8;
    if (!width_is_right) refuse("{} cannot have elements of {} bytes", s.name(), s.width);
    if (is_text) return;
    const std::uint64_t count = s.kind == Kind::label_ends ? head_.dims[static_cast<std::size_t>(s.mode)] : head_.nnz;
    if (!fills(count, s.width, s.bytes))
      refuse("{} should be {} elements of {} bytes but the section has {} bytes", s.name(), count, s.width, s.bytes);
  }

  void check_pairs() const {
    for (int m = 0; m < head_.order(); ++m) {
      if (head_.find(Kind::indices, m) == nullptr) refuse("has no indices of mode {}", m + 1);
      if ((head_.find(Kind::label_ends, m) == nullptr) != (head_.find(Kind::label_text, m) == nullptr))
        refuse("has only one of the ends and the text of the labels of mode {}", m + 1);
    }
    if (head_.find(Kind::values) == nullptr) refuse("has no values");
  }

  std::span<const std::byte> file_;
  std::string_view name_;
  const FixedHead& fixed_;
  Head head_;
  std::array<std::uint32_t, 6> seen_ = {};  // per kind the set of modes that have one
};

}  // namespace

std::string Section::name() const {
  switch (kind) {
    case Kind::indices:
      return fmt::format("the indices of mode {}", mode + 1);
    case Kind::values:
      return mode == 0 ? "the values" : fmt::format("the values of mode {}", mode + 1);
    case Kind::mode_name:
      return fmt::format("the name of mode {}", mode + 1);
    case Kind::label_ends:
      return fmt::format("the label ends of mode {}", mode + 1);
    case Kind::label_text:
      return fmt::format("the label text of mode {}", mode + 1);
  }
  return fmt::format("the section of kind {}", static_cast<std::uint32_t>(kind));
}

const Section* Head::find(Kind kind, int mode) const noexcept {
  const auto found = std::ranges::find_if(sections, [&](const Section& s) { return s.kind == kind && s.mode == mode; });
  return found == sections.end() ? nullptr : &*found;
}

Precision Head::precision() const noexcept {
  const Section* values = find(Kind::values);
  return values != nullptr && values->width == 4 ? Precision::f32 : Precision::f64;
}

std::uint64_t checksum(const void* data, std::size_t bytes) { return XXH3_64bits(data, bytes); }

FixedHead check_beginning(std::span<const std::byte> bytes, std::string_view name) {
  if (bytes.empty()) throw file_error(name, 0, "is empty, expected a .ptn file");
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), std::min(bytes.size(), sizeof(FixedHead)));
  if (text.substr(0, magic.size()) != magic.substr(0, text.size())) {
    if (text.starts_with(magic.substr(0, 4)))
      throw file_error(name, 0, "is a .ptn file that was copied as text: its line ends are changed");
    throw file_error(name, 0, "is not a .ptn file: it does not begin with the bytes 89 50 54 4E 0D 0A 1A 0A");
  }
  if (text.size() < sizeof(FixedHead))
    throw file_error(name, 0, fmt::format("is cut off: it ends after {} bytes, inside the header", text.size()));
  const auto fixed = load<FixedHead>(bytes, 0);
  if (fixed.major_version != major_version)
    throw file_error(name, 0,
                     fmt::format("is a .ptn file of version {}.{}; this polyad reads versions {}.x, so a {} polyad is "
                                 "needed",
                                 fixed.major_version, fixed.minor_version, major_version,
                                 fixed.major_version > major_version ? "later" : "different"));
  return fixed;
}

Head parse_head(std::span<const std::byte> file, std::string_view name) {
  const FixedHead fixed = check_beginning(file, name);
  if (fixed.head_bytes < sizeof(FixedHead) + checksum_bytes)
    throw file_error(name, 0, fmt::format("its header claims to have {} bytes, which is too few", fixed.head_bytes));
  if (fixed.head_bytes > file.size())
    throw file_error(name, 0,
                     fmt::format("is cut off or damaged: its header should have {} bytes but the file has {}",
                                 fixed.head_bytes, file.size()));
  const std::uint64_t covered = fixed.head_bytes - checksum_bytes;
  if (checksum(file.data(), covered) != load<std::uint64_t>(file, covered))
    throw file_error(name, 0, "is damaged: the checksum of its header is wrong");
  if (fixed.file_bytes != file.size())
    throw file_error(name, 0,
                     fmt::format("{}: it should have {} bytes but has {}",
                                 fixed.file_bytes > file.size() ? "is cut off" : "continues after its end",
                                 fixed.file_bytes, file.size()));
  return HeadParser(file, name, fixed).parse();
}

void place_sections(Head& head) {
  std::uint64_t chunks = 0;
  for (Section& s : head.sections) {
    s.first_checksum = chunks;
    chunks += s.chunks();
  }
  head.checksums.assign(chunks, 0);
  head.head_bytes = sizeof(FixedHead) + 8 * head.dims.size() + sizeof(SectionRecord) * head.sections.size() +
                    8 * chunks + checksum_bytes;
  std::uint64_t end = head.head_bytes;
  for (Section& s : head.sections) {
    s.offset = aligned(end);
    end = s.offset + s.bytes;
  }
  head.file_bytes = end;
}

std::string head_text(const Head& head) {
  FixedHead fixed = {};
  std::memcpy(fixed.magic, magic.data(), magic.size());
  fixed.major_version = major_version;
  fixed.minor_version = head.minor;
  fixed.order = static_cast<std::uint32_t>(head.order());
  fixed.head_bytes = head.head_bytes;
  fixed.file_bytes = head.file_bytes;
  fixed.nnz = head.nnz;
  fixed.sections = static_cast<std::uint32_t>(head.sections.size());
  fixed.flags = head.duplicates_merged ? flag_duplicates_merged : 0;
  fixed.sorted_modes = static_cast<std::uint32_t>(head.sorted_by.size());
  std::ranges::copy(head.sorted_by, fixed.sorted_by);

  std::string text;
  text.reserve(head.head_bytes);
  append(text, fixed);
  for (const std::uint64_t dim : head.dims) append(text, dim);
  for (const Section& s : head.sections) {
    append(text, SectionRecord{.kind = static_cast<std::uint32_t>(s.kind),
                               .mode = static_cast<std::uint16_t>(s.mode),
                               .width = static_cast<std::uint8_t>(s.width),
                               .flags = 0,
                               .offset = s.offset,
                               .bytes = s.bytes,
                               .reserved = 0});
  }
  for (const std::uint64_t sum : head.checksums) append(text, sum);
  append(text, checksum(text.data(), text.size()));
  return text;
}

}  // namespace polyad::io::ptn
