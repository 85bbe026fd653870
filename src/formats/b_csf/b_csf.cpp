// SPDX-License-Identifier: MIT
#include "formats/b_csf/b_csf.hpp"

#include "formats/csf/csf.hpp"

#include <algorithm>

#include "backends/cpu/threads.hpp"

namespace polyad {

std::uint64_t threshold_of(const FormatOptions& options) {
  return options.fibre_threshold == 0 ? 128 : options.fibre_threshold;
}

Bins bins_of(const FibreTree& tree, const Context& context) {
  const auto fibre = static_cast<std::size_t>(tree.order() - 2);
  const std::uint64_t nnz = tree.nnz();
  const std::uint64_t runs = (nnz + bin_nonzeros - 1) / bin_nonzeros;
  Bins bins;
  bins.segments = Buffer<std::uint64_t>(context, runs + 1, "the bins of B-CSF", Paging::plain);
  bins.slices = Buffer<std::uint64_t>(context, runs, "the bins of B-CSF", Paging::plain);
  // Levels between the fibres and the root are few enough nodes to be searched whole; the segments of the next run are
  // near those of the last.
  std::visit(
      [&](const auto& pointers) {
        cpu::parallel_ranges(
            context.thread_count(), runs,
            [&](std::uint64_t begin, std::uint64_t end) {
              auto from = pointers.begin();
              auto to = pointers.end();
              for (std::uint64_t b = begin; b < end; ++b) {
                from = std::lower_bound(from, to, b * bin_nonzeros);
                to = from + std::min<std::ptrdiff_t>(bin_nonzeros + 1, pointers.end() - from);
                bins.segments[b] = static_cast<std::uint64_t>(from - pointers.begin());
                bins.slices[b] = tree.ancestor(static_cast<int>(fibre), bins.segments[b], 0);
              }
            },
            64);
        // A segment longer than a bin (a threshold above 512) leaves runs in which none begins.
        std::uint64_t kept = 0;
        for (std::uint64_t b = 0; b < runs; ++b) {
          if (bins.segments[b] == tree.nodes(static_cast<int>(fibre))) break;
          if (kept > 0 && bins.segments[b] == bins.segments[kept - 1]) continue;
          bins.segments[kept] = bins.segments[b];
          bins.slices[kept++] = bins.slices[b];
        }
        bins.segments[kept] = tree.nodes(static_cast<int>(fibre));
        bins.segments.resize(kept + 1, "the bins of B-CSF");
        bins.slices.resize(kept, "the bins of B-CSF");
      },
      tree.pointers[fibre]);
  return bins;
}

BCsf BCsf::build(const CooTensor& x, const FormatOptions& options, const Context& context) {
  BCsf b;
  b.tensor_shape = shape_of(x);
  const std::vector<int> order = modes_with_root(x.dims, options.mode.value());
  radix::Scratch scratch;
  const SortedNonzeros sorted(x, order, order.size(), context, scratch);
  Buffer<std::uint8_t> levels = new_levels(sorted, context);
  split_fibres(levels, x.order(), threshold_of(options), context);
  b.tree = grow_tree(sorted, b.tensor_shape, levels, context);
  b.bins = bins_of(b.tree, context);
  return b;
}

namespace {

/// The splits depend on the length of every fibre, so the coordinates are sorted as for building. With a threshold
/// above bin_nonzeros there may be fewer bins than the bytes say.
StoragePrediction predict(const CooTensor& x, const TensorStatistics&, const FormatOptions& options,
                          const Context& context) {
  const std::vector<int> order = modes_with_root(x.dims, options.mode.value());
  radix::Scratch scratch;
  Buffer<std::uint8_t> levels = new_levels(SortedNonzeros(x, order, order.size(), context, scratch), context);
  split_fibres(levels, x.order(), threshold_of(options), context);
  StoragePrediction p = predict_tree(count_nodes(levels, x.order(), context), x);
  const std::uint64_t bins = (x.nnz() + bin_nonzeros - 1) / bin_nonzeros;
  p.bytes += static_cast<double>((2 * bins + 1) * sizeof(std::uint64_t));
  p.formula = "nnz + sum over inner levels of 2*nodes, fibres counted as segments (N=3: 2S + 2F' + nnz)";
  return p;
}

}  // namespace

extern const FormatClass b_csf_format;
const FormatClass b_csf_format = {
    {{"b-csf", "balanced CSF: fibres split at a threshold, slices spread over bins of 512 nonzeros"},
     "Nisa et al., IPDPS 2019, section IV",
     true,
     "balanced work however skewed slices and fibres are"},
    [](const CooTensor& x, const FormatOptions& options, const Context& context) {
      return erased(b_csf_format, options, BCsf::build(x, options, context));
    },
    predict,
    [](const EstimateRequest& q) { return estimate_like_csf_all(q, 1.03, 35, "as csf-all, long fibres split"); }};

}  // namespace polyad
