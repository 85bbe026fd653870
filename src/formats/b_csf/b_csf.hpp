// SPDX-License-Identifier: MIT
/// \file Balanced CSF: long fibres are split, heavy slices spread over several bins of work.
#pragma once

#include <cstdint>
#include <vector>

#include "core/format.hpp"
#include "formats/csf/tree.hpp"

namespace polyad {

/// Nonzeros that the paper gives to one thread block (section IV.A): its 512 threads take one each.
inline constexpr std::uint64_t bin_nonzeros = 512;

/// Work of about equal size: bin b takes the fibre segments segments[b] .. segments[b + 1]. The first of them lies in
/// slice slices[b], which may have begun in a bin before.
struct Bins {
  Buffer<std::uint64_t> segments;  ///< [bins + 1] nodes of the fibre level
  Buffer<std::uint64_t> slices;    ///< [bins] nodes of the root level

  [[nodiscard]] std::uint64_t count() const { return slices.size(); }
  [[nodiscard]] std::uint64_t bytes() const { return segments.bytes() + slices.bytes(); }
};

/// Cuts the fibre segments of a tree into bins: segments whose first nonzeros lie in the same run of bin_nonzeros.
[[nodiscard]] Bins bins_of(const FibreTree& tree, const Context& context);

/// The threshold to use: the paper's 128 (section VI.B) when none is given.
[[nodiscard]] std::uint64_t threshold_of(const FormatOptions& options);

/// B-CSF (Nisa et al., section IV) for one output mode, which is the root.
struct BCsf {
  FibreTree tree;  ///< a fibre of more than the threshold is several nodes with the same index
  Bins bins;
  TensorShape tensor_shape;

  [[nodiscard]] static BCsf build(const CooTensor& x, const FormatOptions& options, const Context& context);

  [[nodiscard]] const TensorShape& shape() const { return tensor_shape; }
  [[nodiscard]] std::uint64_t bytes() const { return tree.bytes() + bins.bytes(); }
  /// Index words as the paper counts them; its bins are implicit and take none.
  [[nodiscard]] std::uint64_t words() const { return tree.words(); }

  template <class Index, class Value>
  void decode(std::uint64_t first, std::size_t count, NonzeroBlock<Index, Value>& block) const {
    tree.decode(first, count, block);
  }
};

}  // namespace polyad
