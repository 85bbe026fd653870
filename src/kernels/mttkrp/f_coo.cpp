// SPDX-License-Identifier: MIT
/// \file MTTKRP on F-COO: a segmented sum; the flags say where a row ends.
#include "formats/f_coo/f_coo.hpp"

#include "kernels/mttkrp/sorted_chunks.hpp"

namespace polyad {

namespace {

template <class T>
void run_segmented(const MttkrpRequest<T>& r) {
  with_types(r.tensor.shape(), [&]<class Index, class Value>() {
    if constexpr (std::is_same_v<Value, T>) add_sorted<Index>(r, *get_if<FCoo>(r.tensor));
  });
}

}  // namespace

extern const MttkrpKernel mttkrp_f_coo_segmented;
const MttkrpKernel mttkrp_f_coo_segmented = {
    {{"mttkrp/f-coo/segmented", "segmented sums over equal chunks; rows that chunks share are added at the end"},
     "mttkrp",
     "f-coo",
     true},
    [](const MttkrpQuestion& q) {
      const auto* f = get_if<FCoo>(q.tensor);
      if (f == nullptr) return cannot("it works on f-coo");
      if (f->mode != q.mode) return cannot("the tensor was built for another mode");
      return can(0.9 * row_cost(q), "sorted by the output mode: every row is written once");
    },
    run_segmented<float>,
    run_segmented<double>};

}  // namespace polyad
