// SPDX-License-Identifier: MIT
/// \file GenTen's MTTKRP-A and B on devices: parts are runs of nonzeros.
#include "formats/coo/coo.hpp"

#include "kernels/mttkrp/gpu/coo_parts.hpp"
#include "kernels/mttkrp/gpu/run.hpp"

namespace polyad::gpu {

std::vector<Part> coo_parts(const CooTensor& x, const CutRequest& q) {
  const std::vector<int> modes = output_first(x.order(), q.mode);
  return cut_units(runs_of(x.nnz()), q, [&](std::uint64_t first, std::uint64_t last) {
    const std::uint64_t begin = first * group_nonzeros;
    const std::uint64_t end = std::min(last * group_nonzeros, x.nnz());
    Part p;
    for (const IndexBuffer& indices : x.indices) p.arrays.push_back(bytes_of_range(indices, begin, end));
    p.arrays.push_back(bytes_of_range(x.values, begin, end));
    p.nnz = end - begin;
    p.groups = last - first;
    p.numbers = {p.nnz, group_nonzeros, q.stride, 0};
    append_modes(p.numbers, modes);
    return p;
  });
}

namespace {

std::vector<PartGroup> cut(const TensorBody& tensor, const CutRequest& q, std::string_view function, Columns columns) {
  const CooTensor& x = get_if<Coo>(tensor)->x;
  PartGroup group;
  group.unit = "mttkrp_coo";
  group.function = function;
  group.defines = {{"PD_INDEX", index_type(x.index_width())}, {"PD_OFFSET", "u32"}, {"PD_INTERLEAVED", "0"}};
  group.columns = columns;
  group.heaviest = heaviest_run;
  group.parts = coo_parts(x, q);
  return {group};
}

}  // namespace

std::vector<PartGroup> cut_coo_atomic(const TensorBody& tensor, const CutRequest& q) {
  return cut(tensor, q, "mttkrp_coo_atomic", Columns::loop);
}

std::vector<PartGroup> cut_coo_blocked(const TensorBody& tensor, const CutRequest& q) {
  return cut(tensor, q, "mttkrp_coo_blocked", Columns::registers);
}

}  // namespace polyad::gpu

namespace polyad {

extern const MttkrpKernel mttkrp_gpu_coo_atomic;
const MttkrpKernel mttkrp_gpu_coo_atomic = {
    {{"mttkrp/gpu/coo/atomic", "GenTen's MTTKRP-A: a worker per nonzero, every product added atomically"},
     "mttkrp",
     "coo",
     false,
     "gpu"},
    [](const MttkrpQuestion& q) {
      return gpu::ask(q, get_if<Coo>(q.tensor) != nullptr, "coo", 8, "one pass whatever the rank");
    },
    gpu::run<float, gpu::cut_coo_atomic>,
    gpu::run<double, gpu::cut_coo_atomic>,
    gpu::cut_coo_atomic};

extern const MttkrpKernel mttkrp_gpu_coo_blocked;
const MttkrpKernel mttkrp_gpu_coo_blocked = {
    {{"mttkrp/gpu/coo/blocked", "GenTen's MTTKRP-B: blocks of columns in registers, rows added atomically"},
     "mttkrp",
     "coo",
     false,
     "gpu"},
    [](const MttkrpQuestion& q) {
      return gpu::ask(q, get_if<Coo>(q.tensor) != nullptr, "coo", 4, "products stay in registers");
    },
    gpu::run<float, gpu::cut_coo_blocked>,
    gpu::run<double, gpu::cut_coo_blocked>,
    gpu::cut_coo_blocked};

}  // namespace polyad
