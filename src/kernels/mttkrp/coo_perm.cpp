// SPDX-License-Identifier: MIT
/// \file GenTen's MTTKRP-C (Phipps and Kolda, section 6): nonzeros in the order of the output mode, through a
/// permutation.
#include "formats/coo_perm/coo_perm.hpp"

#include "kernels/mttkrp/sorted_chunks.hpp"

namespace polyad {

namespace {

template <class T>
void run_permuted(const MttkrpRequest<T>& r) {
  const auto& coo = *get_if<CooPerm>(r.tensor);
  with_types(r.tensor.shape(), [&]<class Index, class Value>() {
    if constexpr (std::is_same_v<Value, T>)
      std::visit([&]<class Position>(
                     const Buffer<Position>&) { add_sorted<Index>(r, PermutedOrder<Index, T, Position>(coo, r.mode)); },
                 coo.permutations[static_cast<std::size_t>(r.mode)]);
  });
}

}  // namespace

extern const MttkrpKernel mttkrp_coo_perm_permuted;
const MttkrpKernel mttkrp_coo_perm_permuted = {
    {{"mttkrp/coo-perm/permuted", "GenTen's MTTKRP-C: rows are summed in registers, shared ones at the end"},
     "mttkrp",
     "coo-perm",
     true},
    [](const MttkrpQuestion& q) {
      if (get_if<CooPerm>(q.tensor) == nullptr) return cannot("it works on coo-perm");
      return can(1.2 * row_cost(q), "every output row is written once, without atomic additions");
    },
    run_permuted<float>,
    run_permuted<double>};

}  // namespace polyad
