// SPDX-License-Identifier: MIT
/// \file The loop over a copy that is sorted by the output mode (formats/copies): a row of the output is summed in
/// registers and stored once.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "formats/copies/copies.hpp"
#include "kernels/mttkrp/output.hpp"
#include "kernels/mttkrp/request.hpp"
#include "kernels/mttkrp/row_inputs.hpp"

namespace polyad {

/// Some rows of a chunk: where their nonzeros end, and where their sums belong.
struct RowBlock {
  static constexpr std::uint64_t most = 256;
  std::array<std::uint32_t, most> end;  // from the first nonzero of the chunk
  std::array<std::uint64_t, most> at;   // the output index
};

/// The rows of one chunk: first_row .. end_row, nonzeros begin_nonzero .. end_nonzero.
struct ChunkRows {
  const std::uint32_t* rows = nullptr;                // output indices that occur, or null: all of them
  const Offsets* begin = nullptr;                     // their first nonzeros
  const SortedCopy::RowInBlock* by_length = nullptr;  // of all output indices, or null (SortedCopy)
  std::uint64_t first_row = 0;
  std::uint64_t end_row = 0;
  std::uint64_t end_nonzero = 0;

  /// The output index of the first or the last row of a chunk.
  [[nodiscard]] std::uint64_t row_at(std::uint64_t i) const { return rows == nullptr ? i : rows[i]; }
  /// Lists rows first .. first + count, of which none is the first or the last: so the loop over nonzeros has to know
  /// neither of this, and keeps its registers for rows.
  void list(std::uint64_t first, std::uint64_t count, std::uint64_t begin_nonzero, RowBlock& block) const;
};

/// Everything the loop needs for the rows of one chunk.
template <class T>
struct RowLoop : RowInputs<T>, ChunkRows {
  bool past_cache = false;       // rows are whole cache lines that nobody reads soon
  Sink<T> sink;                  // boundary: the first and the last row of a chunk
  std::uint64_t clear_from = 0;  // rows of the output that this chunk clears or stores,
  std::uint64_t clear_to = 0;    // but for those that go to the sink's side rows: these it clears
};

/// out(row_at(i),:) = sum over its nonzeros of value * Hadamard product of the factors' rows.
void sum_chunk(const RowLoop<float>& loop);
void sum_chunk(const RowLoop<double>& loop);

/// The MTTKRP of the mode that a copy is sorted by. The same bits for any number of threads.
void sum_rows(const MttkrpRequest<float>& r, const SortedCopy& copy);
void sum_rows(const MttkrpRequest<double>& r, const SortedCopy& copy);

/// Whether sum_rows can: 64-bit indices are for the generic kernels.
[[nodiscard]] inline bool sums_rows(const SortedCopy& copy) {
  return copy.rows.index() == 0 && copy.indices[copy.mode == 0 ? 1 : 0].index() < 3;
}

}  // namespace polyad
