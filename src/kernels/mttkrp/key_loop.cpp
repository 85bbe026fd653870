// SPDX-License-Identifier: MIT
#include "kernels/mttkrp/key_loop.hpp"

#include "backends/cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/mttkrp/key_loop.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/mttkrp/rows-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace polyad::HWY_NAMESPACE {

/// The index that a key holds at some bits.
struct Gather {
#if HWY_ARCH_X86_64 && HWY_TARGET <= HWY_AVX2  // Highway's AVX2 includes BMI2; a better target is a smaller number
  std::uint64_t mask = 0;
  Gather() = default;
  HWY_INLINE explicit Gather(const BitField& f) : mask(f.mask) {}
  HWY_INLINE std::uint64_t operator()(std::uint64_t key) const { return _pext_u64(key, mask); }
#else
  const BitField* field = nullptr;
  Gather() = default;
  HWY_INLINE explicit Gather(const BitField& f) : field(&f) {}
  HWY_INLINE std::uint64_t operator()(std::uint64_t key) const { return gathered(key, *field); }
#endif
};

/// One pass over the keys for C columns. Inputs: number of factors when it is 2, 3 or 4, else 0. Whole: a row is these
/// C columns and nothing else. Moving: nonzeros are also appended to their super-shards. Runs: nonzeros are summed in
/// registers while the row of the output stays the same.
template <class T, int C, int Inputs, bool Whole, bool Moving, bool Runs>
struct KeyPass {
  static constexpr int most = Inputs > 0 ? Inputs : max_order;

  const T* factors[most];  // [inputs], at the first column
  Gather gathers[most];    // [inputs]
  Gather row_gather;
  const std::uint64_t* keys;
  const T* values;
  T* out;
  std::uint64_t row_stride;
  int input_count;
  int prefetched;
  bool prefetch_output;
  Gather next_gather;
  KeyMove<T> destination;

  HWY_INLINE KeyPass(const KeyLoop<T>& l, std::uint64_t column)
      : row_gather(l.row_field),
        keys(l.keys),
        values(l.values),
        out(l.out + column),
        row_stride(l.stride),
        input_count(l.inputs),
        prefetched(l.prefetched),
        prefetch_output(l.prefetch_output) {
    for (int m = 0; m < inputs(); ++m) {
      factors[m] = l.factors[static_cast<std::size_t>(m)] + column;
      gathers[m] = Gather(l.fields[static_cast<std::size_t>(m)]);
    }
    if (Moving) {
      next_gather = Gather(l.move->field);
      destination = *l.move;
    }
  }

  HWY_INLINE int inputs() const { return Inputs > 0 ? Inputs : input_count; }
  HWY_INLINE std::uint64_t stride() const { return Whole ? C : row_stride; }
  HWY_INLINE const T* row(int m, std::uint64_t key) const { return factors[m] + gathers[m](key) * stride(); }

  HWY_INLINE void prefetch(std::size_t k) const {
    const std::uint64_t later = keys[k + prefetch_distance];
    for (int m = 0; m < prefetched; ++m) prefetch_row<T, C>(row(m, later));
    if (prefetch_output) prefetch_row_to_write<T, C>(out + row_gather(later) * stride());
  }
  /// The product of a nonzero, which moves on.
  HWY_INLINE Cols<T, C> product(std::size_t k) const {
    const std::uint64_t key = keys[k];
    Cols<T, C> p = Cols<T, C>::all(values[k]);
    for (int m = 0; m < inputs(); ++m) p.times(row(m, key));
    if (Moving) {
      const std::uint64_t place = destination.next[destination.map(static_cast<std::uint32_t>(next_gather(key)))]++;
      destination.keys[place] = key;
      destination.values[place] = values[k];
    }
    return p;
  }

  template <bool Ahead>
  HWY_INLINE void add(std::size_t begin, std::size_t end) const {
    for (std::size_t k = begin; k < end;) {
      if (Ahead) prefetch(k);
      const std::uint64_t at = row_gather(keys[k]);
      Cols<T, C> sum = product(k++);
      while (Runs && k < end && row_gather(keys[k]) == at) {
        if (Ahead) prefetch(k);
        sum.add(product(k++));
      }
      sum.add_to(out + at * stride());
    }
  }
  HWY_INLINE void run(std::size_t count, std::size_t available) const {
    const bool any = prefetched > 0 || prefetch_output;
    const std::size_t ahead = any && available > prefetch_distance ? std::min(count, available - prefetch_distance) : 0;
    add<true>(0, ahead);
    add<false>(ahead, count);
  }
};

/// One instance, one function: the register allocation of one loop does not suffer from the others.
template <class T, int C, int Inputs, bool Whole, bool Moving, bool Runs>
HWY_NOINLINE void run_key_pass(const KeyLoop<T>& l, std::uint64_t column) {
  const KeyPass<T, C, Inputs, Whole, Moving, Runs> pass(l, column);
  pass.run(l.count, l.available);
}

/// The instance for a block of columns. When a row has several blocks, those for particular numbers of factors are left
/// out where that saves most instances.
template <class T>
struct KeyPasses {
  const KeyLoop<T>& l;

  template <int C, int Inputs, bool Whole, bool Moving>
  HWY_INLINE void with(std::uint64_t column) const {
    if (l.runs) return run_key_pass<T, C, Inputs, Whole, Moving, true>(l, column);
    run_key_pass<T, C, Inputs, Whole, Moving, false>(l, column);
  }
  template <int C, bool Moving>
  HWY_INLINE void whole(std::uint64_t column) const {
    if constexpr (!POLYAD_FEW_INSTANCES) {
      if (l.inputs == 2) return with<C, 2, true, Moving>(column);
      if (l.inputs == 3) return with<C, 3, true, Moving>(column);
      if constexpr (!Moving || C == 16) {
        if (l.inputs == 4) return with<C, 4, true, Moving>(column);
      }
    }
    with<C, 0, true, Moving>(column);
  }
  template <int C>
  HWY_INLINE void run(std::uint64_t column) const {
    const bool moving = l.move != nullptr && column + C == l.stride;  // nonzeros move with the last of their columns
    if constexpr (C > 4) {
      if (l.stride == C) return moving ? whole<C, true>(column) : whole<C, false>(column);
    }
    if (moving) return with<C, 0, false, true>(column);
    if constexpr (C > 4 && !POLYAD_FEW_INSTANCES) {
      if (l.inputs == 2) return with<C, 2, false, false>(column);
    }
    with<C, 0, false, false>(column);
  }
};

void add_keys_f32(const KeyLoop<float>& l) { for_column_blocks(l.stride, KeyPasses<float>{l}); }
void add_keys_f64(const KeyLoop<double>& l) { for_column_blocks(l.stride, KeyPasses<double>{l}); }

}  // namespace polyad::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyad {

HWY_EXPORT(add_keys_f32);
HWY_EXPORT(add_keys_f64);

void add_keys(const KeyLoop<float>& l) { HWY_DYNAMIC_DISPATCH(add_keys_f32)(l); }
void add_keys(const KeyLoop<double>& l) { HWY_DYNAMIC_DISPATCH(add_keys_f64)(l); }

}  // namespace polyad
#endif
