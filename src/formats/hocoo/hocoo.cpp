// SPDX-License-Identifier: MIT
#include "formats/hocoo/hocoo.hpp"

#include <numeric>

#include "polyad/operations.hpp"

namespace polyad {

Hocoo Hocoo::build(const CooTensor& x, const FormatOptions& options, const Context& context) {
  Hocoo h{Coo::build(x, options, context)};
  std::vector<int> natural(x.dims.size());
  std::iota(natural.begin(), natural.end(), 0);
  sort_nonzeros(h.x, natural, context);
  return h;
}

extern const FormatClass hocoo_format;
const FormatClass hocoo_format = {
    {{"hocoo", "high-order COO: coordinates sorted by mode 1, 2, ..."},
     "Yang, Li, Li 2019 (HOCFS)",
     false,
     "one copy for all modes; products with a vector by segmented reduction"},
    [](const CooTensor& x, const FormatOptions& options, const Context& context) {
      return erased(hocoo_format, options, Hocoo::build(x, options, context));
    },
    [](const CooTensor& x, const TensorStatistics& statistics, const FormatOptions& options, const Context& context) {
      StoragePrediction p = predict_coo(x, statistics, options, context);
      p.words += static_cast<double>(x.nnz());  // the paper counts the values too
      p.formula = "(N+1)*nnz";
      return p;
    }};

}  // namespace polyad
