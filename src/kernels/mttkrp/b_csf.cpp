// SPDX-License-Identifier: MIT
/// \file MTTKRP on B-CSF and HB-CSF, for the mode they were built for: bins of fibre segments go to the threads.
#include "formats/b_csf/b_csf.hpp"

#include "formats/hb_csf/hb_csf.hpp"
#include "kernels/mttkrp/nonzero_loop.hpp"
#include "kernels/mttkrp/sorted_rows.hpp"
#include "kernels/mttkrp/tree_loop.hpp"

namespace polyad {

namespace {

/// Bins that a thread takes at a time. 512 nonzeros suit a thread block; for one core taking them one by one, with side
/// rows for each, would cost more than the balance gains.
constexpr std::uint64_t bins_per_chunk = 16;
/// Nonzeros that a thread takes at a time from the groups without bins.
constexpr std::uint64_t nonzeros_per_chunk = bin_nonzeros * bins_per_chunk;

std::uint64_t chunks_for(std::uint64_t n, std::uint64_t per_chunk) { return (n + per_chunk - 1) / per_chunk; }

/// The loop over the nonzeros of the bins of a chunk.
template <class T>
TreeLoop<T> loop_over_bins(const TreePlan<T>& plan, const FibreTree& tree, const Bins& bins, std::uint64_t chunk) {
  const int fibre = tree.order() - 2;
  const std::uint64_t first = chunk * bins_per_chunk;
  const std::uint64_t last = std::min(first + bins_per_chunk, bins.count());
  return plan.over(tree.pointer(fibre, bins.segments[first]), tree.pointer(fibre, bins.segments[last]));
}

template <class T>
void run_bins(const MttkrpRequest<T>& r) {
  const auto& b = *get_if<BCsf>(r.tensor);
  TreePlan<T> plan(r, b.tree, 0);
  const std::uint64_t chunks = chunks_for(b.bins.count(), bins_per_chunk);
  const auto run = [&](auto& rows, const auto& sink_of) {
    cpu::for_each_chunk(r.threads(), chunks, [&](std::uint64_t c, int) {
      TreeLoop<T> loop = loop_over_bins(plan, b.tree, b.bins, c);
      loop.sink = sink_of(c, loop);
      add_subtrees(loop);
    });
    rows.finish();
  };
  if (r.order() == 2) {  // fibres are slices: a split one is several roots of one row
    BoundaryRows<T> rows(r, chunks);
    return run(rows, [&](std::uint64_t c, const TreeLoop<T>& loop) {
      const auto [first, last] = TreePlan<T>::end_rows(loop);
      return rows.sink(c, first, last);
    });
  }
  plan.loop.once = true;
  SortedRows<T> rows(r, chunks);
  run(rows, [&](std::uint64_t c, const TreeLoop<T>& loop) { return rows.sink(c, loop); });
}

/// Three loops, one per group (algorithm 5 of the paper). A slice is in one group, so they share no rows; all chunks
/// are handed out together.
template <class T>
void run_three(const MttkrpRequest<T>& r) {
  const auto& h = *get_if<HbCsf>(r.tensor);
  TreePlan<T> tree_plan(r, h.tree, 0);
  tree_plan.loop.once = r.order() > 2;
  const LoopPlan<std::uint32_t, T> coo_plan(r);
  LoopPlan<std::uint32_t, T> csl_plan = coo_plan;
  csl_plan.loop.runs = true;
  const std::uint64_t tree_chunks = chunks_for(h.bins.count(), bins_per_chunk);
  const std::uint64_t csl_chunks = chunks_for(h.csl.nnz(), nonzeros_per_chunk);
  const std::uint64_t coo_chunks = chunks_for(h.coo.nnz(), nonzeros_per_chunk);
  const std::uint64_t chunks = tree_chunks + csl_chunks + coo_chunks;
  BoundaryRows<T> rows(r, chunks);

  // Nonzeros of the groups without bins; `decode` fills a block, the rows at the ends of a chunk may be shared.
  const auto add = [&](std::uint64_t c, std::uint64_t index, std::uint64_t nnz, const LoopPlan<std::uint32_t, T>& plan,
                       const auto& decode) {
    NonzeroBlock<std::uint32_t, T> block(r.order());
    const auto mode = static_cast<std::size_t>(r.mode);
    const std::uint64_t end = std::min((index + 1) * nonzeros_per_chunk, nnz);
    decode(end - 1, std::size_t{1}, block);
    const std::uint64_t last_row = block.indices[mode][0];
    Sink<T> sink;
    for (std::uint64_t begin = index * nonzeros_per_chunk; begin < end; begin += loop_nonzeros) {
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(end - begin, loop_nonzeros));
      const auto available = static_cast<std::size_t>(std::min<std::uint64_t>(nnz - begin, count + prefetch_distance));
      decode(begin, available, block);
      if (sink.out == nullptr) sink = rows.sink(c, block.indices[mode][0], last_row);
      add_nonzeros(plan.over(block, r.mode, count, available, sink));
    }
  };
  cpu::for_each_chunk(r.threads(), chunks, [&](std::uint64_t c, int) {
    if (c < tree_chunks) {
      TreeLoop<T> loop = loop_over_bins(tree_plan, h.tree, h.bins, c);
      const auto [first, last] = TreePlan<T>::end_rows(loop);
      loop.sink = rows.sink(c, first, last);
      add_subtrees(loop);
    } else if (c < tree_chunks + csl_chunks) {
      add(c, c - tree_chunks, h.csl.nnz(), csl_plan,
          [&](std::uint64_t begin, std::size_t count, auto& block) { h.decode_csl(begin, count, block); });
    } else {
      add(c, c - tree_chunks - csl_chunks, h.coo.nnz(), coo_plan,
          [&](std::uint64_t begin, std::size_t, auto& block) { h.decode_coo(begin, block); });
    }
  });
  rows.finish();
}

Answer ask(const MttkrpQuestion& q, const FibreTree* tree, double rows, const char* format, const char* reason) {
  if (tree == nullptr) return cannot(fmt::format("it works on {}", format));
  if (q.tensor.mode() != q.mode)
    return cannot(fmt::format("the tensor was built for mode {}", q.tensor.mode().value_or(0) + 1));
  if (!has_narrow_arrays(*tree)) return cannot("it reads 32-bit indices and pointers");
  return can(tree_cost(q, *tree) + rows * (0.5 + static_cast<double>(q.rank) / 32.0), reason);
}

}  // namespace

extern const MttkrpKernel mttkrp_b_csf_bins;
const MttkrpKernel mttkrp_b_csf_bins = {
    {{"mttkrp/b-csf/bins", "bins of fibre segments go to threads; sums subtrees upwards"}, "mttkrp", "b-csf", true},
    [](const MttkrpQuestion& q) {
      const auto* b = get_if<BCsf>(q.tensor);
      return ask(q, b != nullptr ? &b->tree : nullptr, 0, "b-csf", "bins hold about the same number of nonzeros");
    },
    run_bins<float>,
    run_bins<double>};

extern const MttkrpKernel mttkrp_hb_csf_three;
const MttkrpKernel mttkrp_hb_csf_three = {
    {{"mttkrp/hb-csf/three", "three loops: single nonzeros, slices of singleton fibres, trees"},
     "mttkrp",
     "hb-csf",
     true},
    [](const MttkrpQuestion& q) {
      const auto* h = get_if<HbCsf>(q.tensor);
      const double rows =
          h == nullptr ? 0
                       : static_cast<double>(h->coo.nnz() + h->csl.nnz()) * static_cast<double>(h->mode_order.size());
      return ask(q, h != nullptr ? &h->tree : nullptr, rows, "hb-csf", "each slice is summed in its cheapest form");
    },
    run_three<float>,
    run_three<double>};

}  // namespace polyad
