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

/// Everything the loop needs for the rows of one chunk.
template <class T>
struct RowLoop : RowInputs<T> {
  const std::uint32_t* rows = nullptr;                // output indices that occur, or null: all of them
  const Offsets* begin = nullptr;                     // their first nonzeros
  const SortedCopy::RowInBlock* by_length = nullptr;  // of all output indices, or null (SortedCopy)
  bool past_cache = false;                            // rows are whole cache lines that nobody reads soon

  // The chunk: rows first_row .. end_row of `rows`, nonzeros begin_nonzero .. end_nonzero.
  std::uint64_t first_row = 0;
  std::uint64_t end_row = 0;
  std::uint64_t end_nonzero = 0;
  /// The output index of the first or the last row of a chunk.
  [[nodiscard]] std::uint64_t row_at(std::uint64_t i) const { return rows == nullptr ? i : rows[i]; }

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
