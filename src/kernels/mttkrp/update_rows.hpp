// SPDX-License-Identifier: MIT
/// \file Gives the rows of an output to the caller's update when they are all complete.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/cpu/threads.hpp"
#include "core/row_parts.hpp"
#include "polyad/kernels.hpp"

namespace polyad {

/// Rows cut into parts by their number alone: so many that threads are busy, so long that what is added up per part
/// costs little beside the rows.
struct RowParts {
  std::uint64_t rows = 0;
  std::uint64_t length = 0;  // of a part, a multiple of 64
  std::uint64_t count = 0;

  RowParts(std::uint64_t rows_, std::uint64_t most_parts) : rows(rows_) {
    const std::uint64_t most = std::clamp<std::uint64_t>(most_parts, 1, most_row_parts);
    length = std::max<std::uint64_t>(16, ((rows + most - 1) / most + 63) / 64) * 64;
    count = (rows + length - 1) / length;
  }
  [[nodiscard]] std::uint64_t begin(std::uint64_t part) const { return part * length; }
  [[nodiscard]] std::uint64_t end(std::uint64_t part) const { return std::min(rows, (part + 1) * length); }
};

/// Chunks of nonzeros in groups that one thread works on in order: at most most_row_parts of them.
struct ChunkGroups {
  std::uint64_t chunks = 0;
  std::uint64_t length = 0;  // chunks of a group
  std::uint64_t count = 0;

  explicit ChunkGroups(std::uint64_t chunks_)
      : chunks(chunks_),
        length((chunks_ + most_row_parts - 1) / most_row_parts),
        count(length == 0 ? 0 : (chunks_ + length - 1) / length) {}

  /// Calls body(chunk, group, rank) on a team.
  template <class Body>
  void for_each(int threads, const Body& body) const {
    cpu::for_each_chunk(threads, count, [&](std::uint64_t group, int rank) {
      const std::uint64_t end = std::min(chunks, (group + 1) * length);
      for (std::uint64_t c = group * length; c < end; ++c) body(c, group, rank);
    });
  }
};

/// \param out the output that the update is about
template <class T>
void update_rows(FactorMatrix<T>& out, RowUpdate<T>& update, const Context& context) {
  const RowParts parts(out.rows(), update.most_parts());
  update.begin(parts.count);
  // Below 50 us a thread does not pay. Parts are handed out one by one: rows of frequent indices lie together, and
  // those of zeros cost little.
  const std::uint64_t worth = 1 + out.rows() * out.cols() * out.cols() / (std::uint64_t{1} << 20U);
  const int threads =
      static_cast<int>(std::min<std::uint64_t>(static_cast<std::uint64_t>(context.thread_count()), worth));
  cpu::for_each_chunk(threads, parts.count, [&](std::uint64_t part, int) {
    update.take(part, parts.begin(part), parts.end(part), out.row(parts.begin(part)));
  });
}

}  // namespace polyad
