// SPDX-License-Identifier: MIT
/// \file TTV by multiplying first and adding afterwards: on HOCOO (Algorithm 3 of Yang, Li and Li 2019) and on any
/// format.
#include "formats/hocoo/hocoo.hpp"
#include "kernels/ttv/segmented.hpp"
#include "polyad/operations.hpp"

namespace polyad {

namespace {

/// Products with the coordinates of the other modes, in the order of the format; sorting them makes the fibres runs.
/// One key word less to sort by than building a format for the mode takes.
CooTensor run_generic(const TtvRequest& r) {
  const TensorShape& shape = r.shape();
  const std::vector<int> others = modes_without(shape.order(), r.mode);
  CooTensor products = ttv_result(r, shape.nnz);
  const std::vector<int> wanted = std::move(products.sorted_by);
  products.sorted_by.clear();
  products.duplicates_merged = false;
  return with_types(shape, [&]<class Index, class T>() {
    {
      const Buffer<T> vector = vector_as<T>(r);
      cpu::parallel_ranges(r.threads(), shape.nnz, [&](std::uint64_t begin, std::uint64_t end) {
        NonzeroBlock<Index, T> block(shape.order());
        T* out = typed<T>(products.values);
        while (begin < end) {
          const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(end - begin, block.capacity));
          r.tensor.decode(begin, count, block);
          for (std::size_t m = 0; m < others.size(); ++m) {
            const Index* from = block.indices[static_cast<std::size_t>(others[m])];
            Index* to = typed<Index>(products.indices[m]) + begin;
            for (std::size_t k = 0; k < count; ++k) to[k] = from[k * block.index_stride];
          }
          const Index* at = block.indices[static_cast<std::size_t>(r.mode)];
          for (std::size_t k = 0; k < count; ++k) out[begin + k] = block.values[k] * vector[at[k * block.index_stride]];
          begin += count;
        }
      });
    }
    sort_nonzeros(products, wanted, r.context);
    std::array<const Index*, max_order> indices = {};
    for (std::size_t m = 0; m < others.size(); ++m) indices[m] = typed<Index>(products.indices[m]);
    const T* values = typed<T>(products.values);
    return sum_runs<Index, T>(r, indices, [values](std::uint64_t k) { return values[k]; });
  });
}

/// Algorithm 3. The nonzeros are sorted by mode 1, 2, ..., so the fibres of the last mode are runs already.
CooTensor run_hocoo(const TtvRequest& r) {
  if (r.mode + 1 != r.shape().order()) return run_generic(r);
  const CooTensor& x = get_if<Hocoo>(r.tensor)->x;
  return with_types(r.shape(), [&]<class Index, class T>() {
    const Buffer<T> vector = vector_as<T>(r);
    std::array<const Index*, max_order> indices = {};
    for (std::size_t m = 0; m + 1 < x.dims.size(); ++m) indices[m] = typed<Index>(x.indices[m]);
    const Index* at = typed<Index>(x.indices.back());
    const T* values = typed<T>(x.values);
    const T* v = vector.data();
    return sum_runs<Index, T>(r, indices, [=](std::uint64_t k) { return values[k] * v[at[k]]; });
  });
}

}  // namespace

extern const TtvKernel ttv_hocoo_segmented;
const TtvKernel ttv_hocoo_segmented = {
    {{"ttv/hocoo/segmented",
      "Algorithm 3 of HOCFS: multiply, then segmented reduction; sorts unless the mode is the last"},
     "ttv",
     "hocoo",
     true},
    [](const TtvQuestion& q) {
      if (get_if<Hocoo>(q.tensor) == nullptr) return cannot("it works on hocoo");
      const bool last = q.mode + 1 == q.tensor.shape().order();
      return can((last ? 3 : 29) * q.nnz(), last ? "the fibres of the last mode are runs of sorted coordinates"
                                                 : "products are sorted by the other modes and summed");
    },
    run_hocoo};

// Sums in the format's own order, which does not depend on the number of threads.
extern const TtvKernel ttv_generic;
const TtvKernel ttv_generic = {
    {{"ttv/generic", "decodes and multiplies, sorts by the other modes, segmented reduction"}, "ttv", "any", true},
    [](const TtvQuestion& q) {
      return can(30 * q.nnz() + 1e3, "works on every format; none of this format's own kernels can do better");
    },
    run_generic};

}  // namespace polyad
