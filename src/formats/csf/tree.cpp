// SPDX-License-Identifier: MIT
#include "formats/csf/tree.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "backends/cpu/threads.hpp"
#include "formats/coo/coo.hpp"
#include "polyad/operations.hpp"

namespace polyad {

namespace {

/// The arrays of x without owning them.
CooTensor view_of(const CooTensor& x) {
  const auto owner = std::shared_ptr<const void>(&x, [](const void*) {});
  const auto view = [&]<class T>(const Buffer<T>& b) {
    return Buffer<T>::view(owner, const_cast<T*>(b.data()), b.size());
  };
  CooTensor v;
  v.dims = x.dims;
  v.sorted_by = x.sorted_by;
  v.duplicates_merged = x.duplicates_merged;
  for (const IndexBuffer& b : x.indices)
    v.indices.push_back(std::visit([&](const auto& typed_buffer) { return IndexBuffer(view(typed_buffer)); }, b));
  v.values = std::visit([&](const auto& typed_buffer) { return ValueBuffer(view(typed_buffer)); }, x.values);
  return v;
}

/// The buffer itself, or a copy of a view.
template <class T>
Buffer<T> owned(Buffer<T>&& b, const Context& context, std::string_view purpose) {
  if (!b.is_view()) return std::move(b);
  Buffer<T> copy(context, b.size(), purpose, Paging::plain);
  cpu::parallel_ranges(context.thread_count(), b.size(), [&](std::uint64_t begin, std::uint64_t end) {
    std::copy(b.data() + begin, b.data() + end, copy.data() + begin);
  });
  return copy;
}

IndexBuffer pointer_buffer(std::uint64_t nodes, std::uint64_t nnz, const Context& context) {
  constexpr std::string_view purpose = "the pointers of a level of CSF";
  if (nnz <= std::numeric_limits<std::uint32_t>::max())
    return Buffer<std::uint32_t>(context, nodes + 1, purpose, Paging::plain);
  return Buffer<std::uint64_t>(context, nodes + 1, purpose, Paging::plain);
}

/// Positions of the first new node of each part at each level.
struct Starts {
  int parts = 1;
  std::vector<std::vector<std::uint64_t>> at;  // [part + 1][level]

  Starts(const Buffer<std::uint8_t>& levels, int order, const Context& context)
      : parts(useful_threads(levels.size(), context)),
        at(static_cast<std::size_t>(parts) + 1, std::vector<std::uint64_t>(static_cast<std::size_t>(order))) {
    cpu::run_team(parts, [&](int part, int size) {
      const cpu::Share s = cpu::share_of(levels.size(), part, size);
      std::vector<std::uint64_t>& mine = at[static_cast<std::size_t>(part) + 1];
      constexpr std::uint64_t step = 1U << 14U;  // stays in L1 for all levels
      for (std::uint64_t b = s.begin; b < s.end; b += step) {
        const std::uint8_t* level = levels.data() + b;
        const std::uint64_t n = std::min(s.end - b, step);
        for (std::size_t l = 0; l < mine.size(); ++l) {
          std::uint32_t found = 0;
          for (std::uint64_t k = 0; k < n; ++k) found += level[k] <= l ? 1U : 0U;
          mine[l] += found;
        }
      }
    });
    for (std::size_t p = 1; p < at.size(); ++p)
      for (std::size_t l = 0; l < at[p].size(); ++l) at[p][l] += at[p - 1][l];
  }
};

}  // namespace

std::uint64_t FibreTree::nodes(int level) const {
  return std::visit([](const auto& b) { return static_cast<std::uint64_t>(b.size()); },
                    ids[static_cast<std::size_t>(level)]);
}

std::uint64_t FibreTree::pointer(int level, std::uint64_t node) const {
  return std::visit([&](const auto& b) { return static_cast<std::uint64_t>(b[node]); },
                    pointers[static_cast<std::size_t>(level)]);
}

std::uint64_t FibreTree::bytes() const {
  std::uint64_t sum = bytes_in(values);
  for (const IndexBuffer& b : ids) sum += bytes_in(b);
  for (const IndexBuffer& b : pointers) sum += bytes_in(b);
  return sum;
}

std::uint64_t FibreTree::words() const {
  std::uint64_t sum = nnz();
  for (int l = 0; l + 1 < order(); ++l) sum += 2 * nodes(l);
  return sum;
}

std::uint64_t FibreTree::ancestor(int level, std::uint64_t node, int up) const {
  for (int l = level - 1; l >= up; --l)
    node = std::visit(
        [&](const auto& b) {
          return static_cast<std::uint64_t>(std::upper_bound(b.begin(), b.end(), node) - b.begin() - 1);
        },
        pointers[static_cast<std::size_t>(l)]);
  return node;
}

std::array<std::uint64_t, max_order> FibreTree::path_to(std::uint64_t z) const {
  std::array<std::uint64_t, max_order> path = {};
  path[static_cast<std::size_t>(order() - 1)] = z;
  for (int l = order() - 2; l >= 0; --l)
    path[static_cast<std::size_t>(l)] = ancestor(l + 1, path[static_cast<std::size_t>(l) + 1], l);
  return path;
}

std::vector<int> modes_by_length(std::span<const std::uint64_t> dims) {
  std::vector<int> modes(dims.size());
  std::iota(modes.begin(), modes.end(), 0);
  std::stable_sort(modes.begin(), modes.end(),
                   [&](int a, int b) { return dims[static_cast<std::size_t>(a)] < dims[static_cast<std::size_t>(b)]; });
  return modes;
}

std::vector<int> modes_with_root(std::span<const std::uint64_t> dims, int root) {
  std::vector<int> modes = modes_by_length(dims);
  const auto at = std::find(modes.begin(), modes.end(), root);
  std::rotate(modes.begin(), at, at + 1);
  return modes;
}

int useful_threads(std::uint64_t n, const Context& context) {
  return static_cast<int>(std::clamp<std::uint64_t>(n >> 14U, 1, static_cast<std::uint64_t>(context.thread_count())));
}

CooTensor sorted_for_tree(const CooTensor& x, std::span<const int> mode_order, const Context& context,
                          radix::Scratch* scratch) {
  // The sort writes a view's nonzeros to new arrays: it spares the copy.
  CooTensor sorted = x.index_width() == width_for(x.dims) ? view_of(x) : narrowest_copy(x, context);
  if (scratch) {
    radix::sort_nonzeros(sorted, mode_order, context, *scratch);
  } else {
    sort_nonzeros(sorted, mode_order, context);
  }
  return sorted;
}

Buffer<std::uint8_t> new_levels(const CooTensor& sorted, std::span<const int> mode_order, const Context& context) {
  Buffer<std::uint8_t> levels(context, sorted.nnz(), "the levels where nonzeros begin", Paging::plain);
  if (levels.empty()) return levels;
  const auto leaf = static_cast<int>(mode_order.size()) - 1;
  visit(sorted, [&]<class Index, class Value>(const CooView<Index, Value>& v) {
    cpu::parallel_ranges(context.thread_count(), v.nnz - 1, [&](std::uint64_t begin, std::uint64_t end) {
      constexpr std::uint64_t step = 4096;
      for (std::uint64_t b = begin; b < end; b += step) {
        const std::uint64_t n = std::min(end - b, step);
        std::uint8_t* level = levels.data() + b + 1;
        std::fill_n(level, n, static_cast<std::uint8_t>(leaf));
        for (int l = leaf - 1; l >= 0; --l) {
          const Index* index = v.indices[static_cast<std::size_t>(mode_order[static_cast<std::size_t>(l)])] + b;
          const auto mark = static_cast<std::uint8_t>(l);
          for (std::uint64_t k = 0; k < n; ++k) level[k] = index[k] != index[k + 1] ? mark : level[k];
        }
      }
    });
  });
  levels[0] = 0;
  return levels;
}

void split_fibres(Buffer<std::uint8_t>& levels, int order, std::uint64_t threshold, const Context& context) {
  struct Fibre {
    std::uint64_t begin;
    std::uint64_t end;
  };
  const std::uint64_t n = levels.size();
  const auto leaf = static_cast<std::uint8_t>(order - 1);
  // A fibre [begin, end) that is too long has `threshold` marks of leaves or more behind its first nonzero, so one of
  // them is at a multiple of the threshold: only those positions are looked at. The first such position of a fibre is
  // at most `threshold` behind its begin.
  std::vector<std::vector<Fibre>> found(static_cast<std::size_t>(useful_threads(n, context)));
  cpu::run_team(static_cast<int>(found.size()), [&](int part, int size) {
    const cpu::Share s = cpu::share_of(n / threshold + 1, part, size);
    for (std::uint64_t p = s.begin * threshold; p < std::min(s.end * threshold, n); p += threshold) {
      if (levels[p] != leaf) continue;
      std::uint64_t begin = p;
      while (levels[begin] == leaf && p - begin < threshold) --begin;
      if (levels[begin] == leaf) continue;
      std::uint64_t end = p + 1;
      while (end < n && levels[end] == leaf) ++end;
      if (end - begin > threshold) found[static_cast<std::size_t>(part)].push_back({begin, end});
    }
  });
  for (const std::vector<Fibre>& some : found)
    for (const Fibre& f : some)
      for (std::uint64_t k = f.begin + threshold; k < f.end; k += threshold)
        levels[k] = static_cast<std::uint8_t>(order - 2);
}

std::vector<std::uint64_t> count_nodes(const Buffer<std::uint8_t>& levels, int order, const Context& context) {
  return Starts(levels, order, context).at.back();
}

FibreTree grow_tree(CooTensor&& sorted, std::span<const int> mode_order, const Buffer<std::uint8_t>& levels,
                    const Context& context) {
  const int order = sorted.order();
  const std::uint64_t nnz = levels.size();
  const Starts starts(levels, order, context);
  FibreTree tree;
  tree.mode_order.assign(mode_order.begin(), mode_order.end());
  for (int l = 0; l + 1 < order; ++l) {
    const auto at = static_cast<std::size_t>(l);
    const bool above_leaves = l + 2 == order;
    const std::uint64_t nodes = starts.at.back()[at];
    IndexBuffer& source = sorted.indices[static_cast<std::size_t>(mode_order[at])];
    tree.pointers.push_back(pointer_buffer(nodes, nnz, context));
    std::visit(
        [&]<class Index, class Pointer>(Buffer<Index>& from, Buffer<Pointer>& pointers) {
          Buffer<Index> ids(context, nodes, "the indices of a level of CSF", Paging::plain);
          cpu::run_team(starts.parts, [&](int part, int size) {
            const auto p = static_cast<std::size_t>(part);
            const Index* index = from.data();
            const std::uint8_t* level = levels.data();
            Index* id = ids.data();
            Pointer* pointer = pointers.data();
            std::uint64_t node = starts.at[p][at];
            const std::uint64_t end = starts.at[p + 1][at];
            std::uint64_t k = cpu::share_of(nnz, part, size).begin;
            // Without a branch: what is written at `node` before its nonzero comes is overwritten, and as long as
            // node < end there is one to come.
            if (above_leaves) {
              for (; node < end; ++k) {
                id[node] = index[k];
                pointer[node] = static_cast<Pointer>(k);
                node += level[k] <= l ? 1 : 0;
              }
            } else {
              std::uint64_t child = starts.at[p][at + 1];
              for (; node < end; ++k) {
                id[node] = index[k];
                pointer[node] = static_cast<Pointer>(child);
                node += level[k] <= l ? 1 : 0;
                child += level[k] <= l + 1 ? 1 : 0;
              }
            }
          });
          pointers[nodes] = static_cast<Pointer>(above_leaves ? nnz : starts.at.back()[at + 1]);
          tree.ids.emplace_back(std::move(ids));
          from = Buffer<Index>();
        },
        source, tree.pointers.back());
  }
  std::visit(
      [&](auto& leaf) { tree.ids.emplace_back(owned(std::move(leaf), context, "the indices of the leaves of CSF")); },
      sorted.indices[static_cast<std::size_t>(mode_order.back())]);
  std::visit([&](auto& values) { tree.values = owned(std::move(values), context, "the values of CSF"); },
             sorted.values);
  return tree;
}

FibreTree build_tree(const CooTensor& x, std::span<const int> mode_order, const Context& context,
                     radix::Scratch* scratch) {
  CooTensor sorted = sorted_for_tree(x, mode_order, context, scratch);
  const Buffer<std::uint8_t> levels = new_levels(sorted, mode_order, context);
  return grow_tree(std::move(sorted), mode_order, levels, context);
}

StoragePrediction predict_tree(std::span<const std::uint64_t> nodes, const CooTensor& x) {
  const std::uint64_t nnz = x.nnz();
  const std::uint64_t index_bytes = bytes_of(width_for(x.dims));
  const std::uint64_t pointer_bytes = nnz <= std::numeric_limits<std::uint32_t>::max() ? 4 : 8;
  std::uint64_t words = nnz;
  std::uint64_t bytes = nnz * (index_bytes + bytes_of(x.precision()));
  for (std::size_t l = 0; l + 1 < nodes.size(); ++l) {
    words += 2 * nodes[l];
    bytes += nodes[l] * index_bytes + (nodes[l] + 1) * pointer_bytes;
  }
  return {static_cast<double>(words), static_cast<double>(bytes), "nnz + sum over inner levels of 2*nodes", {}};
}

}  // namespace polyad
