// SPDX-License-Identifier: MIT
#include "kernels/mttkrp/record_loop.hpp"

#include <algorithm>
#include <cstring>

#include "backends/cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/mttkrp/record_loop.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/mttkrp/rows-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace polyad::HWY_NAMESPACE {

/// One pass over the records for C columns. Inputs: number of factors when it is 2 or 3, else 0. Whole: a row is these
/// C columns and nothing else, so that addresses need no multiplication. Moving: this pass also moves the records.
template <class T, int C, int Inputs, bool Whole, bool Moving>
struct RecordPass {
  const RecordLoop<T>& l;
  std::uint64_t column;

  static constexpr std::size_t distance = 16;  // records ahead of which rows are requested

  template <bool Ahead, bool Runs>
  HWY_INLINE void each(const std::uint32_t* record, std::size_t count) const {
    const int inputs = Inputs > 0 ? Inputs : l.inputs;
    constexpr std::size_t known_words = Inputs > 0 ? Inputs + 1 + sizeof(T) / 4 : 0;
    const std::size_t words = Inputs > 0 ? known_words : l.words;
    const std::uint64_t stride = Whole ? C : l.stride;
    const std::size_t value_word = l.value_word;
    const std::size_t output_mode = l.output_mode;
    T* HWY_RESTRICT out = l.out + column;
    const std::uint32_t* end = record + count * words;
    const T* factors[Inputs > 0 ? Inputs : max_order];
    std::size_t modes[Inputs > 0 ? Inputs : max_order];
    for (int m = 0; m < inputs; ++m) {
      factors[m] = l.factors[static_cast<std::size_t>(m)] + column;
      modes[m] = l.modes[static_cast<std::size_t>(m)];
    }
    const auto product = [&](const std::uint32_t* r) HWY_ATTR {
      T value;
      std::memcpy(&value, r + value_word, sizeof(T));
      Cols<T, C> p = Cols<T, C>::all(value);
      for (int m = 0; m < inputs; ++m) p.times(factors[m] + r[modes[m]] * stride);
      return p;
    };
    const auto ahead = [&](const std::uint32_t* r) HWY_ATTR {
      for (int m = 0; m < l.prefetched; ++m) prefetch_row<T, C>(factors[m] + (r + distance * words)[modes[m]] * stride);
    };
    const SuperShardMap map = l.destinations->map();
    const std::size_t next_mode = l.destinations->mode();
    std::byte** next = l.destinations->next();
    const auto move = [&](const std::uint32_t* r) HWY_ATTR {
      std::byte*& place = next[map(r[next_mode])];
      std::memcpy(place, r, 4 * words);
      place += 4 * words;
    };
    if constexpr (Runs) {
      while (record != end) {
        const std::uint32_t row = record[output_mode];
        Cols<T, C> sum = Cols<T, C>::load(out + row * stride);
        do {
          if (Ahead) ahead(record);
          sum.add(product(record));
          if (Moving) move(record);
          record += words;
        } while (record != end && record[output_mode] == row);
        sum.store(out + row * stride);
      }
    } else {
      for (; record != end; record += words) {
        if (Ahead) ahead(record);
        product(record).add_to(out + record[output_mode] * stride);
        if (Moving) move(record);
      }
    }
  }
  template <bool Runs>
  HWY_INLINE void run() const {
    const auto* records = reinterpret_cast<const std::uint32_t*>(l.records);
    const std::size_t ahead =
        l.prefetched > 0 && l.available > distance ? std::min(l.count, l.available - distance) : 0;
    if (ahead > 0) each<true, Runs>(records, ahead);
    each<false, Runs>(records + ahead * l.words, l.count - ahead);
  }
};

template <class T>
struct RecordPasses {
  const RecordLoop<T>& l;

  template <int C, int Inputs, bool Whole, bool Moving>
  HWY_INLINE void run_pass(std::uint64_t column) const {
    const RecordPass<T, C, Inputs, Whole, Moving> pass{l, column};
    l.runs ? pass.template run<true>() : pass.template run<false>();
  }
  template <int C, int Inputs>
  HWY_INLINE void with(std::uint64_t column) const {
    if (l.stride == C) return run_pass<C, Inputs, true, true>(column);
    if (column + C == l.stride) return run_pass<C, Inputs, false, true>(column);
    run_pass<C, Inputs, false, false>(column);
  }
  template <int C>
  HWY_INLINE void run(std::uint64_t column) const {
    if (l.inputs == 2) return with<C, 2>(column);
    if (l.inputs == 3) return with<C, 3>(column);
    with<C, 0>(column);
  }
};

void AddF32(const RecordLoop<float>& l) { for_column_blocks(l.stride, RecordPasses<float>{l}); }
void AddF64(const RecordLoop<double>& l) { for_column_blocks(l.stride, RecordPasses<double>{l}); }

}  // namespace polyad::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyad {

HWY_EXPORT(AddF32);
HWY_EXPORT(AddF64);

void add_records(const RecordLoop<float>& l) { HWY_DYNAMIC_DISPATCH(AddF32)(l); }
void add_records(const RecordLoop<double>& l) { HWY_DYNAMIC_DISPATCH(AddF64)(l); }

}  // namespace polyad
#endif
