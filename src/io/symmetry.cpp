// SPDX-License-Identifier: MIT
#include <concepts>

#include "io/text_reader.hpp"

namespace polyad::io {

void mirror(CooTensor& x, Symmetry symmetry, const Context& context) {
  visit(x, [&]<class Index, class Value>(const CooView<Index, Value>& v) {
    std::uint64_t off_diagonal = 0;
    for (std::uint64_t k = 0; k < v.nnz; ++k) off_diagonal += v.indices[0][k] != v.indices[1][k] ? 1 : 0;
    CooTensor y = make_coo(x.dims, v.nnz + off_diagonal, x.precision(), x.index_width(), context);
    visit(y, [&]<class I, class V>(const CooView<I, V>& w) {
      if constexpr (std::same_as<I, Index> && std::same_as<V, Value>) {
        std::uint64_t at = 0;
        for (std::uint64_t k = 0; k < v.nnz; ++k) {
          const Index i = v.indices[0][k];
          const Index j = v.indices[1][k];
          const auto put = [&](Index a, Index b, Value value) {
            w.indices[0][at] = a;
            w.indices[1][at] = b;
            w.values[at++] = value;
          };
          put(i, j, v.values[k]);
          if (i != j) put(j, i, symmetry == Symmetry::skew ? -v.values[k] : v.values[k]);
        }
      }
    });
    x.indices = std::move(y.indices);
    x.values = std::move(y.values);
  });
}

}  // namespace polyad::io
