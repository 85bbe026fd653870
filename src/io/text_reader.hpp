// SPDX-License-Identifier: MIT
/// \file Lines of "index index ... value" to a tensor: the part that all text dialects share. A dialect reads its own
/// header, says in a TextLayout what the lines look like, and leaves the rest to read_text().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/input_stream.hpp"
#include "polyad/context.hpp"
#include "polyad/coo_tensor.hpp"
#include "polyad/io.hpp"

namespace polyad::io {

/// MatrixMarket stores one triangle of a symmetric matrix; the other is made when reading.
enum class Symmetry : std::uint8_t { none, symmetric, skew };

/// What the data lines of a file look like.
struct TextLayout {
  int order = 0;
  bool has_values = true;  ///< false: every nonzero is 1 (MatrixMarket "pattern")
  char separator = ' ';    ///< ' ': blanks and tabs; ',' commas
  char comment = '#';
  /// Base of the indices; unset: an index 0 anywhere means 0, otherwise 1.
  std::optional<int> base;
  std::vector<std::uint64_t> dims;   ///< from the header; empty when the file carries none
  std::optional<std::uint64_t> nnz;  ///< from the header
  bool base_is_ambiguous = false;    ///< 0- and 1-based writers share this dialect: say what was assumed
  Symmetry symmetry = Symmetry::none;
};

/// What a header says, and where the data begin.
struct TextHeader {
  TextLayout layout;
  std::size_t end = 0;           ///< offset of the first data line
  std::uint64_t first_line = 1;  ///< its number
};

/// The first lines of a file that are neither blank nor comments, cut into tokens.
class HeadLines {
 public:
  struct Line {
    std::uint64_t number = 0;  ///< from 1
    std::size_t end = 0;       ///< offset behind the line
    std::string_view text;     ///< without comment and line end
    std::vector<std::string_view> tokens;
  };

  /// \param complete the head is the whole file
  HeadLines(std::string_view head, bool complete, char comment = '#');

  [[nodiscard]] std::size_t size() const noexcept { return lines_.size(); }
  [[nodiscard]] const Line& operator[](std::size_t i) const { return lines_[i]; }
  /// A line is longer than the head.
  [[nodiscard]] bool cut_off() const noexcept { return cut_off_; }
  /// Number of the line after the last complete one.
  [[nodiscard]] std::uint64_t next_number() const noexcept { return next_number_; }

 private:
  std::vector<Line> lines_;
  bool cut_off_ = false;
  std::uint64_t next_number_ = 1;
};

/// How many bytes detection and header readers look at.
inline constexpr std::size_t head_bytes = std::size_t{1} << 16U;

/// The first bytes of a file.
struct Head {
  std::string_view text;
  bool complete = false;  ///< it is the whole file
};

/// The first bytes of an input (looks, takes nothing): head_bytes, or more where those are nothing but comments.
[[nodiscard]] Head head_of(InputStream& input);

/// The head lines of an input (looks, takes nothing).
[[nodiscard]] HeadLines head_lines(InputStream& input, char comment = '#');

/// A token as an unsigned integer; unset when it is none.
[[nodiscard]] std::optional<std::uint64_t> as_integer(std::string_view token);

/// Tokens as positive dims; an Error that names the line otherwise.
[[nodiscard]] std::vector<std::uint64_t> as_dims(const InputStream& input, const HeadLines::Line& line);

/// Collects what is wrong instead of throwing at the first.
struct ProblemCollector {
  std::uint64_t most = 0;              ///< how many to keep
  std::uint64_t errors = 0;            ///< how many there were
  std::vector<Problem> problems;       ///< in the order of lines
  std::vector<std::uint64_t> line_of;  ///< line of each nonzero kept
};

/// Reads the data lines that follow the header.
/// \param collector null: throw at the first problem
[[nodiscard]] CooTensor read_text(InputStream& input, const TextHeader& header, const ReadOptions& options,
                                  const Context& context, ReadReport& report, ProblemCollector* collector = nullptr);

/// Adds the other triangle of a matrix of which one was stored.
void mirror(CooTensor& x, Symmetry symmetry, const Context& context);

/// The `read` of a text dialect whose header is read by `header`.
template <auto header>
CooTensor read_lines(InputStream& input, const ReadOptions& options, const Context& context, ReadReport& report) {
  return read_text(input, header(input, options, report), options, context, report);
}

}  // namespace polyad::io
