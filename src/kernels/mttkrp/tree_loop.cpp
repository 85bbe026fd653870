// SPDX-License-Identifier: MIT
#include "kernels/mttkrp/tree_loop.hpp"

#include "backends/cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/mttkrp/tree_loop.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/mttkrp/rows-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace polyad::HWY_NAMESPACE {

/// Rows of leaves and fibres are requested this many nodes ahead. Against 16 leaves and 8 fibres: 0.80 of the time
/// where fibres are single nonzeros and both matrices lie in L3 (vast mode 2, darpa mode 3), elsewhere the same.
constexpr std::uint32_t leaves_ahead = 32;
/// Higher nodes have more leaves below them.
constexpr std::uint32_t nodes_ahead = 8;

/// The height of the subtrees that registers are kept for: 1 when they are deeper than known.
constexpr int bottom_height(bool deeper, int height) { return deeper ? 1 : height; }

/// The lowest Heights levels in local variables. Vector stores may alias anything, so what is read through a reference
/// would be loaded again after each of them.
template <class T, int C, int Heights>
struct Bottom {
  using Row = Cols<T, C>;
  std::array<TreeLevel<T>, Heights> levels;
  const T* values;
  std::uint64_t stride;
  std::uint64_t column;
  bool short_fibres;

  HWY_INLINE Bottom(const TreeLoop<T>& l, std::uint64_t at)
      : values(l.values), stride(l.stride), column(at), short_fibres(l.short_fibres) {
    for (std::size_t h = 0; h < Heights; ++h) levels[h] = l.levels[h];
  }

  template <int H>
  HWY_INLINE const T* row(std::uint32_t node) const {
    return levels[H].factor + levels[H].ids[node] * stride + column;
  }
  template <int H>
  HWY_INLINE void prefetch(std::uint32_t node) const {
    constexpr std::uint32_t ahead = H <= 1 ? leaves_ahead : nodes_ahead;
    if (levels[H].prefetched) prefetch_row<T, C>(row<H>(std::min(node + ahead, levels[H].last)));
  }
  /// Where the children of a node end, inside the chunk. They begin where those of the node before end.
  template <int H>
  HWY_INLINE std::uint32_t end_of(std::uint32_t node) const {
    return std::min(levels[H].pointers[node + 1], levels[H - 1].end);
  }
  template <int H>
  HWY_INLINE std::uint32_t begin_of(std::uint32_t node) const {
    return std::max(levels[H].pointers[node], levels[H - 1].begin);
  }

  /// total += x * row if the condition holds, without a branch.
  static HWY_INLINE void add_if(bool condition, T x, const T* HWY_RESTRICT row, Row& total) {
    const typename Row::D d;
    const auto mask = hn::FirstN(d, condition ? hn::Lanes(d) : 0);
    const auto s = hn::Set(d, x);
    for (int i = 0; i < Row::vectors; ++i)
      total.v[i] = hn::IfThenElse(mask, hn::MulAdd(s, hn::LoadU(d, row + i * Row::lanes), total.v[i]), total.v[i]);
  }

  /// Sum over nodes begin .. end (at least one) of height H of what hangs from them: row * sum of the children.
  template <int H>
  HWY_INLINE Row sum(std::uint32_t begin, std::uint32_t end) const {
    if constexpr (H == 0) {
      prefetch<0>(begin);
      Row total = Row::all(values[begin]);
      total.times(row<0>(begin));
      std::uint32_t z = begin + 1;
      if (short_fibres) {
        const std::uint32_t second = std::min(z, levels[0].last);
        prefetch<0>(second);
        add_if(z < end, values[second], row<0>(second), total);
        ++z;
      }
      for (; z < end; ++z) {
        prefetch<0>(z);
        total.add_scaled(values[z], row<0>(z));
      }
      return total;
    } else {
      Row total = Row::zero();
      std::uint32_t child = begin_of<H>(begin);
      for (std::uint32_t node = begin; node < end; ++node) {
        const std::uint32_t stop = end_of<H>(node);
        prefetch<H>(node);
        total.add_product(sum<H - 1>(child, stop), row<H>(node));
        child = stop;
      }
      return total;
    }
  }
};

/// One chunk for C columns.
template <class T, int C>
struct Walk {
  using Row = Cols<T, C>;
  const TreeLoop<T>& l;
  std::uint64_t column;

  HWY_INLINE const TreeLevel<T>& level(int h) const { return l.levels[static_cast<std::size_t>(h)]; }
  HWY_INLINE const T* row(int h, std::uint32_t node) const {
    return level(h).factor + level(h).ids[node] * l.stride + column;
  }
  HWY_INLINE std::uint32_t begin_of(int h, std::uint32_t node) const {
    return std::max(level(h).pointers[node], level(h - 1).begin);
  }
  HWY_INLINE std::uint32_t end_of(int h, std::uint32_t node) const {
    return std::min(level(h).pointers[node + 1], level(h - 1).end);
  }

  /// Bottom::sum for heights known at run time only.
  HWY_NOINLINE void deep_sum(int h, std::uint32_t begin, std::uint32_t end, T* HWY_RESTRICT result) const {
    if (h == 2) return Bottom<T, C, 3>(l, column).template sum<2>(begin, end).store(result);
    alignas(64) T below[C];
    Row total = Row::zero();
    for (std::uint32_t node = begin; node < end; ++node) {
      deep_sum(h - 1, begin_of(h, node), end_of(h, node), below);
      total.add_product(Row::load(below), row(h, node));
    }
    total.store(result);
  }

  HWY_INLINE void emit(const Sink<T>& sink, std::uint32_t id, const Row& sum, bool once) const {
    if (once) return sum.store(sink.at(id) + column);
    add_row<T, C>(sink, id, column, sum, l.cols);
  }

  /// Output rows of nodes begin .. end of the output level, whose height is H (Deep: any from H on). `above` is the
  /// product of the rows above.
  template <int H, bool Deep, class Low>
  HWY_INLINE void output_nodes(const Low& low, const Sink<T>& sink, bool once, std::uint32_t begin, std::uint32_t end,
                               const Row& above) const {
    if constexpr (H == 0) {
      for (std::uint32_t z = begin; z < end; ++z) {
        if (low.levels[0].prefetched) {
          const std::uint32_t ahead = std::min(z + leaves_ahead, low.levels[0].last);
          prefetch_row_to_write<T, C>(sink.out + low.levels[0].ids[ahead] * low.stride + column);
        }
        Row product = Row::all(low.values[z]);
        product.times(above);
        emit(sink, low.levels[0].ids[z], product, false);
      }
    } else {
      const TreeLevel<T> mine = level(l.output);
      const std::uint32_t last_below = level(l.output - 1).end;
      std::uint32_t child = begin_of(l.output, begin);
      for (std::uint32_t node = begin; node < end; ++node) {
        const std::uint32_t stop = std::min(mine.pointers[node + 1], last_below);
        if (mine.prefetched && !once)
          prefetch_row_to_write<T, C>(sink.out + mine.ids[std::min(node + nodes_ahead, mine.last)] * low.stride +
                                      column);
        Row total;
        if constexpr (Deep) {
          alignas(64) T below[C];
          deep_sum(l.output - 1, child, stop, below);
          total = Row::load(below);
        } else {
          total = low.template sum<H - 1>(child, stop);
        }
        total.times(above);
        emit(sink, mine.ids[node], total, once);
        child = stop;
      }
    }
  }

  /// The root is the output.
  template <int H, bool Deep = false>
  HWY_NOINLINE void from_root() const {
    const Bottom<T, C, bottom_height(Deep, H)> low(l, column);
    const Sink<T> sink = l.sink;
    output_nodes<H, Deep>(low, sink, l.once, level(l.output).begin, level(l.output).end, Row::all(T{1}));
  }

  /// Nodes begin .. end of the level above the output.
  template <int H, bool Deep = false>
  HWY_NOINLINE void from_parents(std::uint32_t begin, std::uint32_t end, const T* HWY_RESTRICT product) const {
    const Bottom<T, C, bottom_height(Deep || H == 0, H)> low(l, column);
    const Sink<T> sink = l.sink;
    const TreeLevel<T> parent = level(l.output + 1);
    const std::uint32_t last_below = level(l.output).end;
    std::uint32_t child = begin_of(l.output + 1, begin);
    const Row above = Row::load(product);
    for (std::uint32_t node = begin; node < end; ++node) {
      const std::uint32_t stop = std::min(parent.pointers[node + 1], last_below);
      if (parent.prefetched)
        prefetch_row<T, C>(parent.factor + parent.ids[std::min(node + nodes_ahead, parent.last)] * low.stride + column);
      Row mine = above;
      mine.times(parent.factor + parent.ids[node] * low.stride + column);
      output_nodes<H, Deep>(low, sink, false, child, stop, mine);
      child = stop;
    }
  }

  /// Nodes begin .. end of height h, above the output.
  HWY_NOINLINE void down(int h, std::uint32_t begin, std::uint32_t end, const T* HWY_RESTRICT product) const {
    if (h == l.output + 1) {
      switch (l.output) {
        case 0:
          return from_parents<0>(begin, end, product);
        case 1:
          return from_parents<1>(begin, end, product);
        case 2:
          return from_parents<2>(begin, end, product);
        default:
          return from_parents<3, true>(begin, end, product);
      }
    }
    alignas(64) T mine[C];
    for (std::uint32_t node = begin; node < end; ++node) {
      Row p = Row::load(product);
      p.times(row(h, node));
      p.store(mine);
      down(h - 1, begin_of(h, node), end_of(h, node), mine);
    }
  }

  void run() const {
    const int root = l.order - 1;
    if (l.output == root) {
      switch (root) {
        case 1:
          return from_root<1>();
        case 2:
          return from_root<2>();
        case 3:
          return from_root<3>();
        case 4:
          return from_root<4>();
        default:
          return from_root<5, true>();
      }
    }
    alignas(64) T ones[C];
    std::fill_n(ones, C, T{1});
    down(root, level(root).begin, level(root).end, ones);
  }
};

template <class T>
struct Walks {
  const TreeLoop<T>& l;

  template <int C>
  HWY_INLINE void run(std::uint64_t column) const {
    Walk<T, C>{l, column}.run();
  }
};

void walk_f32(const TreeLoop<float>& l) { for_column_blocks(l.stride, Walks<float>{l}); }
void walk_f64(const TreeLoop<double>& l) { for_column_blocks(l.stride, Walks<double>{l}); }

}  // namespace polyad::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyad {

HWY_EXPORT(walk_f32);
HWY_EXPORT(walk_f64);

void add_subtrees(const TreeLoop<float>& l) { HWY_DYNAMIC_DISPATCH(walk_f32)(l); }
void add_subtrees(const TreeLoop<double>& l) { HWY_DYNAMIC_DISPATCH(walk_f64)(l); }

}  // namespace polyad
#endif
