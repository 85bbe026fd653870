// SPDX-License-Identifier: MIT
#include "polyad/coo_tensor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace polyad {

std::string CooTensor::mode_name(int mode) const {
  const auto m = static_cast<std::size_t>(mode);
  if (m < labels.size() && !labels[m].name().empty()) return labels[m].name();
  return fmt::format("mode {}", mode + 1);
}

IndexWidth width_for(std::span<const std::uint64_t> dims) {
  const bool wide =
      std::ranges::any_of(dims, [](std::uint64_t d) { return d > std::numeric_limits<std::uint32_t>::max(); });
  return wide ? IndexWidth::u64 : IndexWidth::u32;
}

CooTensor make_coo(std::vector<std::uint64_t> dims, std::uint64_t nnz, Precision precision, const Context& context) {
  const IndexWidth width = width_for(dims);
  return make_coo(std::move(dims), nnz, precision, width, context);
}

CooTensor make_coo(std::vector<std::uint64_t> dims, std::uint64_t nnz, Precision precision, IndexWidth width,
                   const Context& context) {
  CooTensor x;
  x.dims = std::move(dims);
  for (int m = 0; m < x.order(); ++m) {
    const std::string purpose = fmt::format("the index array of mode {}", m + 1);
    if (width == IndexWidth::u32) {
      x.indices.emplace_back(Buffer<std::uint32_t>(context, nnz, purpose, Paging::plain));
    } else {
      x.indices.emplace_back(Buffer<std::uint64_t>(context, nnz, purpose, Paging::plain));
    }
  }
  if (precision == Precision::f32) {
    x.values = Buffer<float>(context, nnz, "the array of values", Paging::plain);
  } else {
    x.values = Buffer<double>(context, nnz, "the array of values", Paging::plain);
  }
  return x;
}

}  // namespace polyad
