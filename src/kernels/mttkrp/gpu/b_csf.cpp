// SPDX-License-Identifier: MIT
/// \file MTTKRP on B-CSF and HB-CSF on devices (Nisa et al.): groups take bins of fibre segments; HB-CSF has two more
/// kernels for slices that are no trees.
#include "formats/b_csf/b_csf.hpp"

#include "formats/hb_csf/hb_csf.hpp"
#include "kernels/mttkrp/gpu/coo_parts.hpp"
#include "kernels/mttkrp/gpu/run.hpp"
#include "kernels/mttkrp/gpu/tree_parts.hpp"

namespace polyad::gpu {

namespace {

PartGroup csl_parts(const HbCsf& h, const CutRequest& q) {
  const Csl& csl = h.csl;
  PartGroup group;
  group.unit = "mttkrp_csl";
  group.function = "mttkrp_csl";
  group.defines = {{"PD_INDEX", index_type(csl.slice_ids)}, {"PD_OFFSET", index_type(csl.slice_pointers)}};
  group.heaviest = heaviest_run;
  const std::uint64_t nnz = csl.nnz();
  const auto slice_of = [&](std::uint64_t z) {
    return std::visit(
        [&](const auto& p) {
          return static_cast<std::uint64_t>(std::upper_bound(p.begin(), p.end(), z) - p.begin() - 1);
        },
        csl.slice_pointers);
  };
  group.parts = cut_units(runs_of(nnz), q, [&](std::uint64_t first, std::uint64_t last) {
    const std::uint64_t begin = first * group_nonzeros;
    const std::uint64_t end = std::min(last * group_nonzeros, nnz);
    const std::uint64_t slice = slice_of(begin);
    const std::uint64_t slice_end = slice_of(end - 1) + 1;
    Part p;
    p.arrays = {bytes_of_range(csl.slice_ids, slice, slice_end),
                bytes_of_range(csl.slice_pointers, slice, slice_end + 1)};
    for (const IndexBuffer& indices : csl.indices) p.arrays.push_back(bytes_of_range(indices, begin, end));
    p.arrays.push_back(bytes_of_range(csl.values, begin, end));
    p.nnz = end - begin;
    p.groups = p.chunks = last - first;
    p.numbers = {begin, end, group_nonzeros, q.stride, p.chunks};
    append_modes(p.numbers, h.mode_order);
    p.numbers.push_back(slice);
    p.numbers.push_back(slice_end - slice);
    return p;
  });
  return group;
}

PartGroup single_parts(const HbCsf& h, const CutRequest& q) {
  PartGroup group;
  group.unit = "mttkrp_coo";
  group.function = "mttkrp_coo_single";
  group.defines = {{"PD_INDEX", index_type(h.coo.index_width())}, {"PD_OFFSET", "u32"}, {"PD_INTERLEAVED", "0"}};
  group.heaviest = heaviest_run;
  group.parts = coo_parts(h.coo, q);
  return group;
}

Answer ask_built(const MttkrpQuestion& q, bool fits, std::string_view format, double cost, const char* reason) {
  if (fits && q.tensor.mode() != q.mode)
    return cannot(fmt::format("the tensor was built for mode {}", q.tensor.mode().value_or(0) + 1));
  return ask(q, fits, format, cost, reason);
}

}  // namespace

std::vector<PartGroup> cut_b_csf(const TensorBody& tensor, const CutRequest& q) {
  const BCsf& b = *get_if<BCsf>(tensor);
  return {bin_parts(b.tree, b.bins, q)};
}

std::vector<PartGroup> cut_hb_csf(const TensorBody& tensor, const CutRequest& q) {
  const HbCsf& h = *get_if<HbCsf>(tensor);
  std::vector<PartGroup> groups;
  if (h.bins.count() > 0) groups.push_back(bin_parts(h.tree, h.bins, q));
  if (h.csl.nnz() > 0) groups.push_back(csl_parts(h, q));
  if (h.coo.nnz() > 0) groups.push_back(single_parts(h, q));
  return groups;
}

}  // namespace polyad::gpu

namespace polyad {

extern const MttkrpKernel mttkrp_gpu_b_csf_bins;
const MttkrpKernel mttkrp_gpu_b_csf_bins = {
    {{"mttkrp/gpu/b-csf/bins", "groups take bins of fibre segments; heavy slices are spread over groups"},
     "mttkrp",
     "b-csf",
     true,
     "gpu"},
    [](const MttkrpQuestion& q) {
      return gpu::ask_built(q, get_if<BCsf>(q.tensor) != nullptr, "b-csf", 0.7, "groups have equal work");
    },
    gpu::run<float, gpu::cut_b_csf>,
    gpu::run<double, gpu::cut_b_csf>,
    gpu::cut_b_csf};

extern const MttkrpKernel mttkrp_gpu_hb_csf_three;
const MttkrpKernel mttkrp_gpu_hb_csf_three = {
    {{"mttkrp/gpu/hb-csf/three", "three kernels: single nonzeros, slices of singleton fibres, bins of fibre segments"},
     "mttkrp",
     "hb-csf",
     true,
     "gpu"},
    [](const MttkrpQuestion& q) {
      return gpu::ask_built(q, get_if<HbCsf>(q.tensor) != nullptr, "hb-csf", 0.7,
                            "each slice is summed in its cheapest form");
    },
    gpu::run<float, gpu::cut_hb_csf>,
    gpu::run<double, gpu::cut_hb_csf>,
    gpu::cut_hb_csf};

}  // namespace polyad
