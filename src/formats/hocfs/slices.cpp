// SPDX-License-Identifier: MIT
#include "formats/hocfs/slices.hpp"

#include <numeric>

#include "core/group_sizes.hpp"
#include "formats/coo/coo.hpp"
#include "formats/runs.hpp"
#include "polyad/operations.hpp"

namespace polyad {

std::vector<int> hocfs_modes(int order, int mode) {
  std::vector<int> modes;
  for (int step = 1; step <= order; ++step) modes.push_back((mode + step) % order);
  return modes;
}

std::uint64_t SlicesOfSlices::bytes() const {
  std::uint64_t sum = bytes_in(fibre_ids);
  for (const IndexBuffer& b : slice_ids) sum += bytes_in(b);
  for (const Offsets& o : slice_begins) sum += o.bytes();
  return sum;
}

SortedFibres sorted_fibres(const CooTensor& x, int mode, const Context& context) {
  SortedFibres s;
  s.tree.modes = hocfs_modes(x.order(), mode);
  CooTensor sorted = narrowest_copy(x, context);
  sort_nonzeros(sorted, s.tree.modes, context);
  visit(sorted, [&]<class Index, class Value>(const CooView<Index, Value>& v) {
    std::vector<int> prefixes(x.dims.size() - 1);
    std::iota(prefixes.begin(), prefixes.end(), 1);
    const Runs<Index> runs(v.indices, v.nnz, s.tree.modes, prefixes, context);
    std::vector<Buffer<Index>> ids;  // of the slices by level, then of the fibres
    for (std::size_t l = 0; l < prefixes.size(); ++l)
      ids.emplace_back(context, runs.count(l), "the slice and fibre ids of format hocfs");
    std::vector<Offsets> begins = runs.offsets([&](std::size_t l, std::uint64_t run, std::uint64_t k) {
      ids[l][run] = v.indices[static_cast<std::size_t>(s.tree.modes[l])][k];
    });
    s.begins = std::move(begins.back());
    begins.pop_back();
    s.tree.fibre_ids = std::move(ids.back());
    ids.pop_back();
    s.tree.slice_begins = std::move(begins);
    for (Buffer<Index>& b : ids) s.tree.slice_ids.emplace_back(std::move(b));
  });
  s.indices = std::move(sorted.indices[static_cast<std::size_t>(mode)]);
  s.values = std::move(sorted.values);
  return s;
}

FibreTreeSize fibre_tree_size(const CooTensor& x, const TensorStatistics& statistics, int mode,
                              const Context& context) {
  const std::vector<int> modes = hocfs_modes(x.order(), mode);
  const auto index_bytes = static_cast<double>(bytes_of(width_for(x.dims)));
  std::vector<std::uint64_t> counts;  // slices by level, then fibres
  const std::size_t levels = x.dims.size() - 2;
  if (levels > 0) counts.push_back(statistics.modes[static_cast<std::size_t>(modes[0])].slices.count);
  if (levels > 1) {
    const GroupCounter counter(x, context);
    for (std::size_t l = 1; l < levels; ++l)
      counts.push_back(counter.count(std::span<const int>(modes).first(l + 1)).count);
  }
  counts.push_back(statistics.modes[static_cast<std::size_t>(mode)].fibres.count);
  FibreTreeSize size;
  for (std::size_t l = 0; l < levels; ++l) {
    const auto n = static_cast<double>(counts[l]);
    size.slices += n;
    size.bytes += n * index_bytes + (n + 1) * static_cast<double>(Offsets::width_of(counts[l + 1]));
  }
  size.fibres = static_cast<double>(counts.back());
  size.bytes += size.fibres * index_bytes;
  return size;
}

}  // namespace polyad
