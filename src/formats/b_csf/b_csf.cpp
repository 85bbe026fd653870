// SPDX-License-Identifier: MIT
#include "formats/b_csf/b_csf.hpp"

#include <algorithm>

namespace polyad {

std::uint64_t threshold_of(const FormatOptions& options) {
  return options.fibre_threshold == 0 ? 128 : options.fibre_threshold;
}

Bins bins_of(const FibreTree& tree, const Context& context) {
  const int fibre = tree.order() - 2;
  const std::uint64_t nnz = tree.nnz();
  std::vector<std::uint64_t> starts;
  for (std::uint64_t z = 0; z < nnz; z += bin_nonzeros) {
    std::uint64_t segment = tree.path_to(z)[static_cast<std::size_t>(fibre)];
    if (tree.pointer(fibre, segment) < z) ++segment;  // it began in the bin before
    // A segment longer than a bin (a threshold above 512) leaves nothing to begin here.
    if (segment < tree.nodes(fibre) && (starts.empty() || segment > starts.back())) starts.push_back(segment);
  }
  Bins bins;
  bins.segments = Buffer<std::uint64_t>(context, starts.size() + 1, "the bins of B-CSF", Paging::plain);
  bins.slices = Buffer<std::uint64_t>(context, starts.size(), "the bins of B-CSF", Paging::plain);
  std::copy(starts.begin(), starts.end(), bins.segments.begin());
  bins.segments[starts.size()] = tree.nodes(fibre);
  for (std::size_t b = 0; b < starts.size(); ++b) bins.slices[b] = tree.path_to(tree.pointer(fibre, starts[b]))[0];
  return bins;
}

BCsf BCsf::build(const CooTensor& x, const FormatOptions& options, const Context& context) {
  BCsf b;
  b.tensor_shape = shape_of(x);
  const std::vector<int> order = modes_with_root(x.dims, options.mode.value());
  CooTensor sorted = sorted_for_tree(x, order, context);
  Buffer<std::uint8_t> levels = new_levels(sorted, order, context);
  split_fibres(levels, x.order(), threshold_of(options), context);
  b.tree = grow_tree(std::move(sorted), order, levels, context);
  b.bins = bins_of(b.tree, context);
  return b;
}

namespace {

/// The splits depend on the length of every fibre, so the coordinates are sorted as for building.
StoragePrediction predict(const CooTensor& x, const TensorStatistics&, const FormatOptions& options,
                          const Context& context) {
  const std::vector<int> order = modes_with_root(x.dims, options.mode.value());
  const CooTensor sorted = sorted_for_tree(x, order, context);
  Buffer<std::uint8_t> levels = new_levels(sorted, order, context);
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
    predict};

}  // namespace polyad
