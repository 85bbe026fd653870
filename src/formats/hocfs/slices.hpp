// SPDX-License-Identifier: MIT
/// \file What the two HOCFS formats share: non-empty slices, slices of slices, and the fibres in them (Yang, Li and Li
/// 2019, section 5.4, Algorithms 1 and 2).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "core/format.hpp"
#include "formats/offsets.hpp"

namespace polyad {

/// The modes of HOCFS for products along `mode`: slices over the next mode (mode (n mod N) + 1 of the paper), slices of
/// those over the one after it, ..., the fibre ids, and `mode` itself last.
[[nodiscard]] std::vector<int> hocfs_modes(int order, int mode);

/// Slices and fibres without the nonzeros. Algorithm 2 takes slices of slices until order 3 remains, so a tensor of
/// order N has N - 2 levels of slices; a matrix has none.
struct SlicesOfSlices {
  std::vector<int> modes;              // [order], see hocfs_modes
  std::vector<IndexBuffer> slice_ids;  // [order - 2][slices of the level] No
  std::vector<Offsets> slice_begins;   // [order - 2][slices + 1] first slice of the next level or fibre: sums of num
  IndexBuffer fibre_ids;               // [fibres]

  [[nodiscard]] std::uint64_t fibres() const {
    return std::visit([](const auto& b) { return static_cast<std::uint64_t>(b.size()); }, fibre_ids);
  }
  [[nodiscard]] std::size_t levels() const { return slice_ids.size(); }
  /// Innermost slices; a matrix is one slice.
  [[nodiscard]] std::uint64_t inner_slices() const { return levels() == 0 ? 1 : slice_begins.back().groups(); }
  /// The fibres of an innermost slice.
  [[nodiscard]] std::uint64_t first_fibre(std::uint64_t slice) const {
    return levels() == 0 ? (slice == 0 ? 0 : fibres()) : slice_begins.back()[slice];
  }
  /// The innermost slice that a fibre lies in.
  [[nodiscard]] std::uint64_t slice_of(std::uint64_t fibre) const {
    return levels() == 0 ? 0 : slice_begins.back().group_of(fibre);
  }
  [[nodiscard]] std::uint64_t bytes() const;

  /// Calls f(level, id, begin, end) for every slice of every level, and the fibres begin .. end of it, that has some of
  /// fibres first .. last; ids of fibres are not passed on.
  template <class Index, class F>
  void for_slices(std::uint64_t first, std::uint64_t last, const F& f) const {
    if (levels() == 0 || first >= last) return;
    std::array<std::uint64_t, max_order> at = {};   // [levels] slice
    std::array<std::uint64_t, max_order> end = {};  // [levels] end of its fibres
    std::uint64_t child = first;
    for (std::size_t l = levels(); l-- > 0;) child = at[l] = slice_begins[l].group_of(child);
    for (std::size_t l = 0; l < levels(); ++l) {
      end[l] = last_fibre(l, at[l]);
      f(l, typed<Index>(slice_ids[l])[at[l]], first, std::min(end[l], last));
    }
    for (std::uint64_t fibre = end[levels() - 1]; fibre < last; fibre = end[levels() - 1]) {
      std::size_t top = levels() - 1;  // the outermost level whose slice ends here
      while (top > 0 && end[top - 1] == fibre) --top;
      for (std::size_t l = top; l < levels(); ++l) {
        ++at[l];
        end[l] = last_fibre(l, at[l]);
        f(l, typed<Index>(slice_ids[l])[at[l]], fibre, std::min(end[l], last));
      }
    }
  }

  /// Writes the indices of fibres first .. last to out[mode][0 ..], for all modes but the last of `modes`.
  template <class Index>
  void fibre_indices(std::uint64_t first, std::uint64_t last, const std::array<Index*, max_order>& out) const {
    for_slices<Index>(first, last, [&](std::size_t level, Index id, std::uint64_t begin, std::uint64_t end) {
      Index* to = out[static_cast<std::size_t>(modes[level])];
      std::fill(to + (begin - first), to + (end - first), id);
    });
    std::copy(typed<Index>(fibre_ids) + first, typed<Index>(fibre_ids) + last,
              out[static_cast<std::size_t>(modes[levels()])]);
  }

  /// Fibres in words of the paper: {No, num} per slice, all levels.
  [[nodiscard]] std::uint64_t slices() const {
    std::uint64_t sum = 0;
    for (const Offsets& o : slice_begins) sum += o.groups();
    return sum;
  }

 private:
  /// End of the fibres of a slice.
  [[nodiscard]] std::uint64_t last_fibre(std::size_t level, std::uint64_t slice) const {
    std::uint64_t end = slice + 1;
    for (std::size_t l = level; l < levels(); ++l) end = slice_begins[l][end];
    return end;
  }
};

/// Sorted nonzeros cut into slices and fibres; what both formats begin with.
struct SortedFibres {
  SlicesOfSlices tree;
  Offsets begins;       // [fibres + 1] Ap
  IndexBuffer indices;  // [nnz] Aj
  ValueBuffer values;   // [nnz] Av
};

[[nodiscard]] SortedFibres sorted_fibres(const CooTensor& x, int mode, const Context& context);

/// Slices (of all levels) and fibres, and the bytes of a SlicesOfSlices, without building it.
struct FibreTreeSize {
  double slices = 0;
  double fibres = 0;
  double bytes = 0;
};
[[nodiscard]] FibreTreeSize fibre_tree_size(const CooTensor& x, const TensorStatistics& statistics, int mode,
                                            const Context& context);

/// Spreads the indices of fibres over their nonzeros, in place: room[m] holds those of fibres first .. last at its
/// front and gets one per nonzero; ends[f - first] is where fibre f ends in it. Every fibre has at least one nonzero,
/// so going from the back never overwrites what is still to be read.
template <class Index>
void spread_fibres(const std::array<Index*, max_order>& room, std::span<const int> modes,
                   std::span<const std::size_t> ends) {
  for (const int m : modes) {
    Index* out = room[static_cast<std::size_t>(m)];
    for (std::size_t f = ends.size(); f-- > 0;) {
      const Index index = out[f];
      std::fill(out + (f == 0 ? 0 : ends[f - 1]), out + ends[f], index);
    }
  }
}

}  // namespace polyad
