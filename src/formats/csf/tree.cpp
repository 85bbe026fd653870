// SPDX-License-Identifier: MIT
#include "formats/csf/tree.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "backends/cpu/threads.hpp"

namespace polyad {

namespace {

IndexBuffer pointer_buffer(std::uint64_t nodes, std::uint64_t nnz, const Context& context) {
  constexpr std::string_view purpose = "the pointers of a level of CSF";
  if (nnz <= std::numeric_limits<std::uint32_t>::max())
    return Buffer<std::uint32_t>(context, nodes + 1, purpose, Paging::plain);
  return Buffer<std::uint64_t>(context, nodes + 1, purpose, Paging::plain);
}

/// Nonzeros that a thread handles at a time, level after level.
constexpr std::uint64_t grown_at_once = 1024;

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

Buffer<std::uint8_t> new_levels(const SortedNonzeros& sorted, const Context& context) {
  Buffer<std::uint8_t> levels(context, sorted.nnz(), "the levels where nonzeros begin", Paging::plain);
  if (levels.empty()) return levels;
  const auto leaf = static_cast<std::uint8_t>(sorted.mode_order().size() - 1);
  sorted.visit([&](const auto& nonzeros) {
    cpu::parallel_ranges(context.thread_count(), levels.size() - 1, [&](std::uint64_t begin, std::uint64_t end) {
      for (std::uint64_t b = begin + 1; b <= end; b += grown_at_once)
        nonzeros.new_levels(b, static_cast<std::size_t>(std::min(end + 1 - b, grown_at_once)), leaf, &levels[b]);
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

namespace {

/// One level of a tree while threads fill it.
template <class Index, class Pointer>
struct LevelRoom {
  Index* ids = nullptr;
  Pointer* pointers = nullptr;
};

/// What one thread adds to a level from a block of nonzeros. Without a branch: what is written at `node` before its
/// nonzero comes is overwritten, and as long as node < end there is one to come.
/// \param child where the next node of the level below goes; at the fibres the nonzeros themselves
template <class Nonzeros, class Index, class Pointer>
void add_nodes(const Nonzeros& nonzeros, std::size_t level, bool above_leaves, const std::uint8_t* levels,
               std::uint64_t begin, std::uint64_t count, const LevelRoom<Index, Pointer>& to, std::uint64_t& node,
               std::uint64_t end, std::uint64_t& child) {
  if (above_leaves) {
    for (std::uint64_t k = begin; k < begin + count && node < end; ++k) {
      to.ids[node] = nonzeros.template index<Index>(level, k);
      to.pointers[node] = static_cast<Pointer>(k);
      node += levels[k] <= level ? 1 : 0;
    }
  } else {
    for (std::uint64_t k = begin; k < begin + count && node < end; ++k) {
      to.ids[node] = nonzeros.template index<Index>(level, k);
      to.pointers[node] = static_cast<Pointer>(child);
      node += levels[k] <= level ? 1 : 0;
      child += levels[k] <= level + 1 ? 1 : 0;
    }
  }
}

}  // namespace

FibreTree grow_tree(const SortedNonzeros& sorted, const TensorShape& shape, const Buffer<std::uint8_t>& levels,
                    const Context& context) {
  const std::uint64_t nnz = levels.size();
  const auto leaf = sorted.mode_order().size() - 1;
  const Starts starts(levels, static_cast<int>(leaf) + 1, context);
  FibreTree tree;
  tree.mode_order.assign(sorted.mode_order().begin(), sorted.mode_order().end());
  with_types(shape, [&]<class Index, class Value>() {
    constexpr std::string_view purpose = "the indices of a level of CSF";
    for (std::size_t l = 0; l < leaf; ++l) {
      tree.ids.emplace_back(Buffer<Index>(context, starts.at.back()[l], purpose, Paging::plain));
      tree.pointers.push_back(pointer_buffer(starts.at.back()[l], nnz, context));
    }
    tree.ids.emplace_back(Buffer<Index>(context, nnz, "the indices of the leaves of CSF", Paging::plain));
    tree.values = Buffer<Value>(context, nnz, "the values of CSF", Paging::plain);
    const auto grow = [&]<class Pointer>(Pointer) {
      std::vector<LevelRoom<Index, Pointer>> rooms;
      for (std::size_t l = 0; l < leaf; ++l) {
        rooms.push_back({typed<Index>(tree.ids[l]), typed<Pointer>(tree.pointers[l])});
        rooms[l].pointers[starts.at.back()[l]] = static_cast<Pointer>(l + 1 == leaf ? nnz : starts.at.back()[l + 1]);
      }
      Index* leaves = typed<Index>(tree.ids.back());
      auto* values = typed<Value>(tree.values);
      sorted.visit([&]<class Nonzeros>(const Nonzeros& nonzeros) {
        if constexpr (std::is_same_v<typename Nonzeros::value_type, Value>) {
          cpu::run_team(starts.parts, [&](int part, int size) {
            const auto p = static_cast<std::size_t>(part);
            std::vector<std::uint64_t> node = starts.at[p];
            std::vector<std::uint64_t> child(node.begin() + 1, node.end());
            const cpu::Share share = cpu::share_of(nnz, part, size);
            // All levels of a block of nonzeros that stays in L1.
            for (std::uint64_t b = share.begin; b < share.end; b += grown_at_once) {
              const std::uint64_t n = std::min(share.end - b, grown_at_once);
              for (std::size_t l = 0; l < leaf; ++l)
                add_nodes(nonzeros, l, l + 1 == leaf, levels.data(), b, n, rooms[l], node[l], starts.at[p + 1][l],
                          child[l]);
              for (std::uint64_t k = b; k < b + n; ++k) leaves[k] = nonzeros.template index<Index>(leaf, k);
              for (std::uint64_t k = b; k < b + n; ++k) values[k] = nonzeros.value(k);
            }
          });
        }
      });
    };
    nnz <= std::numeric_limits<std::uint32_t>::max() ? grow(std::uint32_t{}) : grow(std::uint64_t{});
  });
  return tree;
}

FibreTree build_tree(const CooTensor& x, std::span<const int> mode_order, const Context& context) {
  radix::Scratch scratch;
  const SortedNonzeros sorted(x, mode_order, mode_order.size(), context, scratch);
  return grow_tree(sorted, shape_of(x), new_levels(sorted, context), context);
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
