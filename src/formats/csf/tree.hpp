// SPDX-License-Identifier: MIT
/// \file The tree of CSF: nonzeros sorted by some order of the modes, every common prefix of coordinates stored once.
/// B-CSF and HB-CSF are built from the same pieces.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/format.hpp"
#include "core/sorted_nonzeros.hpp"
#include "polyad/coo_tensor.hpp"

namespace polyad {

/// A tree whose level l holds the indices of mode mode_order[l]. The children of node n of level l are the nodes
/// pointers[l][n] .. pointers[l][n + 1] of level l + 1; the leaves are the nonzeros.
struct FibreTree {
  std::vector<int> mode_order;        ///< the root's mode first
  std::vector<IndexBuffer> ids;       ///< [level][nodes]
  std::vector<IndexBuffer> pointers;  ///< [level but the last][nodes + 1]; 32 bits as long as nnz < 2^32
  ValueBuffer values;                 ///< [nnz]

  [[nodiscard]] int order() const noexcept { return static_cast<int>(mode_order.size()); }
  [[nodiscard]] std::uint64_t nodes(int level) const;
  [[nodiscard]] std::uint64_t nnz() const { return nodes(order() - 1); }
  /// Child position of a node, whatever the width. For searches and tests, not for loops.
  [[nodiscard]] std::uint64_t pointer(int level, std::uint64_t node) const;
  /// Bytes of all arrays.
  [[nodiscard]] std::uint64_t bytes() const;
  /// Index words as the paper counts them (section III.B): an index and a pointer per inner node, an index per nonzero.
  /// The pointer that closes a level is not counted.
  [[nodiscard]] std::uint64_t words() const;
  /// The node of level `up` that a node of level `level` hangs from.
  [[nodiscard]] std::uint64_t ancestor(int level, std::uint64_t node, int up) const;
  /// Per level the node that leaf z hangs from; the last one is z.
  [[nodiscard]] std::array<std::uint64_t, max_order> path_to(std::uint64_t z) const;

  /// The coordinates of leaves first .. first + count.
  template <class Index, class Value>
  void decode(std::uint64_t first, std::size_t count, NonzeroBlock<Index, Value>& block) const;
};

/// Modes by length, the shortest first; of equal ones the first first.
[[nodiscard]] std::vector<int> modes_by_length(std::span<const std::uint64_t> dims);
/// The same with one mode at the root.
[[nodiscard]] std::vector<int> modes_with_root(std::span<const std::uint64_t> dims, int root);

/// Per nonzero the first level at which it differs from the one before it: there a path of new nodes begins. order - 1
/// for a nonzero that only adds a leaf, equal coordinates included. \param sorted by all modes
[[nodiscard]] Buffer<std::uint8_t> new_levels(const SortedNonzeros& sorted, const Context& context);

/// Begins a new node of the fibre level after every `threshold` nonzeros of a fibre.
void split_fibres(Buffer<std::uint8_t>& levels, int order, std::uint64_t threshold, const Context& context);

/// How many nodes each level will have.
[[nodiscard]] std::vector<std::uint64_t> count_nodes(const Buffer<std::uint8_t>& levels, int order,
                                                     const Context& context);

/// Builds the tree of sorted nonzeros.
[[nodiscard]] FibreTree grow_tree(const SortedNonzeros& sorted, const TensorShape& shape,
                                  const Buffer<std::uint8_t>& levels, const Context& context);

/// The tree of CSF for an order of the modes.
[[nodiscard]] FibreTree build_tree(const CooTensor& x, std::span<const int> mode_order, const Context& context);

/// Words and bytes of a tree with so many nodes per level.
[[nodiscard]] StoragePrediction predict_tree(std::span<const std::uint64_t> nodes, const CooTensor& x);

/// How many threads are worth starting for n nonzeros.
[[nodiscard]] int useful_threads(std::uint64_t n, const Context& context);

template <class Index, class Value>
void FibreTree::decode(std::uint64_t first, std::size_t count, NonzeroBlock<Index, Value>& block) const {
  const int leaf = order() - 1;
  block.index_stride = 1;
  block.indices[static_cast<std::size_t>(mode_order.back())] = typed<Index>(ids.back()) + first;
  block.values = typed<Value>(values) + first;
  if (count == 0) return;
  const auto start = path_to(first);
  const std::uint64_t end = first + count;
  for (int l = 0; l < leaf; ++l) {
    const auto at = static_cast<std::size_t>(l);
    Index* out = block.index_room(mode_order[at]);
    const Index* id = typed<Index>(ids[at]);
    std::uint64_t z = first;
    for (std::uint64_t node = start[at]; z < end; ++node) {
      std::uint64_t stop = node + 1;  // becomes the leaf where the node ends
      for (int below = l; below < leaf; ++below) stop = pointer(below, stop);
      for (stop = std::min(stop, end); z < stop; ++z) out[z - first] = id[node];
    }
  }
}

}  // namespace polyad
