// SPDX-License-Identifier: MIT
/// \file Runs of lines as programs write them, "digits SEP digits SEP ... value LINE-END", parsed a line at a look.
#pragma once

#include <cstdint>

namespace polyad::io {

/// Where a run of lines is read from and written to. `Index` counts from `offset`.
template <class Index, class Value>
struct WindowRun {
  const char* line = nullptr;  ///< in: first line; out: the first line that was left
  const char* end = nullptr;   ///< end of the text; 128 more bytes are readable
  char separator = ' ';
  Index offset = 0;
  Index* const* indices = nullptr;  ///< [order][room]
  Value* values = nullptr;          ///< [room]
  std::uint64_t count = 0;          ///< in: nonzeros there already; out: with those of the run
  std::uint64_t* low = nullptr;     ///< [order] smallest index as written, updated
  std::uint64_t* high = nullptr;    ///< [order] largest index as written, updated
};

/// Parses lines of `order` indices and a value as long as they are plain: numbers of at most 8 digits, one separator
/// between them, at most 64 bytes. Stops at the first line that is anything else, which may still be a good one.
///
/// The first 64 bytes of a line are compared with the digits at once, and the bits that are left say where every number
/// ends. Going from number to number would wait some 14 cycles for the end of each; here the ends are a cycle apart and
/// the numbers are converted side by side. The instruction set is chosen at run time.
template <class Index, class Value>
void parse_plain_lines(int order, WindowRun<Index, Value>& run);

/// The same with the instructions that every processor has; what the tests compare with.
template <class Index, class Value>
void parse_plain_lines_portably(int order, WindowRun<Index, Value>& run);

}  // namespace polyad::io
