// SPDX-License-Identifier: MIT
/// \file Coordinates as a storage format.
#pragma once

#include <cstdint>

#include "core/format.hpp"
#include "polyad/coo_tensor.hpp"

namespace polyad {

/// COO: the arrays of a CooTensor, in its order of nonzeros.
struct Coo {
  CooTensor x;
  TensorShape tensor_shape;

  [[nodiscard]] static Coo build(const CooTensor& x, const FormatOptions& options, const Context& context);

  [[nodiscard]] const TensorShape& shape() const { return tensor_shape; }
  [[nodiscard]] std::uint64_t bytes() const { return x.bytes(); }

  template <class Index, class Value>
  void decode(std::uint64_t first, std::size_t, NonzeroBlock<Index, Value>& block) const {
    for (std::size_t m = 0; m < x.dims.size(); ++m) block.indices[m] = typed<Index>(x.indices[m]) + first;
    block.values = typed<Value>(x.values) + first;
  }
};

/// N * nnz index words and nnz values, as COO and HOCOO keep them.
[[nodiscard]] StoragePrediction predict_coo(const CooTensor& x, const TensorStatistics& statistics,
                                            const FormatOptions& options, const Context& context);

/// A copy of the coordinates with the index width that the dims need.
[[nodiscard]] CooTensor narrowest_copy(const CooTensor& x, const Context& context);

}  // namespace polyad
