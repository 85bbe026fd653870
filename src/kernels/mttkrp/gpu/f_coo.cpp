// SPDX-License-Identifier: MIT
/// \file MTTKRP on F-COO on devices: parts are runs of whole chunks, with the output rows that they have.
#include "formats/f_coo/f_coo.hpp"

#include "kernels/mttkrp/gpu/run.hpp"

namespace polyad::gpu {

static_assert(group_nonzeros % FCoo::chunk_nonzeros == 0);

std::vector<PartGroup> cut_f_coo(const TensorBody& tensor, const CutRequest& q) {
  const FCoo& f = *get_if<FCoo>(tensor);
  const std::uint64_t nnz = f.tensor_shape.nnz;
  const std::vector<int> modes = output_first(f.tensor_shape.order(), q.mode);
  PartGroup group;
  group.unit = "mttkrp_f_coo";
  group.function = "mttkrp_f_coo";
  group.defines = {{"PD_INDEX", index_type(f.rows)}, {"PD_CHUNK", std::to_string(FCoo::chunk_nonzeros)}};
  group.heaviest = heaviest_run;
  group.parts = cut_units(runs_of(nnz), q, [&](std::uint64_t first, std::uint64_t last) {
    const std::uint64_t begin = first * group_nonzeros;
    const std::uint64_t end = std::min(last * group_nonzeros, nnz);
    const std::uint64_t chunk = begin / FCoo::chunk_nonzeros;
    const std::uint64_t chunk_end = (end + FCoo::chunk_nonzeros - 1) / FCoo::chunk_nonzeros;
    const std::uint64_t row = f.chunk_row[chunk];
    Part p;
    for (std::size_t l = 1; l < modes.size(); ++l)
      p.arrays.push_back(bytes_of_range(f.indices[static_cast<std::size_t>(modes[l])], begin, end));
    p.arrays.push_back(bytes_of_range(f.values, begin, end));
    p.arrays.push_back(bytes_of_range(f.bit_flags.data(), begin / 64, (end + 63) / 64));
    p.arrays.push_back(bytes_of_range(f.chunk_row.data(), chunk, chunk_end));
    p.arrays.push_back(bytes_of_range(f.rows, row, f.row_place(end - 1) + 1));
    p.nnz = end - begin;
    p.groups = p.chunks = last - first;
    p.numbers = {p.nnz, group_nonzeros, q.stride, p.chunks};
    append_modes(p.numbers, modes);
    p.numbers.push_back(row);
    return p;
  });
  return {group};
}

}  // namespace polyad::gpu

namespace polyad {

extern const MttkrpKernel mttkrp_gpu_f_coo_segmented;
const MttkrpKernel mttkrp_gpu_f_coo_segmented = {
    {{"mttkrp/gpu/f-coo/segmented", "segmented sums over equal runs; bit flags say where rows begin"},
     "mttkrp",
     "f-coo",
     true,
     "gpu"},
    [](const MttkrpQuestion& q) {
      const FCoo* f = get_if<FCoo>(q.tensor);
      if (f != nullptr && f->mode != q.mode) return cannot("the tensor was built for another mode");
      return gpu::ask(q, f != nullptr, "f-coo", 1, "groups have equal work, rows are summed in registers");
    },
    gpu::run<float, gpu::cut_f_coo>,
    gpu::run<double, gpu::cut_f_coo>,
    gpu::cut_f_coo};

}  // namespace polyad
