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
/// C columns and nothing else.
template <class T, int C, int Inputs, bool Whole>
struct KeyPass {
  static constexpr int most = Inputs > 0 ? Inputs : max_order;

  const T* factors[most];  // [inputs], at the first column
  Gather gathers[most];    // [inputs]
  Gather row_gather;
  const std::uint64_t* keys;
  const T* values;
  T* out;
  std::uint64_t stride_;
  int inputs_;
  int prefetched;
  bool prefetch_output;

  HWY_INLINE KeyPass(const KeyLoop<T>& l, std::uint64_t column)
      : row_gather(l.row_field),
        keys(l.keys),
        values(l.values),
        out(l.out + column),
        stride_(l.stride),
        inputs_(l.inputs),
        prefetched(l.prefetched),
        prefetch_output(l.prefetch_output) {
    for (int m = 0; m < inputs(); ++m) {
      factors[m] = l.factors[static_cast<std::size_t>(m)] + column;
      gathers[m] = Gather(l.fields[static_cast<std::size_t>(m)]);
    }
  }

  HWY_INLINE int inputs() const { return Inputs > 0 ? Inputs : inputs_; }
  HWY_INLINE std::uint64_t stride() const { return Whole ? C : stride_; }
  HWY_INLINE const T* row(int m, std::uint64_t key) const { return factors[m] + gathers[m](key) * stride(); }

  template <bool Ahead>
  HWY_INLINE void each(std::size_t begin, std::size_t end) const {
    for (std::size_t k = begin; k < end; ++k) {
      if (Ahead) {
        const std::uint64_t later = keys[k + prefetch_distance];
        for (int m = 0; m < prefetched; ++m) prefetch_row<T, C>(row(m, later));
        if (prefetch_output) prefetch_row_to_write<T, C>(out + row_gather(later) * stride());
      }
      const std::uint64_t key = keys[k];
      Cols<T, C> product = Cols<T, C>::all(values[k]);
      for (int m = 0; m < inputs(); ++m) product.times(row(m, key));
      product.add_to(out + row_gather(key) * stride());
    }
  }
  HWY_INLINE void run(std::size_t count, std::size_t available) const {
    const bool any = prefetched > 0 || prefetch_output;
    const std::size_t ahead = any && available > prefetch_distance ? std::min(count, available - prefetch_distance) : 0;
    each<true>(0, ahead);
    each<false>(ahead, count);
  }
};

/// One instance, one function: the register allocation of one loop does not suffer from the others.
template <class T, int C, int Inputs, bool Whole>
HWY_NOINLINE void run_key_pass(const KeyLoop<T>& l, std::uint64_t column) {
  const KeyPass<T, C, Inputs, Whole> pass(l, column);
  pass.run(l.count, l.available);
}

template <class T>
struct KeyPasses {
  const KeyLoop<T>& l;

  template <int C, bool Whole>
  HWY_INLINE void with_inputs(std::uint64_t column) const {
    if (l.inputs == 2) return run_key_pass<T, C, 2, Whole>(l, column);
    if (l.inputs == 3) return run_key_pass<T, C, 3, Whole>(l, column);
    if (l.inputs == 4) return run_key_pass<T, C, 4, Whole>(l, column);
    run_key_pass<T, C, 0, Whole>(l, column);
  }
  template <int C>
  HWY_INLINE void run(std::uint64_t column) const {
    if (l.stride == C) return with_inputs<C, true>(column);
    with_inputs<C, false>(column);
  }
};

void AddKeysF32(const KeyLoop<float>& l) { for_column_blocks(l.stride, KeyPasses<float>{l}); }
void AddKeysF64(const KeyLoop<double>& l) { for_column_blocks(l.stride, KeyPasses<double>{l}); }

}  // namespace polyad::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyad {

HWY_EXPORT(AddKeysF32);
HWY_EXPORT(AddKeysF64);

void add_keys(const KeyLoop<float>& l) { HWY_DYNAMIC_DISPATCH(AddKeysF32)(l); }
void add_keys(const KeyLoop<double>& l) { HWY_DYNAMIC_DISPATCH(AddKeysF64)(l); }

}  // namespace polyad
#endif
