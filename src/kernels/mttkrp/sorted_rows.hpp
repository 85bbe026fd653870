// SPDX-License-Identifier: MIT
/// \file An output whose rows come in ascending order, each once but for those at the ends of chunks: rows are stored
/// rather than added to, and only the rows between them are cleared. Against clearing everything first it spares two of
/// three passes over the output, which for a mode of millions of rows is more than the tensor itself.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/mttkrp/output.hpp"
#include "kernels/mttkrp/tree_loop.hpp"

namespace polyad {

/// Like BoundaryRows: the first and the last row of a chunk go to side rows that are added in the order of chunks.
/// Chunk c clears the rows from its first one (chunk 0: from row 0) to before the first one of the next chunk, except
/// those it stores.
template <class T>
class SortedRows {
 public:
  SortedRows(const MttkrpRequest<T>& request, std::uint64_t chunks)
      : request_(request), sides_(request, chunks, false) {
    if (chunks == 0) clear(request.out, request.threads());
  }

  /// The sink of a chunk: its roots are known, and the next root of the tree tells where the next chunk begins.
  [[nodiscard]] Sink<T> sink(std::uint64_t chunk, const TreeLoop<T>& loop) {
    const TreeLevel<T>& root = loop.levels[static_cast<std::size_t>(loop.order) - 1];
    const Sink<T> s = sides_.sink(chunk, root.ids[root.begin], root.ids[root.end - 1]);
    // The next chunk begins with this chunk's last root when it is cut, else with the root after it.
    const bool cut = !ends_with_leaf(loop);
    const std::uint64_t next = cut ? s.last_row : root.end <= root.last ? root.ids[root.end] : request_.out.rows();
    std::uint64_t done = chunk == 0 ? 0 : s.first_row;
    // Side rows are added to what is there, so the rows at both ends are cleared as well.
    const auto clear_to = [&](std::uint64_t end) {
      if (done < end) std::fill_n(s.out + done * s.stride, (end - done) * s.stride, T{0});
    };
    for (std::uint32_t n = root.begin + 1; n + 1 < root.end; ++n) {
      clear_to(root.ids[n]);
      done = std::uint64_t{root.ids[n]} + 1;
    }
    clear_to(next);
    return s;
  }

  /// Adds the side rows; every chunk must have had its sink.
  void finish() const { sides_.finish(); }

 private:
  /// The chunk ends where its last root's subtree ends: the path of closing nodes leads to its last leaf.
  [[nodiscard]] static bool ends_with_leaf(const TreeLoop<T>& loop) {
    std::uint32_t end = loop.levels[static_cast<std::size_t>(loop.order) - 1].end;
    for (int h = loop.order - 1; h > 0; --h) end = loop.levels[static_cast<std::size_t>(h)].pointers[end];
    return end == loop.levels[0].end;
  }

  const MttkrpRequest<T>& request_;
  BoundaryRows<T> sides_;
};

}  // namespace polyad
