// SPDX-License-Identifier: MIT
/// \file MTTKRP on CSF on devices: at the root a group per slice, at other levels equal runs of nonzeros whose rows are
/// added atomically.
#include "formats/csf/csf.hpp"

#include "kernels/mttkrp/gpu/run.hpp"
#include "kernels/mttkrp/gpu/tree_parts.hpp"

namespace polyad::gpu {

namespace {

std::optional<Csf::Place> place_of(const TensorBody& tensor, int mode, bool root) {
  const Csf* csf = get_if<Csf>(tensor);
  if (csf == nullptr) return std::nullopt;
  return root ? csf->find(mode, 0, 0) : csf->find(mode, 1, csf->tensor_shape.order() - 1);
}

Answer ask_tree(const MttkrpQuestion& q, bool root) {
  const auto place = place_of(q.tensor, q.mode, root);
  if (get_if<Csf>(q.tensor) != nullptr && !place)
    return cannot(fmt::format("mode {} is at another level of the trees", q.mode + 1));
  return ask(q, place.has_value(), "csf-one, csf-two and csf-all", root ? 1.2 : 3.0,
             root ? "the mode is at the root of a tree: a group per slice" : "one tree for several modes");
}

}  // namespace

std::vector<PartGroup> cut_csf_root(const TensorBody& tensor, const CutRequest& q) {
  const FibreTree& tree = *place_of(tensor, q.mode, true)->tree;
  // A slice that is larger than a part is cut where the room ends, and its sum is rounded there. Equal runs with side
  // rows have their seams at fixed places.
  return {q.deterministic ? run_parts(tree, 0, q) : slice_parts(tree, q)};
}

std::vector<PartGroup> cut_csf_inner(const TensorBody& tensor, const CutRequest& q) {
  const Csf::Place place = *place_of(tensor, q.mode, false);
  return {run_parts(*place.tree, place.level, q)};
}

}  // namespace polyad::gpu

namespace polyad {

extern const MttkrpKernel mttkrp_gpu_csf_root;
const MttkrpKernel mttkrp_gpu_csf_root = {
    {{"mttkrp/gpu/csf/root", "a group per slice sums its subtree upwards; --deterministic: equal runs of nonzeros"},
     "mttkrp",
     "csf-one,csf-two,csf-all",
     true,
     "gpu"},
    [](const MttkrpQuestion& q) { return gpu::ask_tree(q, true); },
    gpu::run<float, gpu::cut_csf_root>,
    gpu::run<double, gpu::cut_csf_root>,
    gpu::cut_csf_root};

extern const MttkrpKernel mttkrp_gpu_csf_inner;
const MttkrpKernel mttkrp_gpu_csf_inner = {
    {{"mttkrp/gpu/csf/inner",
      "products downwards and sums upwards meet below the root, leaves included; rows added atomically"},
     "mttkrp",
     "csf-one,csf-two,csf-all",
     false,
     "gpu"},
    [](const MttkrpQuestion& q) { return gpu::ask_tree(q, false); },
    gpu::run<float, gpu::cut_csf_inner>,
    gpu::run<double, gpu::cut_csf_inner>,
    gpu::cut_csf_inner};

}  // namespace polyad
