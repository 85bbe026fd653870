// SPDX-License-Identifier: MIT
/// \file The one loop over a tree of fibres (CSF, B-CSF) for an output at any of its levels: factor rows above the
/// output level are multiplied on the way down, those below it summed on the way up (Smith and Karypis, IA^3 2015;
/// Nisa et al., algorithm 3), and what meets at the output level goes to a sink. A chunk is any range of leaves: nodes
/// that it cuts contribute the part of their sum that lies inside, since MTTKRP is linear.
///
/// Levels are counted from the leaves here, as heights: 0 the leaves, 1 the fibres, order - 1 the root.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "formats/csf/tree.hpp"
#include "kernels/mttkrp/nonzero_loop.hpp"
#include "kernels/mttkrp/output.hpp"
#include "kernels/mttkrp/request.hpp"

namespace polyad {

/// One level of the tree, and the nodes of it that a chunk touches.
template <class T>
struct TreeLevel {
  const std::uint32_t* ids = nullptr;       // [nodes]
  const std::uint32_t* pointers = nullptr;  // [nodes + 1], null for the leaves
  const T* factor = nullptr;                // [rows][stride], null for the output level
  std::uint32_t last = 0;                   // nodes - 1
  std::uint32_t begin = 0;                  // of the chunk
  std::uint32_t end = 0;
  bool prefetched = false;  // the matrix does not stay in the L2 cache by itself
};

/// Everything the loop needs, for one chunk.
template <class T>
struct TreeLoop {
  int order = 0;
  int output = 0;                              // height of the output level
  std::array<TreeLevel<T>, max_order> levels;  // [height]
  const T* values = nullptr;                   // [leaves]
  std::uint64_t stride = 0;                    // of factors and output
  std::uint64_t cols = 0;                      // <= stride: columns that matter
  bool once = false;          // every output row comes once per chunk: it is stored, what was there does not matter
  bool short_fibres = false;  // fibres of one and of more nonzeros alternate: do two at a time without asking
  Sink<T> sink;
};

/// out(id of n,:) += product of the rows above n * sum of the products below n, for the nodes n of the output level.
void add_subtrees(const TreeLoop<float>& loop);
void add_subtrees(const TreeLoop<double>& loop);

/// Leaves of a chunk: enough that finding its nodes costs nothing, few enough that its part of the tree stays in L2 for
/// further blocks of columns. Not a matter of threads, so neither is the result.
[[nodiscard]] inline std::uint64_t leaves_per_chunk(std::uint64_t nnz) {
  return std::clamp<std::uint64_t>(nnz / 256, 512, 16384);
}

/// The part of a TreeLoop that is the same for all chunks of a request.
template <class T>
struct TreePlan {
  TreeLoop<T> loop;

  /// \param level of the output, from the root
  TreePlan(const MttkrpRequest<T>& r, const FibreTree& tree, int level) {
    loop.order = tree.order();
    loop.output = loop.order - 1 - level;
    for (int h = 0; h < loop.order; ++h) {
      const auto l = static_cast<std::size_t>(loop.order - 1 - h);
      const auto mode = static_cast<std::size_t>(tree.mode_order[l]);
      TreeLevel<T>& at = loop.levels[static_cast<std::size_t>(h)];
      at.ids = typed<std::uint32_t>(tree.ids[l]);
      at.last = static_cast<std::uint32_t>(std::max<std::uint64_t>(tree.nodes(static_cast<int>(l)), 1) - 1);
      if (h > 0) at.pointers = typed<std::uint32_t>(tree.pointers[l]);
      const bool is_output = h == loop.output;
      if (!is_output) at.factor = r.factors[mode].data();
      at.prefetched = (is_output ? r.out.bytes() : r.factors[mode].bytes()) >= worth_prefetching;
    }
    loop.values = typed<T>(tree.values);
    const double fibre_length =
        static_cast<double>(tree.nnz()) / static_cast<double>(std::max<std::uint64_t>(1, tree.nodes(loop.order - 2)));
    loop.short_fibres = fibre_length > 1.2 && fibre_length < 3;
    loop.stride = r.stride();
    loop.cols = r.out.cols();
  }

  /// The loop for leaves begin .. end, begin < end; the sink is to be set.
  [[nodiscard]] TreeLoop<T> over(std::uint64_t begin, std::uint64_t end) const {
    TreeLoop<T> l = loop;
    l.levels[0].begin = static_cast<std::uint32_t>(begin);
    l.levels[0].end = static_cast<std::uint32_t>(end);
    for (int h = 1; h < l.order; ++h) {
      const TreeLevel<T>& below = l.levels[static_cast<std::size_t>(h) - 1];
      TreeLevel<T>& at = l.levels[static_cast<std::size_t>(h)];
      const std::uint32_t* closing = at.pointers + at.last + 1;
      const std::uint32_t* first = std::upper_bound(at.pointers, closing, below.begin) - 1;
      const std::uint32_t* farthest = first + std::min<std::ptrdiff_t>(below.end - below.begin, closing - first);
      at.begin = static_cast<std::uint32_t>(first - at.pointers);
      at.end = static_cast<std::uint32_t>(std::lower_bound(first + 1, farthest, below.end) - at.pointers);
    }
    return l;
  }

  /// Output rows of the first and the last root of a loop.
  [[nodiscard]] static std::pair<std::uint64_t, std::uint64_t> end_rows(const TreeLoop<T>& l) {
    const TreeLevel<T>& root = l.levels[static_cast<std::size_t>(l.order) - 1];
    return {root.ids[root.begin], root.ids[root.end - 1]};
  }
};

/// True when the loop can read the tree: 32-bit indices and pointers.
[[nodiscard]] inline bool has_narrow_arrays(const FibreTree& tree) {
  return tree.ids[0].index() == 0 && tree.pointers[0].index() == 0;
}

/// Nanoseconds of one thread for a tree: every node reads one row.
[[nodiscard]] inline double tree_cost(const MttkrpQuestion& q, const FibreTree& tree) {
  double rows = 0;
  for (int l = 0; l < tree.order(); ++l) rows += static_cast<double>(tree.nodes(l));
  return rows * (0.5 + static_cast<double>(q.rank) / 32.0);
}

}  // namespace polyad
