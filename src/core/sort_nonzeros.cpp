// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <atomic>
#include <limits>
#include <numeric>
#include <string>

#include "backends/cpu/threads.hpp"
#include "core/nonzero_order.hpp"
#include "core/radix_sort.hpp"
#include "polyad/error.hpp"
#include "polyad/operations.hpp"

namespace polyad {

namespace radix {

namespace {

constexpr std::string_view scratch_purpose = "the scratch array of the sort";

// The nonzeros as (packed indices, value): the key holds all indices, so nothing has to be gathered after the sort.
template <class Rec, class Index, class Value>
struct TensorStore : RecordSource<Rec, Index, Value> {
  void store(std::uint64_t at, const Rec& r) const {
    for (const KeyLayout::Field& f : this->layout->fields)
      this->indices[static_cast<std::size_t>(f.mode)][at] = KeyLayout::unpack<Index>(key_of(r), f);
    this->values[at] = r.payload;
  }
  void store_all(std::uint64_t begin, std::size_t count, const Rec* records) const {
    for (const KeyLayout::Field& f : this->layout->fields) {
      Index* out = this->indices[static_cast<std::size_t>(f.mode)] + begin;
      for (std::size_t i = 0; i < count; ++i) out[i] = KeyLayout::unpack<Index>(key_of(records[i]), f);
    }
    for (std::size_t i = 0; i < count; ++i) this->values[begin + i] = records[i].payload;
  }
};

// Positions of nonzeros; their keys are looked up in the tensor. Without positions it stands for 0, 1, 2, ...
template <class Rec, class Index, class Position>
struct PermutationStore {
  const KeyLayout* layout = nullptr;
  std::array<Index*, max_order> indices = {};
  Position* positions = nullptr;
  bool identity = false;

  void load(std::uint64_t begin, std::size_t count, Rec* out) const {
    std::array<KeyOf<Rec>, block_records> keys;
    for (std::size_t done = 0; done < count; done += block_records) {
      const std::size_t n = std::min(count - done, block_records);
      load_keys(begin + done, n, keys.data(), 0);
      for (std::size_t i = 0; i < n; ++i) {
        const std::uint64_t at = begin + done + i;
        out[done + i] = {std::bit_cast<decltype(Rec::words)>(keys[i]),
                         identity ? static_cast<Position>(at) : positions[at]};
      }
    }
  }
  void load_keys(std::uint64_t begin, std::size_t count, KeyOf<Rec>* out, int needed_from) const {
    if (identity) return layout->pack(indices, begin, count, out, needed_from);
    std::fill_n(out, count, KeyOf<Rec>{0});
    for (const KeyLayout::Field& f : layout->fields) {
      if (f.shift + f.bits <= needed_from) break;
      const Index* index = indices[static_cast<std::size_t>(f.mode)];
      for (std::size_t i = 0; i < count; ++i)
        out[i] |= static_cast<KeyOf<Rec>>(static_cast<KeyOf<Rec>>(index[positions[begin + i]]) << f.shift);
    }
  }
  void store(std::uint64_t at, const Rec& r) const { positions[at] = r.payload; }
  void store_all(std::uint64_t begin, std::size_t count, const Rec* records) const {
    for (std::size_t i = 0; i < count; ++i) positions[begin + i] = records[i].payload;
  }
};

// Puts sorted buckets where they belong.
template <class Rec, class Store>
struct Keep {
  const Store& store;

  void sorted(int, std::uint64_t begin, std::size_t count, const Rec* records) const {
    store.store_all(begin, count, records);
  }
  void equal(int, std::uint64_t begin, std::uint64_t count, const Rec* records, int team) const {
    cpu::parallel_ranges(team, count, [&](std::uint64_t b, std::uint64_t e) {
      store.store_all(begin + b, static_cast<std::size_t>(e - b), records + b);
    });
  }
};

bool has_view(const CooTensor& x) {
  const auto is_view = [](const auto& buffer) { return buffer.is_view(); };
  return std::visit(is_view, x.values) ||
         std::any_of(x.indices.begin(), x.indices.end(), [&](const IndexBuffer& b) { return std::visit(is_view, b); });
}

// Peak: the tensor and one record per nonzero, 12 or 16 bytes with a 64-bit key (f32, f64), 20 or 24 with 128 bits. An
// order-3 tensor itself has 16 or 20. A tensor that views foreign memory is sorted into arrays of its own: once more.
template <class Key>
void sort_by_key(CooTensor& x, const KeyLayout& layout, const Context& context, Scratch* scratch) {
  CooTensor fresh;
  const bool foreign = has_view(x);
  if (foreign) fresh = make_coo(x.dims, x.nnz(), x.precision(), x.index_width(), context);
  const auto report_half = [&] { context.report({"sorting", x.nnz() / 2, x.nnz(), "nonzeros"}); };
  visit(foreign ? fresh : x, [&]<class Index, class Value>(const CooView<Index, Value>& to) {
    using Rec = Record<Key, Value>;
    using Store = TensorStore<Rec, Index, Value>;
    const Store other{{&layout, to.indices, to.values}};
    Store source = other;
    if (foreign)
      visit(x, [&]<class I, class V>(const CooView<I, V>& from) {
        if constexpr (std::is_same_v<I, Index> && std::is_same_v<V, Value>)
          source = {{&layout, from.indices, from.values}};
      });
    Keep<Rec, Store> keep{other};
    sort<Rec>({to.nnz, {layout.bits}, scratch_purpose, scratch, report_half}, source, other, keep, context);
  });
  if (foreign) {
    x.indices = std::move(fresh.indices);
    x.values = std::move(fresh.values);
  }
}

// A range of the permutation whose nonzeros agree in the first `modes` modes of the order.
struct Tie {
  std::uint64_t begin = 0;
  std::uint64_t count = 0;
  std::size_t modes = 0;
};

// Keeps positions; those whose keys are equal are put in order by the modes that the key left out: by comparison in the
// cache, or later by a radix sort of their own when they are many.
template <class Rec, class Index, class Store>
struct KeepAndBreakTies {
  const Store& store;
  std::uint64_t offset;                  // of the sorted range
  std::span<const int> rest;             // modes after those of the key
  std::size_t modes;                     // how many are not in the rest
  std::vector<std::vector<Tie>>& later;  // [thread]

  void sorted(int, std::uint64_t begin, std::size_t count, const Rec* records) const {
    store.store_all(begin, count, records);
    if (rest.empty()) return;
    auto* positions = store.positions + begin;
    for (std::size_t b = 0; b < count;) {
      std::size_t e = b + 1;
      while (e < count && key_of(records[e]) == key_of(records[b])) ++e;
      if (e - b > 1)
        std::stable_sort(positions + b, positions + e, [&](std::uint64_t p, std::uint64_t q) {
          for (const int m : rest) {
            const Index* index = store.indices[static_cast<std::size_t>(m)];
            if (index[p] != index[q]) return index[p] < index[q];
          }
          return false;
        });
      b = e;
    }
  }
  void equal(int rank, std::uint64_t begin, std::uint64_t count, const Rec* records, int team) const {
    cpu::parallel_ranges(team, count, [&](std::uint64_t b, std::uint64_t e) {
      store.store_all(begin + b, static_cast<std::size_t>(e - b), records + b);
    });
    if (!rest.empty()) later[static_cast<std::size_t>(rank)].push_back({offset + begin, count, modes});
  }
};

// Any number of bits: sorts positions by the first modes that fit 64 bits, which leaves few ties in most tensors, and
// ties by the modes after them. Peak: the tensor, the positions (4 bytes, 8 from 2^32 nonzeros on) and 12 or 16 bytes
// of record per nonzero. The tensor changes only after the last sort.
template <class Position>
void sort_by_permutation(CooTensor& x, std::span<const std::uint64_t> largest, std::span<const int> mode_order,
                         const Context& context) {
  const std::uint64_t n = x.nnz();
  Buffer<Position> positions(context, n, "the permutation of the sort");
  visit(std::as_const(x), [&]<class Index, class Value>(const CooView<Index, Value>& v) {
    using Rec = Record<std::uint64_t, Position>;
    using Store = PermutationStore<Rec, Index, Position>;
    std::vector<Tie> ties = {{0, n, 0}};
    std::vector<std::vector<Tie>> later(static_cast<std::size_t>(context.thread_count()));
    while (!ties.empty()) {
      const Tie tie = ties.back();
      ties.pop_back();
      std::size_t end = tie.modes;
      for (int bits = 0; end < mode_order.size(); ++end) {
        bits += width_of(largest[static_cast<std::size_t>(mode_order[end])]);
        if (bits > 64) break;
      }
      const KeyLayout layout(largest, mode_order.subspan(tie.modes, end - tie.modes));
      const Store other{&layout, v.indices, positions.data() + tie.begin, false};
      Store source = other;
      source.identity = tie.modes == 0;
      KeepAndBreakTies<Rec, Index, Store> keep{other, tie.begin, mode_order.subspan(end), end, later};
      context.report({"sorting", n * tie.modes / (mode_order.size() + 1), n, "nonzeros"});
      sort<Rec>({tie.count, {layout.bits}, scratch_purpose}, source, other, keep, context);
      for (std::vector<Tie>& some : later) {
        ties.insert(ties.end(), some.begin(), some.end());
        some.clear();
      }
    }
  });
  // Array by array: one more array at a time.
  const auto gather = [&]<class T>(Buffer<T>& array) {
    Buffer<T> out(context, n, "the sorted array");
    cpu::parallel_ranges(context.thread_count(), n, [&](std::uint64_t begin, std::uint64_t end) {
      for (std::uint64_t i = begin; i < end; ++i) out[i] = array[positions[i]];
    });
    array = std::move(out);
  };
  for (IndexBuffer& index : x.indices) std::visit(gather, index);
  std::visit(gather, x.values);
}

}  // namespace

std::vector<std::uint64_t> largest_indices(const CooTensor& x, const Context& context) {
  std::vector<std::uint64_t> largest(x.dims.size());
  visit(x, [&]<class Index, class Value>(const CooView<Index, Value>& v) {
    for (std::size_t m = 0; m < largest.size(); ++m) {
      const auto* index = v.indices[m];
      std::atomic<std::uint64_t> most{0};
      cpu::parallel_ranges(context.thread_count(), v.nnz, [&](std::uint64_t begin, std::uint64_t end) {
        std::remove_const_t<Index> mine = 0;
        for (std::uint64_t i = begin; i < end; ++i) mine = std::max(mine, index[i]);
        std::uint64_t seen = most.load();
        while (seen < mine && !most.compare_exchange_weak(seen, mine)) {
        }
      });
      largest[m] = most.load();
    }
  });
  return largest;
}

bool is_sorted_by(const CooTensor& x, std::span<const int> mode_order, const Context& context) {
  return order_of(x, mode_order, context) != NonzeroOrder::none;
}

void sort_by_path(CooTensor& x, std::span<const int> mode_order, SortPath path, const Context& context,
                  Scratch* scratch) {
  std::vector<std::uint64_t> largest(x.dims.size());
  for (std::size_t m = 0; m < largest.size(); ++m) largest[m] = x.dims[m] == 0 ? 0 : x.dims[m] - 1;
  KeyLayout layout(largest, mode_order);
  if (layout.bits > 64) {  // dims may promise more than there is
    largest = largest_indices(x, context);
    layout = KeyLayout(largest, mode_order);
  }
  if (path == SortPath::automatic) {
    path = layout.bits <= 64                                          ? SortPath::key64
           : layout.bits <= 128                                       ? SortPath::key128
           : x.nnz() - 1 <= std::numeric_limits<std::uint32_t>::max() ? SortPath::permutation32
                                                                      : SortPath::permutation64;
  }
  switch (path) {
    case SortPath::key64:
      sort_by_key<std::uint64_t>(x, layout, context, scratch);
      break;
    case SortPath::key128:
      sort_by_key<uint128>(x, layout, context, scratch);
      break;
    case SortPath::permutation32:
      sort_by_permutation<std::uint32_t>(x, largest, mode_order, context);
      break;
    default:
      sort_by_permutation<std::uint64_t>(x, largest, mode_order, context);
      break;
  }
}

}  // namespace radix

namespace {

void sort_checked(CooTensor& x, std::span<const int> mode_order, const Context& context, radix::Scratch* scratch) {
  std::array<bool, max_order> seen = {};
  bool valid = mode_order.size() == x.dims.size();
  for (const int m : mode_order)
    valid = valid && m >= 0 && m < x.order() && !std::exchange(seen[static_cast<std::size_t>(m)], true);
  if (!valid) {
    std::string list;
    for (const int m : mode_order) list += fmt::format("{}{}", list.empty() ? "" : " ", std::int64_t{m} + 1);
    throw usage_error(
        fmt::format("cannot sort by modes {}: a tensor of order {} needs each mode once", list, x.order()));
  }
  const bool known = std::equal(mode_order.begin(), mode_order.end(), x.sorted_by.begin(), x.sorted_by.end());
  if (known) return;
  context.report({"sorting", 0, x.nnz(), "nonzeros"});
  if (!radix::is_sorted_by(x, mode_order, context))
    radix::sort_by_path(x, mode_order, radix::SortPath::automatic, context, scratch);
  x.sorted_by.assign(mode_order.begin(), mode_order.end());
  context.report({"sorting", x.nnz(), x.nnz(), "nonzeros"});
}

}  // namespace

void radix::sort_nonzeros(CooTensor& x, std::span<const int> mode_order, const Context& context, Scratch& scratch) {
  sort_checked(x, mode_order, context, &scratch);
}

void sort_nonzeros(CooTensor& x, std::span<const int> mode_order, const Context& context) {
  sort_checked(x, mode_order, context, nullptr);
}

void ensure_sorted(CooTensor& x, const Context& context) {
  if (!x.sorted_by.empty()) return;
  std::vector<int> natural(x.dims.size());
  std::iota(natural.begin(), natural.end(), 0);
  sort_nonzeros(x, natural, context);
}

}  // namespace polyad
