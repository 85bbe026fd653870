// SPDX-License-Identifier: MIT
/// \file Hybrid balanced CSF: every slice in the cheapest of three forms.
#pragma once

#include <cstdint>
#include <vector>

#include "core/format.hpp"
#include "formats/b_csf/b_csf.hpp"
#include "formats/csf/tree.hpp"

namespace polyad {

/// Compressed slices (section V.A): slices whose fibres all have one nonzero; no fibre level.
struct Csl {
  IndexBuffer slice_ids;             ///< [slices]
  IndexBuffer slice_pointers;        ///< [slices + 1]; 32 bits as long as nnz < 2^32
  std::vector<IndexBuffer> indices;  ///< [order - 1][nnz] by the level of the mode, the root left out
  ValueBuffer values;                ///< [nnz]

  [[nodiscard]] std::uint64_t slices() const;
  [[nodiscard]] std::uint64_t nnz() const;
  [[nodiscard]] std::uint64_t bytes() const;
  /// 2S + (N-1)*nnz.
  [[nodiscard]] std::uint64_t words() const { return 2 * slices() + indices.size() * nnz(); }
};

/// HB-CSF (Nisa et al., section V) for one output mode. Nonzeros are numbered group after group.
struct HbCsf {
  std::vector<int> mode_order;  ///< the output mode first
  CooTensor coo;                ///< slices of one nonzero, by ascending slice
  Csl csl;                      ///< slices of singleton fibres
  FibreTree tree;               ///< all other slices, as B-CSF
  Bins bins;                    ///< of the tree
  TensorShape tensor_shape;

  [[nodiscard]] static HbCsf build(const CooTensor& x, const FormatOptions& options, const Context& context);

  [[nodiscard]] const TensorShape& shape() const { return tensor_shape; }
  [[nodiscard]] std::uint64_t bytes() const { return coo.bytes() + csl.bytes() + tree.bytes() + bins.bytes(); }
  /// Index words as the paper counts them, of the three groups.
  [[nodiscard]] std::uint64_t coo_words() const { return coo.dims.size() * coo.nnz(); }
  [[nodiscard]] std::uint64_t words() const { return coo_words() + csl.words() + tree.words(); }

  template <class Index, class Value>
  void decode(std::uint64_t first, std::size_t count, NonzeroBlock<Index, Value>& block) const;

  /// Points a block at the nonzeros first .. first + count of the COO group.
  template <class Index, class Value>
  void decode_coo(std::uint64_t first, NonzeroBlock<Index, Value>& block) const {
    for (std::size_t m = 0; m < coo.dims.size(); ++m) block.indices[m] = typed<Index>(coo.indices[m]) + first;
    block.values = typed<Value>(coo.values) + first;
  }
  /// The same of the CSL group; the indices of the slices are written out.
  template <class Index, class Value>
  void decode_csl(std::uint64_t first, std::size_t count, NonzeroBlock<Index, Value>& block) const;
};

template <class Index, class Value>
void HbCsf::decode_csl(std::uint64_t first, std::size_t count, NonzeroBlock<Index, Value>& block) const {
  for (std::size_t l = 1; l < mode_order.size(); ++l)
    block.indices[static_cast<std::size_t>(mode_order[l])] = typed<Index>(csl.indices[l - 1]) + first;
  block.values = typed<Value>(csl.values) + first;
  Index* rows = block.index_room(mode_order[0]);
  const Index* ids = typed<Index>(csl.slice_ids);
  std::visit(
      [&](const auto& pointers) {
        std::uint64_t z = first;
        auto slice = static_cast<std::uint64_t>(std::upper_bound(pointers.begin(), pointers.end(), first) -
                                                pointers.begin() - 1);
        for (; z < first + count; ++slice)
          for (const std::uint64_t end = std::min<std::uint64_t>(pointers[slice + 1], first + count); z < end; ++z)
            rows[z - first] = ids[slice];
      },
      csl.slice_pointers);
}

template <class Index, class Value>
void HbCsf::decode(std::uint64_t first, std::size_t count, NonzeroBlock<Index, Value>& block) const {
  const std::uint64_t csl_begin = coo.nnz();
  const std::uint64_t tree_begin = csl_begin + csl.nnz();
  const std::uint64_t end = first + count;
  if (end <= csl_begin) return decode_coo(first, block);
  if (first >= csl_begin && end <= tree_begin) return decode_csl(first - csl_begin, count, block);
  if (first >= tree_begin) return tree.decode(first - tree_begin, count, block);
  // Over the border of two groups or three: gathered from parts.
  NonzeroBlock<Index, Value> part(tensor_shape.order());
  std::vector<Index*> to;
  for (int m = 0; m < tensor_shape.order(); ++m) to.push_back(block.index_room(m));
  Value* values = block.value_room();
  for (std::uint64_t at = first; at < end;) {
    const std::uint64_t group_end = at < csl_begin ? csl_begin : at < tree_begin ? tree_begin : end;
    const auto n = static_cast<std::size_t>(std::min(group_end, end) - at);
    decode(at, n, part);
    for (std::size_t m = 0; m < to.size(); ++m) std::copy_n(part.indices[m], n, to[m] + (at - first));
    std::copy_n(part.values, n, values + (at - first));
    at += n;
  }
}

}  // namespace polyad
