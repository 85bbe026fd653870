// SPDX-License-Identifier: MIT
#include "core/sorted_nonzeros.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "backends/cpu/threads.hpp"
#include "polyad/operations.hpp"

namespace polyad {

using radix::KeyLayout;
using radix::KeyOf;
using radix::Record;

namespace {

constexpr std::string_view purpose = "the records of sorted nonzeros";

/// Leaves sorted buckets in the scratch memory.
template <class Rec>
struct Stay {
  Rec* to = nullptr;

  void sorted(int, std::uint64_t begin, std::size_t count, const Rec* records) const {
    if (records != to + begin) std::copy_n(records, count, to + begin);
  }
  void equal(int, std::uint64_t, std::uint64_t, const Rec*, int) const {}  // such buckets are in the scratch memory
};

/// Records with one index moved to the top of the key.
template <class Rec>
struct Reordered {
  const Rec* records = nullptr;
  int shift = 0;  // of the index that moves
  std::uint64_t mask = 0;
  int all = 0;  // bits of the key

  [[nodiscard]] KeyOf<Rec> moved(KeyOf<Rec> key) const {
    using Key = KeyOf<Rec>;
    const int bits = std::popcount(mask);
    if (bits == 0 || shift + bits == all) return key;  // is there already
    const Key low = key & ((Key{1} << shift) - 1);
    const Key index = key >> shift & Key{mask};
    const Key high = key >> (shift + bits);
    return index << (all - bits) | high << shift | low;
  }
  void load(std::uint64_t begin, std::size_t count, Rec* out) const {
    for (std::size_t i = 0; i < count; ++i) {
      const Rec& r = records[begin + i];
      out[i] = {std::bit_cast<decltype(Rec::words)>(moved(key_of(r))), r.payload};
    }
  }
  void load_keys(std::uint64_t begin, std::size_t count, KeyOf<Rec>* out, int) const {
    for (std::size_t i = 0; i < count; ++i) out[i] = moved(key_of(records[begin + i]));
  }
};

/// Per mode no index is above it.
std::vector<std::uint64_t> largest_of(const CooTensor& x, std::span<const int> mode_order, const Context& context) {
  std::vector<std::uint64_t> largest(x.dims.size());
  for (std::size_t m = 0; m < largest.size(); ++m) largest[m] = x.dims[m] == 0 ? 0 : x.dims[m] - 1;
  // dims may promise more than there is
  return KeyLayout(largest, mode_order).bits > 64 ? radix::largest_indices(x, context) : largest;
}

}  // namespace

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

void SortedNonzeros::use(const CooTensor& sorted) {
  polyad::visit(sorted, [&]<class Index, class Value>(const CooView<Index, Value>& v) {
    SortedCoordinates<std::remove_const_t<Index>, std::remove_const_t<Value>> coordinates;
    for (std::size_t l = 0; l < mode_order_.size(); ++l)
      coordinates.indices[l] = v.indices[static_cast<std::size_t>(mode_order_[l])];
    coordinates.values = v.values;
    form_ = coordinates;
  });
}

template <class Key, class Value, class Source>
void SortedNonzeros::sort_records(const Source& source, const KeyLayout& layout, SortedRange modes,
                                  const Context& context, radix::Scratch& scratch) {
  using Rec = Record<Key, Value>;
  PackedNonzeros<Key, Value> packed;
  packed.level_of.fill(static_cast<std::uint8_t>(mode_order_.size()));
  int floor = layout.bits;
  int presorted = 0;
  for (const KeyLayout::Field& f : layout.fields) {
    const auto level = static_cast<std::size_t>(std::ranges::find(mode_order_, f.mode) - mode_order_.begin());
    packed.places[level] = {f.shift, ~std::uint64_t{0} >> (64 - f.bits)};
    for (int b = f.shift; b < f.shift + f.bits; ++b)
      packed.level_of[static_cast<std::size_t>(b) + 1] = static_cast<std::uint8_t>(level);
    if (level < modes.end) floor = f.shift;
    if (level < modes.begin) presorted += f.bits;
  }
  Rec* records = scratch.room<Rec>(context, nnz_, purpose).data();
  packed.records = records;
  if (floor == layout.bits) {  // nothing to sort by
    cpu::parallel_ranges(context.thread_count(), nnz_, [&](std::uint64_t begin, std::uint64_t end) {
      source.load(begin, static_cast<std::size_t>(end - begin), records + begin);
    });
  } else {
    radix::SpareStore<Rec> spare;
    Stay<Rec> stay{records};
    const auto report_half = [&] { context.report({"sorting", nnz_ / 2, nnz_, "nonzeros"}); };
    radix::sort<Rec>({nnz_, {layout.bits, floor, presorted}, purpose, &scratch, report_half}, source, spare, stay,
                     context);
  }
  form_ = packed;
}

void SortedNonzeros::sort(const CooTensor& x, SortedRange modes, const Context& context, radix::Scratch& scratch) {
  const KeyLayout layout(largest_, mode_order_);
  if (layout.bits > 128) {
    taken_ = view_of(x);
    sort_nonzeros(taken_, mode_order_, context);
    use(taken_);
    return;
  }
  polyad::visit(x, [&]<class Index, class Value>(const CooView<Index, Value>& v) {
    using Plain = std::remove_const_t<Value>;
    const auto by = [&]<class Key>(Key) {
      const radix::RecordSource<Record<Key, Plain>, Index, Value> source{&layout, v.indices, v.values};
      sort_records<Key, Plain>(source, layout, modes, context, scratch);
    };
    layout.bits <= 64 ? by(std::uint64_t{}) : by(radix::uint128{});
  });
}

bool lie_in_order(const CooTensor& x, std::span<const int> modes, const Context& context) {
  const bool known =
      x.sorted_by.size() >= modes.size() && std::ranges::equal(modes, std::span(x.sorted_by).first(modes.size()));
  return known || radix::is_sorted_by(x, modes, context);
}

SortedNonzeros::SortedNonzeros(const CooTensor& x, std::span<const int> mode_order, std::size_t sorted_modes,
                               const Context& context, radix::Scratch& scratch)
    : nnz_(x.nnz()),
      mode_order_(mode_order.begin(), mode_order.end()),
      tensor_(&x),
      largest_(largest_of(x, mode_order, context)) {
  const auto first = mode_order.first(sorted_modes);
  const auto in_order = [&](std::span<const int> modes) { return lie_in_order(x, modes, context); };
  context.report({"sorting", 0, nnz_, "nonzeros"});
  // Coordinates are often in the order of all modes from the first on: what they are sorted by need not be sorted by
  // again, be it the first modes (the others are then sorted inside pieces) or the last (the sort is stable).
  SortedRange modes{sorted_modes, sorted_modes};
  while (modes.begin > 0 && !in_order(first.first(modes.begin))) --modes.begin;
  if (modes.begin == sorted_modes) {
    use(x);
  } else {
    for (std::size_t end = modes.begin + 1; end < modes.end; ++end)
      if (in_order(first.subspan(end))) modes.end = end;
    sort(x, modes, context, scratch);
  }
  context.report({"sorting", nnz_, nnz_, "nonzeros"});
}

SortedNonzeros::SortedNonzeros(const SortedNonzeros& sorted, int root, const Context& context, radix::Scratch& scratch)
    : nnz_(sorted.nnz_), mode_order_(sorted.mode_order_), tensor_(sorted.tensor_), largest_(sorted.largest_) {
  const auto at = std::ranges::find(mode_order_, root);
  const auto level = static_cast<std::size_t>(at - mode_order_.begin());
  std::rotate(mode_order_.begin(), at, at + 1);
  context.report({"sorting", 0, nnz_, "nonzeros"});
  sorted.visit([&]<class From>(const From& from) {
    if constexpr (requires { from.records; }) {
      using Key = KeyOf<std::remove_cvref_t<decltype(*from.records)>>;
      using Value = typename From::value_type;
      const KeyLayout layout(largest_, mode_order_);
      const auto& place = from.places[level];
      const Reordered<Record<Key, Value>> source{from.records, place.shift, place.mask, layout.bits};
      sort_records<Key, Value>(source, layout, {0, 1}, context, scratch);
    } else {  // the tensor itself is sorted, or its indices need more than 128 bits
      sort(*tensor_, {0, 1}, context, scratch);
    }
  });
  context.report({"sorting", nnz_, nnz_, "nonzeros"});
}

SortedNonzeros::SortedNonzeros(CooTensor&& sorted, std::span<const int> mode_order)
    : nnz_(sorted.nnz()), mode_order_(mode_order.begin(), mode_order.end()), taken_(std::move(sorted)) {
  use(taken_);
}

}  // namespace polyad
