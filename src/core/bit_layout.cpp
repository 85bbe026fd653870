// SPDX-License-Identifier: MIT
#include "core/bit_layout.hpp"

#include <numeric>
#include <type_traits>

#include "backends/cpu/threads.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace polyad {

namespace {

/// pext and pdep take one cycle where they are real; in AMD's first two generations of Zen they are microcode of
/// hundreds of cycles.
bool has_fast_bit_gather() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("bmi2") && !__builtin_cpu_is("znver1") && !__builtin_cpu_is("znver2");
#else
  return false;
#endif
}

std::array<std::uint64_t, 6> network_for(std::uint64_t mask) {
  std::array<std::uint64_t, 6> moves = {};
  std::uint64_t zeros = ~mask << 1U;  // counts the 0s to the right of each bit, one binary digit per step
  for (unsigned step = 0; step < 6; ++step) {
    std::uint64_t odd = zeros;
    for (unsigned s = 1; s < 64; s *= 2) odd ^= odd << s;
    moves[step] = odd & mask;
    mask = (mask ^ moves[step]) | (moves[step] >> (1U << step));
    zeros &= ~odd;
  }
  return moves;
}

std::uint64_t scattered(std::uint64_t index, const BitField& f) {
  for (unsigned step = 6; step-- > 0;) index = (index & ~f.moves[step]) | ((index << (1U << step)) & f.moves[step]);
  return index & f.mask;
}

template <class Index>
void gather(const std::uint64_t* keys, std::size_t stride, std::size_t count, const BitField& f, Index* out) {
  for (std::size_t i = 0; i < count; ++i) out[i] |= static_cast<Index>(gathered(keys[i * stride], f) << f.shift);
}

template <class Index>
void scatter(const Index* index, std::size_t count, const BitField& f, std::uint64_t* out) {
  for (std::size_t i = 0; i < count; ++i) out[i] |= scattered(static_cast<std::uint64_t>(index[i]) >> f.shift, f);
}

#if defined(__x86_64__)
/// \param Add whether another word gave bits of the index before
template <bool Add, class Index>
__attribute__((target("bmi2"))) void gather_native(const std::uint64_t* keys, std::size_t stride, std::size_t count,
                                                   const BitField& f, Index* out) {
  const std::uint64_t mask = f.mask;
  const int shift = f.shift;
  if (!Add && stride == 1 && shift == 0) {
    for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<Index>(_pext_u64(keys[i], mask));
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const auto part = static_cast<Index>(_pext_u64(keys[i * stride], mask) << shift);
    out[i] = Add ? out[i] | part : part;
  }
}

template <bool Add, class Index>
__attribute__((target("bmi2"))) void scatter_native(const Index* index, std::size_t count, const BitField& f,
                                                    std::uint64_t* out) {
  const std::uint64_t mask = f.mask;
  const int shift = f.shift;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t part = _pdep_u64(static_cast<std::uint64_t>(index[i]) >> shift, mask);
    out[i] = Add ? out[i] | part : part;
  }
}
#endif

}  // namespace

std::vector<std::uint64_t> largest_allowed(std::span<const std::uint64_t> dims) {
  std::vector<std::uint64_t> largest(dims.begin(), dims.end());
  for (std::uint64_t& d : largest) d -= d > 0 ? 1 : 0;
  return largest;
}

BitLayout::BitLayout(std::span<const std::uint64_t> largest, Levels levels, bool native)
    : skipped_(levels.skipped), native_(native && has_fast_bit_gather()) {
  const std::size_t order = largest.size();
  std::vector<std::vector<int>> positions(order);  // [order][bits]
  for (const std::uint64_t top : largest) widths_.push_back(radix::width_of(top));
  const auto put = [&](std::size_t m) { positions[m].push_back(bits_++); };
  for (std::size_t m = order; m-- > 0;)
    for (int level = skipped_; level < std::min(levels.plain, widths_[m]); ++level) put(m);
  std::vector<std::size_t> lowest_first(order);
  std::iota(lowest_first.rbegin(), lowest_first.rend(), std::size_t{0});
  std::stable_sort(lowest_first.begin(), lowest_first.end(),
                   [&](std::size_t a, std::size_t b) { return widths_[a] < widths_[b]; });
  for (int level = std::max(skipped_, levels.plain); level < 64; ++level)
    for (const std::size_t m : lowest_first)
      if (level < widths_[m]) put(m);
  fields_.resize(static_cast<std::size_t>(std::max(1, (bits_ + 63) / 64)));
  for (std::size_t m = 0; m < order; ++m)
    for (std::size_t j = 0; j < positions[m].size(); ++j) {
      std::vector<BitField>& word = fields_[static_cast<std::size_t>(positions[m][j] / 64)];
      if (word.empty() || word.back().mode != static_cast<int>(m))
        word.push_back({static_cast<int>(m), static_cast<int>(j) + skipped_, 0, {}});
      word.back().mask |= std::uint64_t{1} << static_cast<unsigned>(positions[m][j] % 64);
    }
  for (std::vector<BitField>& word : fields_)
    for (BitField& f : word) f.moves = network_for(f.mask);
}

BitField BitLayout::field_of(int mode, int word) const {
  for (const BitField& f : fields(word))
    if (f.mode == mode) return f;
  return {mode, 0, 0, {}};
}

int BitLayout::bits_below(int level) const {
  int sum = 0;
  for (const int width : widths_) sum += std::max(0, std::min(width, level) - skipped_);
  return sum;
}

template <class Index>
void BitLayout::encode(const std::array<Index*, max_order>& indices, std::uint64_t begin, std::size_t count, int word,
                       std::uint64_t* out) const {
  const std::span<const BitField> parts = fields(word);
#if defined(__x86_64__)
  if (native_ && !parts.empty()) {
    bool first = true;
    for (const BitField& f : parts) {
      const Index* index = indices[static_cast<std::size_t>(f.mode)] + begin;
      first ? scatter_native<false>(index, count, f, out) : scatter_native<true>(index, count, f, out);
      first = false;
    }
    return;
  }
#endif
  std::fill_n(out, count, std::uint64_t{0});
  for (const BitField& f : parts) scatter(indices[static_cast<std::size_t>(f.mode)] + begin, count, f, out);
}

template <class Index>
void BitLayout::decode(const std::uint64_t* keys, std::size_t stride, std::size_t count, int mode, Index* out) const {
  bool first = true;
  if (!native_) std::fill_n(out, count, Index{0});
  for (int w = 0; w < words(); ++w)
    for (const BitField& f : fields(w)) {
      if (f.mode != mode) continue;
#if defined(__x86_64__)
      if (native_) {
        first ? gather_native<false>(keys + w, stride, count, f, out)
              : gather_native<true>(keys + w, stride, count, f, out);
        first = false;
        continue;
      }
#endif
      gather(keys + w, stride, count, f, out);
      first = false;
    }
  if (first) std::fill_n(out, count, Index{0});
}

template void BitLayout::encode(const std::array<std::uint32_t*, max_order>&, std::uint64_t, std::size_t, int,
                                std::uint64_t*) const;
template void BitLayout::encode(const std::array<std::uint64_t*, max_order>&, std::uint64_t, std::size_t, int,
                                std::uint64_t*) const;
template void BitLayout::encode(const std::array<const std::uint32_t*, max_order>&, std::uint64_t, std::size_t, int,
                                std::uint64_t*) const;
template void BitLayout::encode(const std::array<const std::uint64_t*, max_order>&, std::uint64_t, std::size_t, int,
                                std::uint64_t*) const;
template void BitLayout::decode(const std::uint64_t*, std::size_t, std::size_t, int, std::uint32_t*) const;
template void BitLayout::decode(const std::uint64_t*, std::size_t, std::size_t, int, std::uint64_t*) const;

namespace {

constexpr std::string_view scratch_purpose = "the scratch array of the sort";

/// The nonzeros of a tensor as records of the sort.
template <class Rec, class Index, class Value>
struct EncodedSource {
  const BitLayout* layout = nullptr;
  std::array<Index*, max_order> indices = {};
  const Value* values = nullptr;

  void load(std::uint64_t begin, std::size_t count, Rec* out) const {
    std::array<radix::KeyOf<Rec>, radix::block_records> keys;
    for (std::size_t done = 0; done < count; done += keys.size()) {
      const std::size_t n = std::min(count - done, keys.size());
      layout->encode_keys(indices, begin + done, n, keys.data());
      for (std::size_t i = 0; i < n; ++i)
        out[done + i] = {std::bit_cast<decltype(Rec::words)>(keys[i]), values[begin + done + i]};
    }
  }
  void load_keys(std::uint64_t begin, std::size_t count, radix::KeyOf<Rec>* out, int) const {
    layout->encode_keys(indices, begin, count, out);
  }
};

/// Keys and values in arrays of their own: the second store of the sort, and where the result goes.
template <class Rec, class Value>
struct KeyedStore {
  static constexpr std::size_t key_words = sizeof(radix::KeyOf<Rec>) / 8;
  std::uint64_t* keys = nullptr;  // [n][key_words]
  Value* values = nullptr;        // [n]

  void load(std::uint64_t begin, std::size_t count, Rec* out) const {
    for (std::size_t i = 0; i < count; ++i)
      out[i] = {std::bit_cast<decltype(Rec::words)>(key(begin + i)), values[begin + i]};
  }
  void load_keys(std::uint64_t begin, std::size_t count, radix::KeyOf<Rec>* out, int) const {
    for (std::size_t i = 0; i < count; ++i) out[i] = key(begin + i);
  }
  void store(std::uint64_t at, const Rec& r) const {
    const radix::KeyOf<Rec> k = radix::key_of(r);
    keys[at * key_words] = static_cast<std::uint64_t>(k);
    if constexpr (key_words == 2) keys[at * key_words + 1] = static_cast<std::uint64_t>(k >> 64);
    values[at] = r.payload;
  }
  void sorted(int, std::uint64_t begin, std::size_t count, const Rec* records) const {
    for (std::size_t i = 0; i < count; ++i) store(begin + i, records[i]);
  }
  void equal(int, std::uint64_t begin, std::uint64_t count, const Rec* records, int team) const {
    cpu::parallel_ranges(team, count, [&](std::uint64_t b, std::uint64_t e) {
      sorted(0, begin + b, static_cast<std::size_t>(e - b), records + b);
    });
  }
  [[nodiscard]] radix::KeyOf<Rec> key(std::uint64_t at) const {
    if constexpr (key_words == 2) {
      return static_cast<radix::uint128>(keys[2 * at + 1]) << 64 | keys[2 * at];
    } else {
      return keys[at];
    }
  }
};

template <class Key, class Value>
void sort_into(KeyedNonzeros<Value>& to, const CooTensor& x, const BitLayout& layout, const Context& context) {
  visit(x, [&]<class Index, class V>(const CooView<Index, V>& from) {
    if constexpr (std::is_same_v<std::remove_const_t<V>, Value>) {
      using Rec = radix::Record<Key, Value>;
      const EncodedSource<Rec, Index, Value> source{&layout, from.indices, from.values};
      KeyedStore<Rec, Value> store{to.keys.data(), to.values.data()};
      radix::sort<Rec>({from.nnz, {layout.bits()}, scratch_purpose}, source, store, store, context);
    }
  });
}

/// Positions of nonzeros with one word of their keys. Without positions it stands for 0, 1, 2, ...
template <class Rec, class Index>
struct WordStore {
  const BitLayout* layout = nullptr;
  int word = 0;
  std::array<Index*, max_order> indices = {};
  std::uint64_t* positions = nullptr;
  bool identity = false;

  [[nodiscard]] std::uint64_t position(std::uint64_t at) const { return identity ? at : positions[at]; }
  void load(std::uint64_t begin, std::size_t count, Rec* out) const {
    std::array<std::uint64_t, radix::block_records> keys;
    for (std::size_t done = 0; done < count; done += keys.size()) {
      const std::size_t n = std::min(count - done, keys.size());
      load_keys(begin + done, n, keys.data(), 0);
      for (std::size_t i = 0; i < n; ++i)
        out[done + i] = {std::bit_cast<decltype(Rec::words)>(keys[i]), position(begin + done + i)};
    }
  }
  void load_keys(std::uint64_t begin, std::size_t count, std::uint64_t* out, int) const {
    for (std::size_t i = 0; i < count; ++i) layout->encode(indices, position(begin + i), 1, word, out + i);
  }
  void store(std::uint64_t at, const Rec& r) const { positions[at] = r.payload; }
  void sorted(int, std::uint64_t begin, std::size_t count, const Rec* records) const {
    for (std::size_t i = 0; i < count; ++i) store(begin + i, records[i]);
  }
  void equal(int, std::uint64_t begin, std::uint64_t count, const Rec* records, int team) const {
    cpu::parallel_ranges(team, count, [&](std::uint64_t b, std::uint64_t e) {
      sorted(0, begin + b, static_cast<std::size_t>(e - b), records + b);
    });
  }
};

}  // namespace

template <class Value>
KeyedNonzeros<Value> sorted_by_keys(const CooTensor& x, const BitLayout& layout, const Context& context) {
  KeyedNonzeros<Value> to;
  to.key_words = static_cast<std::size_t>(layout.words());
  to.keys = Buffer<std::uint64_t>(context, x.nnz() * to.key_words, "the keys of the nonzeros", Paging::plain);
  to.values = Buffer<Value>(context, x.nnz(), "the values", Paging::plain);
  context.report({"sorting", 0, x.nnz(), "nonzeros"});
  if (layout.words() == 1) {
    sort_into<std::uint64_t>(to, x, layout, context);
  } else {
    sort_into<radix::uint128>(to, x, layout, context);
  }
  context.report({"sorting", x.nnz(), x.nnz(), "nonzeros"});
  return to;
}

template KeyedNonzeros<float> sorted_by_keys(const CooTensor&, const BitLayout&, const Context&);
template KeyedNonzeros<double> sorted_by_keys(const CooTensor&, const BitLayout&, const Context&);

Buffer<std::uint64_t> order_by_keys(const CooTensor& x, const BitLayout& layout, const Context& context) {
  Buffer<std::uint64_t> positions(context, x.nnz(), "the permutation of the sort");
  visit(x, [&]<class Index, class Value>(const CooView<Index, Value>& from) {
    using Rec = radix::Record<std::uint64_t, std::uint64_t>;
    for (int w = 0; w < layout.words(); ++w) {
      context.report({"sorting", from.nnz * static_cast<std::uint64_t>(w) / static_cast<std::uint64_t>(layout.words()),
                      from.nnz, "nonzeros"});
      WordStore<Rec, Index> store{&layout, w, from.indices, positions.data(), false};
      WordStore<Rec, Index> source = store;
      source.identity = w == 0;
      const int bits = std::min(64, layout.bits() - 64 * w);
      radix::sort<Rec>({from.nnz, {bits}, scratch_purpose}, source, store, store, context);
    }
  });
  return positions;
}

}  // namespace polyad
