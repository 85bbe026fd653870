// SPDX-License-Identifier: MIT
/// \file MTTKRP on CSF: at the root every output row belongs to one chunk (but for those that two share), at other
/// levels threads add to shared rows.
#include "formats/csf/csf.hpp"

#include "kernels/mttkrp/owner.hpp"
#include "kernels/mttkrp/sorted_rows.hpp"
#include "kernels/mttkrp/tree_loop.hpp"

namespace polyad {

namespace {

enum class At : std::uint8_t { root, inner, leaf };

std::optional<Csf::Place> place_of(const Csf& csf, int mode, At at) {
  const int leaf = csf.tensor_shape.order() - 1;
  if (at == At::root) return csf.find(mode, 0, 0);
  return at == At::leaf ? csf.find(mode, leaf, leaf) : csf.find(mode, 1, leaf - 1);
}

template <class T>
void run_root(const MttkrpRequest<T>& r) {
  const Csf::Place place = *place_of(*get_if<Csf>(r.tensor), r.mode, At::root);
  TreePlan<T> plan(r, *place.tree, 0);
  plan.loop.once = true;
  const std::uint64_t step = leaves_per_chunk(r.nnz());
  const std::uint64_t chunks = (r.nnz() + step - 1) / step;
  SortedRows<T> rows(r, chunks);
  cpu::for_each_chunk(r.threads(), chunks, [&](std::uint64_t c, int) {
    TreeLoop<T> loop = plan.over(c * step, std::min((c + 1) * step, r.nnz()));
    loop.sink = rows.sink(c, loop);
    add_subtrees(loop);
  });
  rows.finish();
}

template <class T, At at>
void run_shared(const MttkrpRequest<T>& r) {
  const Csf::Place place = *place_of(*get_if<Csf>(r.tensor), r.mode, at);
  const TreePlan<T> plan(r, *place.tree, place.level);
  const std::uint64_t step = leaves_per_chunk(r.nnz());
  const std::uint64_t chunks = (r.nnz() + step - 1) / step;
  const int threads = static_cast<int>(std::clamp<std::uint64_t>(chunks, 1, static_cast<std::uint64_t>(r.threads())));
  if (!SharedOutput<T>::affordable(r, threads, place.tree->nodes(place.level))) return add_by_owner(r);
  const SharedOutput<T> output(r, threads);
  cpu::run_team(threads, [&](int rank, int size) {
    const Sink<T> sink = output.sink(rank);
    const cpu::Share s = cpu::share_of(chunks, rank, size);
    for (std::uint64_t c = s.begin; c < s.end; ++c) {
      TreeLoop<T> loop = plan.over(c * step, std::min((c + 1) * step, r.nnz()));
      loop.sink = sink;
      add_subtrees(loop);
    }
  });
  output.finish();
}

template <At at>
Answer ask(const MttkrpQuestion& q) {
  const auto* csf = get_if<Csf>(q.tensor);
  if (csf == nullptr) return cannot("it works on csf-one, csf-two and csf-all");
  const auto place = place_of(*csf, q.mode, at);
  if (!place) return cannot(fmt::format("mode {} is at another level of the trees", q.mode + 1));
  if (!has_narrow_arrays(*place->tree)) return cannot("it reads 32-bit indices and pointers");
  const double cost = tree_cost(q, *place->tree);
  if (at == At::root) return can(cost, "the mode is at the root of a tree: no two threads share rows");
  // A row that is added to is read and written, and at the leaves that is a row per nonzero. With a smaller tree of 2.7
  // times fewer nodes (enron, mode 3) the leaf kernel was no faster than the root.
  return can((at == At::leaf ? 3.0 : 2.0) * cost, "one tree for several modes; rows are shared by threads");
}

}  // namespace

extern const MttkrpKernel mttkrp_csf_root;
const MttkrpKernel mttkrp_csf_root = {{{"mttkrp/csf/root", "sums subtrees upwards; each root is an output row"},
                                       "mttkrp",
                                       "csf-one,csf-two,csf-all",
                                       true},
                                      ask<At::root>,
                                      run_root<float>,
                                      run_root<double>};

extern const MttkrpKernel mttkrp_csf_inner;
const MttkrpKernel mttkrp_csf_inner = {
    {{"mttkrp/csf/inner",
      "products downwards and sums upwards meet at an inner level; private outputs, or every thread its own rows"},
     "mttkrp",
     "csf-one,csf-two,csf-all",
     false},
    ask<At::inner>,
    run_shared<float, At::inner>,
    run_shared<double, At::inner>};

extern const MttkrpKernel mttkrp_csf_leaf;
const MttkrpKernel mttkrp_csf_leaf = {
    {{"mttkrp/csf/leaf", "products downwards; every leaf adds to a row; private outputs, or every thread its own rows"},
     "mttkrp",
     "csf-one,csf-two,csf-all",
     false},
    ask<At::leaf>,
    run_shared<float, At::leaf>,
    run_shared<double, At::leaf>};

}  // namespace polyad
