// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "backends/cpu/ordered_pipeline.hpp"
#include "io/ptn.hpp"
#include "io/ptn_arrays.hpp"
#include "polyad/error.hpp"

namespace polyad::io {

namespace {

using ptn::Chunk;
using ptn::Kind;
using ptn::NumberArray;
using ptn::Section;

/// Narrowest width of numbers up to `most`.
std::uint32_t width_of(std::uint64_t most) {
  if (most <= UINT8_MAX) return 1;
  if (most <= UINT16_MAX) return 2;
  return most <= UINT32_MAX ? 4 : 8;
}

NumberArray text_array(std::string_view text) { return {reinterpret_cast<const std::byte*>(text.data()), 1}; }

/// A tensor as the sections it becomes.
class Writer {
 public:
  Writer(const CooTensor& x, OutputFile& output, const WriteOptions& options, const Context& context)
      : x_(x), output_(output), context_(context) {
    check_shape();
    head_.dims = x.dims;
    head_.nnz = x.nnz();
    head_.sorted_by = x.sorted_by;
    head_.duplicates_merged = x.duplicates_merged;
    // Labels first: whoever reads from a pipe has them before the nonzeros come.
    add_labels(options.compact);
    add_nonzeros(options.compact);
    ptn::place_sections(head_);
  }

  void write() {
    check_known();
    ptn::for_each_chunk(head_.sections, "computing checksums", context_,
                        [&](const Chunk& chunk, std::vector<std::byte>& scratch) {
                          check_elements(chunk);
                          const std::span<const std::byte> bytes = bytes_of_chunk(chunk, scratch);
                          const std::uint64_t at = head_.sections[chunk.section].first_checksum + chunk.number;
                          head_.checksums[at] = ptn::checksum(bytes.data(), bytes.size());
                        });
    const std::string head = ptn::head_text(head_);
    output_.write(head);
    written_ = head.size();
    write_chunks();
    pad_to(head_.file_bytes);
  }

 private:
  void check_shape() const {
    const auto order = static_cast<std::size_t>(x_.order());
    if (order < 1 || order > static_cast<std::size_t>(max_order))
      throw usage_error(fmt::format("a tensor of order {} cannot be written, expected 1 to {}", order, max_order));
    bool fits = x_.indices.size() == order && (x_.labels.empty() || x_.labels.size() == order) &&
                x_.sorted_by.size() <= order && std::ranges::find(x_.dims, 0U) == x_.dims.end();
    for (std::size_t m = 0; fits && m < order; ++m) {
      const std::uint64_t count = std::visit([](const auto& b) { return std::uint64_t{b.size()}; }, x_.indices[m]);
      fits = count == x_.nnz() && (x_.labels.empty() || x_.labels[m].empty() || x_.labels[m].size() == x_.dims[m]);
    }
    std::array<bool, max_order> seen = {};
    for (const int m : x_.sorted_by) {
      fits = fits && m >= 0 && m < x_.order() && !seen[static_cast<std::size_t>(m)];
      if (fits) seen[static_cast<std::size_t>(m)] = true;
    }
    if (!fits)
      throw usage_error(
          "a tensor whose dims, indices, labels and sorted modes do not fit each other cannot be written");
  }

  void add(Kind kind, int mode, NumberArray source, std::uint64_t count, std::uint32_t width) {
    head_.sections.push_back({.kind = kind, .mode = mode, .width = width, .bytes = count * width});
    sources_.push_back(source);
  }

  void add_labels(bool compact) {
    for (int m = 0; m < static_cast<int>(x_.labels.size()); ++m) {
      const ModeLabels& labels = x_.labels[static_cast<std::size_t>(m)];
      if (!labels.name().empty()) add(Kind::mode_name, m, text_array(labels.name()), labels.name().size(), 1);
      if (labels.empty()) continue;
      const auto* ends = reinterpret_cast<const std::byte*>(labels.ends().data());
      add(Kind::label_ends, m, {ends, 8}, labels.size(), compact ? width_of(labels.text().size()) : 8);
      add(Kind::label_text, m, text_array(labels.text()), labels.text().size(), 1);
    }
  }

  void add_nonzeros(bool compact) {
    const auto as_read = static_cast<std::uint32_t>(bytes_of(width_for(x_.dims)));
    for (int m = 0; m < x_.order(); ++m) {
      const auto mode = static_cast<std::size_t>(m);
      std::visit(
          [&]<class T>(const Buffer<T>& b) {
            add(Kind::indices, m, {reinterpret_cast<const std::byte*>(b.data()), sizeof(T)}, b.size(),
                compact ? width_of(x_.dims[mode] - 1) : as_read);
          },
          x_.indices[mode]);
    }
    std::visit(
        [&]<class T>(const Buffer<T>& b) {
          add(Kind::values, 0, {reinterpret_cast<const std::byte*>(b.data()), sizeof(T)}, b.size(), sizeof(T));
        },
        x_.values);
  }

  /// What is written as known must be true: readers check it and would refuse the file.
  void check_known() const {
    std::vector<NumberArray> modes;
    for (const int m : x_.sorted_by) {
      modes.push_back(std::visit(
          []<class T>(const Buffer<T>& b) {
            return NumberArray{reinterpret_cast<const std::byte*>(b.data()), sizeof(T)};
          },
          x_.indices[static_cast<std::size_t>(m)]));
    }
    if (modes.empty()) return;
    const bool strictly = x_.duplicates_merged && modes.size() == x_.dims.size();
    if (const auto k = ptn::first_out_of_order(modes, x_.nnz(), strictly, context_.thread_count()))
      throw usage_error(
          fmt::format("a tensor that is said to be sorted{} but whose nonzero {} does not come after the one "
                      "before it cannot be written to {}",
                      strictly ? " without duplicates" : "", *k + 1, output_.name()));
  }

  /// The same for indices and values.
  void check_elements(const Chunk& chunk) const {
    const Section& s = head_.sections[chunk.section];
    const std::uint64_t first = chunk.offset / s.width;
    const std::size_t n = chunk.bytes / s.width;
    const NumberArray from = sources_[chunk.section].from(first);
    if (s.kind == Kind::indices) {
      const std::uint64_t dim = x_.dims[static_cast<std::size_t>(s.mode)];
      if (const auto i = ptn::first_not_below(from, n, dim))
        throw usage_error(
            fmt::format("nonzero {} has index {} (from 0) in mode {}, which has length {}: it cannot be "
                        "written to {}",
                        first + *i + 1, from[*i], s.mode + 1, dim, output_.name()));
    } else if (s.kind == Kind::values) {
      if (const auto i = ptn::first_not_finite(from.data, s.width, n))
        throw Error(ErrorKind::input,
                    fmt::format("the value of nonzero {} is not a finite number: it cannot be written to {}",
                                first + *i + 1, output_.name()));
    }
  }

  /// The bytes of a chunk as they go to the file: where they are, or converted into scratch.
  std::span<const std::byte> bytes_of_chunk(const Chunk& chunk, std::vector<std::byte>& scratch) const {
    const Section& s = head_.sections[chunk.section];
    const NumberArray from = sources_[chunk.section].from(chunk.offset / s.width);
    if (from.width == s.width) return {from.data, chunk.bytes};
    scratch.resize(ptn::chunk_bytes);
    ptn::convert_numbers(from, chunk.bytes / s.width, scratch.data(), s.width);
    return {scratch.data(), chunk.bytes};
  }

  void write_chunks() {
    struct Item {
      Chunk chunk;
      std::vector<std::byte> scratch;
      std::span<const std::byte> bytes;
      std::string encoded;
    };
    const bool compressed = output_.is_compressed();  // then blocks are compressed by all threads
    const ptn::ChunkList chunks(head_.sections);
    std::uint64_t next = 0;
    cpu::ordered_pipeline<Item>(
        context_.thread_count(),
        [&](Item& item) {
          if (next == chunks.size()) return false;
          item.chunk = chunks[next++];
          return true;
        },
        [&](Item& item) {
          item.bytes = bytes_of_chunk(item.chunk, item.scratch);
          if (compressed)
            item.encoded = output_.encode({reinterpret_cast<const char*>(item.bytes.data()), item.bytes.size()});
        },
        [&](Item& item) {
          pad_to(head_.sections[item.chunk.section].offset + item.chunk.offset);
          if (compressed) {
            output_.write_encoded(item.encoded);
          } else {
            output_.write(item.bytes.data(), item.bytes.size());
          }
          written_ += item.bytes.size();
          context_.report({"writing", written_, head_.file_bytes, "bytes"});
        });
  }

  void pad_to(std::uint64_t offset) {
    output_.write(std::string(offset - written_, '\0'));  // less than 4096 between sections
    written_ = offset;
  }

  const CooTensor& x_;
  OutputFile& output_;
  const Context& context_;
  ptn::Head head_;
  std::vector<NumberArray> sources_;  // per section the array it comes from
  std::uint64_t written_ = 0;         // bytes before compression
};

}  // namespace

void write_ptn(const CooTensor& x, OutputFile& output, const WriteOptions& options, const Context& context) {
  if (options.index_base == 1)
    throw usage_error(fmt::format("{}: index base 1 was asked for, but .ptn files are always 0-based", output.name()));
  Writer(x, output, options, context).write();
}

}  // namespace polyad::io
