// SPDX-License-Identifier: MIT
/// \file HOCOO: coordinates sorted by mode 1, 2, ... (Yang, Li and Li 2019, section 5.1).
#pragma once

#include <cstdint>

#include "core/format.hpp"

namespace polyad {

/// HOCOO: one index array per mode and the values, sorted by all modes in order.
struct Hocoo {
  CooTensor x;
  TensorShape tensor_shape;

  [[nodiscard]] static Hocoo build(const CooTensor& x, const FormatOptions& options, const Context& context);

  [[nodiscard]] const TensorShape& shape() const { return tensor_shape; }
  [[nodiscard]] std::uint64_t bytes() const { return x.bytes(); }

  template <class Index, class Value>
  void decode(std::uint64_t first, std::size_t, NonzeroBlock<Index, Value>& block) const {
    for (std::size_t m = 0; m < x.dims.size(); ++m) block.indices[m] = typed<Index>(x.indices[m]) + first;
    block.values = typed<Value>(x.values) + first;
  }
};

}  // namespace polyad
