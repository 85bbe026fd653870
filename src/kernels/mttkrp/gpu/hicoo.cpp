// SPDX-License-Identifier: MIT
/// \file MTTKRP on HiCOO on devices: parts are runs of nonzeros with the blocks that they lie in.
#include "formats/hicoo/hicoo.hpp"

#include "kernels/mttkrp/gpu/run.hpp"

namespace polyad::gpu {

std::vector<PartGroup> cut_hicoo(const TensorBody& tensor, const CutRequest& q) {
  const Hicoo& h = *get_if<Hicoo>(tensor);
  const std::uint64_t nnz = h.tensor_shape.nnz;
  const auto order = static_cast<std::uint64_t>(h.tensor_shape.order());
  const std::vector<int> modes = output_first(h.tensor_shape.order(), q.mode);
  const auto block_of = [&](std::uint64_t z) {
    return static_cast<std::uint64_t>(std::upper_bound(h.bptr.begin(), h.bptr.end(), z) - h.bptr.begin() - 1);
  };
  PartGroup group;
  group.unit = "mttkrp_hicoo";
  group.function = "mttkrp_hicoo";
  group.defines = {{"PD_INDEX", index_type(h.binds)}};
  group.heaviest = heaviest_run;
  group.parts = cut_units(runs_of(nnz), q, [&](std::uint64_t first, std::uint64_t last) {
    const std::uint64_t begin = first * group_nonzeros;
    const std::uint64_t end = std::min(last * group_nonzeros, nnz);
    const std::uint64_t block = block_of(begin);
    const std::uint64_t block_end = block_of(end - 1) + 1;
    Part p;
    p.arrays = {bytes_of_range(h.bptr.data(), block, block_end + 1),
                bytes_of_range(h.binds, block * order, block_end * order)};
    for (std::uint64_t m = 0; m < order; ++m) {
      const std::uint8_t* offsets = h.einds.data() + m * nnz;
      p.arrays.push_back(bytes_of_range(offsets, begin, end));
    }
    p.arrays.push_back(bytes_of_range(h.values, begin, end));
    p.nnz = end - begin;
    p.groups = last - first;
    p.numbers = {
        begin, end, group_nonzeros, q.stride, static_cast<std::uint64_t>(h.sides.block_bits), block, block_end - block};
    append_modes(p.numbers, modes);
    return p;
  });
  return {group};
}

}  // namespace polyad::gpu

namespace polyad {

extern const MttkrpKernel mttkrp_gpu_hicoo_blocks;
const MttkrpKernel mttkrp_gpu_hicoo_blocks = {
    {{"mttkrp/gpu/hicoo/blocks", "groups walk along the blocks; rows added atomically"},
     "mttkrp",
     "hicoo",
     false,
     "gpu"},
    [](const MttkrpQuestion& q) {
      return gpu::ask(q, get_if<Hicoo>(q.tensor) != nullptr, "hicoo", 3, "offsets of one byte, equal work");
    },
    gpu::run<float, gpu::cut_hicoo>,
    gpu::run<double, gpu::cut_hicoo>,
    gpu::cut_hicoo};

}  // namespace polyad
