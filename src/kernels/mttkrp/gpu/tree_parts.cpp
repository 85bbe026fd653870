// SPDX-License-Identifier: MIT
#include "kernels/mttkrp/gpu/tree_parts.hpp"

namespace polyad::gpu {

namespace {

enum class Runs : std::uint8_t { slices, bins, equal };

// Where numbers are: see the text.
constexpr std::size_t modes_at = 5;

PartGroup group_of(const FibreTree& tree, int level, Runs runs) {
  PartGroup group;
  group.unit = "mttkrp_tree";
  group.function = "mttkrp_tree";
  group.defines = {{"PD_INDEX", index_type(tree.ids[0])},
                   {"PD_OFFSET", index_type(tree.pointers[0])},
                   {"PD_LEVEL", std::to_string(level)},
                   {"PD_RUNS", std::to_string(static_cast<int>(runs))},
                   {"PD_BINS", std::to_string(bins_per_group)}};
  return group;
}

/// Leaves [begin, end) of a tree: the nodes above them and the pointers of those. `per_group` is the third number.
Part leaves(const FibreTree& tree, std::uint64_t begin, std::uint64_t end, std::uint64_t per_group,
            const CutRequest& q) {
  const int order = tree.order();
  Part p;
  p.nnz = end - begin;
  p.numbers = {begin, end, per_group, q.stride, 0};
  append_modes(p.numbers, tree.mode_order);
  const auto first = tree.path_to(begin);
  const auto last = tree.path_to(end - 1);
  const auto level = [&](int l) { return static_cast<std::size_t>(l); };
  for (int l = 0; l < order; ++l) p.numbers.push_back(first[level(l)]);
  for (int l = 0; l < order; ++l) p.numbers.push_back(last[level(l)] + 1 - first[level(l)]);
  for (int l = 0; l < order; ++l)
    p.arrays.push_back(bytes_of_range(tree.ids[level(l)], first[level(l)], last[level(l)] + 1));
  for (int l = 0; l + 1 < order; ++l)
    p.arrays.push_back(bytes_of_range(tree.pointers[level(l)], first[level(l)], last[level(l)] + 2));
  p.arrays.push_back(bytes_of_range(tree.values, begin, end));
  return p;
}

void set_groups(Part& p, std::uint64_t groups, bool seams) {
  p.groups = groups;
  p.chunks = seams ? groups : 0;
  p.numbers[4] = p.chunks;
}

/// First leaf below a root node.
std::uint64_t first_leaf(const FibreTree& tree, std::uint64_t root) {
  std::uint64_t node = root;
  for (int l = 0; l + 1 < tree.order(); ++l) node = tree.pointer(l, node);
  return node;
}

/// The numbers of a part tell which nodes it has, its arrays where their children are.
std::uint64_t heaviest_slice(const Part& p) {
  const std::size_t order = (p.arrays.size()) / 2;
  const std::uint64_t* first = p.numbers.data() + modes_at + order;
  const std::uint64_t* nodes = first + order;
  const auto pointer = [&](std::size_t l, std::uint64_t node) -> std::uint64_t {
    const std::span<const std::byte> bytes = p.arrays[order + l];
    if (bytes.size() == (nodes[l] + 1) * sizeof(std::uint64_t))
      return reinterpret_cast<const std::uint64_t*>(bytes.data())[node - first[l]];
    return reinterpret_cast<const std::uint32_t*>(bytes.data())[node - first[l]];
  };
  std::uint64_t most = 0;
  std::uint64_t before = p.numbers[0];
  for (std::uint64_t slice = 1; slice <= nodes[0]; ++slice) {
    std::uint64_t node = first[0] + slice;
    for (std::size_t l = 0; l + 1 < order; ++l) node = pointer(l, node);
    const std::uint64_t end = std::min(node, p.numbers[1]);
    most = std::max(most, end - before);
    before = end;
  }
  return most;
}

std::uint64_t heaviest_bins(const Part& p) {
  const std::size_t order = (p.arrays.size() - 1) / 2;
  const std::uint64_t* first = p.numbers.data() + modes_at + order;
  const std::uint64_t nodes = first[order + order - 2];
  const std::span<const std::byte> bytes = p.arrays[2 * order - 2];
  const auto* segments = reinterpret_cast<const std::uint64_t*>(p.arrays.back().data());
  const auto leaf = [&](std::uint64_t bin) -> std::uint64_t {
    const std::uint64_t at = segments[std::min(bin, p.numbers[2])] - first[order - 2];
    if (bytes.size() == (nodes + 1) * sizeof(std::uint64_t))
      return reinterpret_cast<const std::uint64_t*>(bytes.data())[at];
    return reinterpret_cast<const std::uint32_t*>(bytes.data())[at];
  };
  std::uint64_t most = 0;
  for (std::uint64_t bin = 0; bin < p.numbers[2]; bin += bins_per_group)
    most = std::max(most, leaf(bin + bins_per_group) - leaf(bin));
  return most;
}

}  // namespace

PartGroup slice_parts(const FibreTree& tree, const CutRequest& q) {
  PartGroup group = group_of(tree, 0, Runs::slices);
  group.defines.emplace_back("PD_SEAMS", "2");
  group.heaviest = heaviest_slice;
  const std::uint64_t nnz = tree.nnz();
  const auto part = [&](std::uint64_t begin, std::uint64_t end) {
    Part p = leaves(tree, begin, end, 0, q);
    set_groups(p, p.numbers[modes_at + 2 * static_cast<std::size_t>(tree.order())], false);
    return p;
  };
  // The most leaves that fit, taken back to the end of a slice unless it is the slice that the part begins with.
  for (std::uint64_t begin = 0; begin < nnz;) {
    const std::uint64_t least = std::min(begin + group_nonzeros, nnz);
    const std::uint64_t most = std::max(least, std::min(nnz, begin + q.most_units(nnz)));
    std::uint64_t end =
        largest_that_fits(least, most, [&](std::uint64_t to) { return part(begin, to).bytes() <= q.most_bytes; });
    if (end < nnz) {
      const std::uint64_t slice = first_leaf(tree, tree.path_to(end)[0]);
      if (slice > begin) end = slice;
    }
    group.parts.push_back(part(begin, end));
    begin = end;
  }
  return group;
}

PartGroup run_parts(const FibreTree& tree, int level, const CutRequest& q) {
  PartGroup group = group_of(tree, level, Runs::equal);
  group.heaviest = heaviest_run;
  const std::uint64_t nnz = tree.nnz();
  group.parts = cut_units(runs_of(nnz), q, [&](std::uint64_t first, std::uint64_t last) {
    Part p = leaves(tree, first * group_nonzeros, std::min(last * group_nonzeros, nnz), group_nonzeros, q);
    set_groups(p, last - first, level == 0);
    return p;
  });
  return group;
}

PartGroup bin_parts(const FibreTree& tree, const Bins& bins, const CutRequest& q) {
  PartGroup group = group_of(tree, 0, Runs::bins);
  group.heaviest = heaviest_bins;
  const int fibre = tree.order() - 2;
  const std::uint64_t units = (bins.count() + bins_per_group - 1) / bins_per_group;
  group.parts = cut_units(units, q, [&](std::uint64_t first, std::uint64_t last) {
    const std::uint64_t begin = first * bins_per_group;
    const std::uint64_t end = std::min(last * bins_per_group, bins.count());
    Part p = leaves(tree, tree.pointer(fibre, bins.segments[begin]), tree.pointer(fibre, bins.segments[end]),
                    end - begin, q);
    p.arrays.push_back(bytes_of_range(bins.segments.data(), begin, end + 1));
    set_groups(p, last - first, true);
    return p;
  });
  return group;
}

}  // namespace polyad::gpu
