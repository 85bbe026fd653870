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

/// One pass over the records for C columns. Inputs: number of factors when it is 2, 3 or 4, else 0. Whole: a row is these
/// C columns and nothing else, so that addresses need no multiplication.
template <class T, int C, int Inputs, bool Whole>
struct RecordPass {
  const RecordLoop<T>& l;
  std::uint64_t column;

  static constexpr std::size_t distance = 16;  // records ahead of which rows are requested

  template <bool Ahead, bool Runs>
  HWY_INLINE void each(const std::uint32_t* record, std::size_t count) const {
    const int inputs = Inputs > 0 ? Inputs : l.inputs;
    const std::size_t words = l.words;
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
    if constexpr (Runs) {
      while (record != end) {
        const std::uint32_t row = record[output_mode];
        Cols<T, C> sum = Cols<T, C>::load(out + row * stride);
        do {
          if (Ahead) ahead(record);
          sum.add(product(record));
          record += words;
        } while (record != end && record[output_mode] == row);
        sum.store(out + row * stride);
      }
    } else {
      for (; record != end; record += words) {
        if (Ahead) ahead(record);
        product(record).add_to(out + record[output_mode] * stride);
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

  template <int C, int Inputs, bool Whole>
  HWY_INLINE void with(std::uint64_t column) const {
    const RecordPass<T, C, Inputs, Whole> pass{l, column};
    l.runs ? pass.template run<true>() : pass.template run<false>();
  }
  template <int C, bool Whole>
  HWY_INLINE void with_inputs(std::uint64_t column) const {
    if (l.inputs == 2) return with<C, 2, Whole>(column);
    if (l.inputs == 3) return with<C, 3, Whole>(column);
    if (l.inputs == 4) return with<C, 4, Whole>(column);
    with<C, 0, Whole>(column);
  }
  template <int C>
  HWY_INLINE void run(std::uint64_t column) const {
    l.stride == C ? with_inputs<C, true>(column) : with_inputs<C, false>(column);
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
