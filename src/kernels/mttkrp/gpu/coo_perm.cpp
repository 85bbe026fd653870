// SPDX-License-Identifier: MIT
/// \file GenTen's MTTKRP-C on devices. The permutation reaches anywhere: all nonzeros are on the device. Where they do
/// not fit, runs of nonzeros are added atomically as MTTKRP-B does.
#include "formats/coo_perm/coo_perm.hpp"

#include "kernels/mttkrp/gpu/run.hpp"

namespace polyad::gpu {

std::vector<PartGroup> cut_coo_perm(const TensorBody& tensor, const CutRequest& q) {
  const CooPerm& c = *get_if<CooPerm>(tensor);
  const auto order = static_cast<std::uint64_t>(c.tensor_shape.order());
  const std::uint64_t nnz = c.tensor_shape.nnz;
  const auto mode = static_cast<std::size_t>(q.mode);
  const IndexBuffer& permutation = c.permutations[mode];
  const std::vector<int> modes = output_first(c.tensor_shape.order(), q.mode);
  PartGroup group;
  group.unit = "mttkrp_coo";
  group.defines = {
      {"PD_INDEX", index_type(c.indices)}, {"PD_OFFSET", index_type(permutation)}, {"PD_INTERLEAVED", "1"}};
  group.heaviest = heaviest_run;
  // Arrays that stay have the permutations of all modes, each copied when its mode is first wanted.
  enum class Permutations : std::uint8_t { none, own, all };
  const auto part = [&](std::uint64_t first, std::uint64_t last, Permutations permutations) {
    const bool permuted = permutations != Permutations::none;
    const std::uint64_t begin = first * group_nonzeros;
    const std::uint64_t end = std::min(last * group_nonzeros, nnz);
    Part p;
    p.arrays = {
        permuted ? bytes_of_range(c.indices, 0, nnz * order) : bytes_of_range(c.indices, begin * order, end * order),
        permuted ? bytes_of_range(c.values, 0, nnz) : bytes_of_range(c.values, begin, end)};
    for (std::size_t m = 0; permuted && m < order; ++m) {
      const bool there = m == mode || permutations == Permutations::all;
      if (m != mode) p.unread |= std::uint64_t{1} << p.arrays.size();
      p.arrays.push_back(there ? bytes_of_range(c.permutations[m], begin, end) : std::span<const std::byte>());
    }
    p.nnz = end - begin;
    p.groups = last - first;
    p.chunks = permuted ? p.groups : 0;
    p.numbers = {p.nnz, group_nonzeros, q.stride, p.chunks};
    append_modes(p.numbers, modes);
    return p;
  };
  if (nnz == 0) return {};
  const Part whole = part(0, runs_of(nnz), Permutations::own);
  if (whole.bytes() <= q.most_bytes) {
    const bool room_for_all = q.stays && part(0, runs_of(nnz), Permutations::all).bytes() <= q.most_bytes;
    const Permutations permutations = room_for_all ? Permutations::all : Permutations::own;
    group.function = "mttkrp_coo_permuted";
    const std::uint64_t each = (runs_of(nnz) + q.devices - 1) / q.devices;
    for (std::uint64_t first = 0; first < runs_of(nnz); first += each)
      group.parts.push_back(part(first, std::min(first + each, runs_of(nnz)), permutations));
    return {group};
  }
  if (q.deterministic)
    throw Error(ErrorKind::limit,
                fmt::format("coo-perm: {} bytes must lie on one device for the same bits every time, {} are free; take "
                            "f-coo, b-csf or hb-csf",
                            whole.bytes(), q.most_bytes));
  group.function = "mttkrp_coo_blocked";
  group.columns = Columns::registers;
  group.parts = cut_units(
      runs_of(nnz), q, [&](std::uint64_t first, std::uint64_t last) { return part(first, last, Permutations::none); });
  return {group};
}

}  // namespace polyad::gpu

namespace polyad {

extern const MttkrpKernel mttkrp_gpu_coo_perm_permuted;
const MttkrpKernel mttkrp_gpu_coo_perm_permuted = {
    {{"mttkrp/gpu/coo-perm/permuted", "GenTen's MTTKRP-C: rows are summed in registers, shared ones at the end"},
     "mttkrp",
     "coo-perm",
     true,
     "gpu"},
    [](const MttkrpQuestion& q) {
      return gpu::ask(q, get_if<CooPerm>(q.tensor) != nullptr, "coo-perm", 1.5,
                      "rows are summed in registers where it fits the device as a whole, else added atomically");
    },
    gpu::run<float, gpu::cut_coo_perm>,
    gpu::run<double, gpu::cut_coo_perm>,
    gpu::cut_coo_perm};

}  // namespace polyad
