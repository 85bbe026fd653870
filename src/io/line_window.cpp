// SPDX-License-Identifier: MIT
#include "io/line_window.hpp"

#include <bit>
#include <cstdint>
#include <cstring>

#include "io/text_numbers.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace polyad::io {

namespace baseline {
#define POLYAD_AVX2 0
#include "io/line_window.inl"
#undef POLYAD_AVX2
}  // namespace baseline

#if defined(__x86_64__)
// Everything that the copy includes or names from outside is defined before the pragma: no AVX2 code can end up in an
// inline function that the rest of the program uses.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,bmi,bmi2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,bmi,bmi2")
#endif
namespace avx2 {
#define POLYAD_AVX2 1
#include "io/line_window.inl"
#undef POLYAD_AVX2
}  // namespace avx2
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif

template <class Index, class Value>
void parse_plain_lines(int order, WindowRun<Index, Value>& run) {
#if defined(__x86_64__)
  static const bool has_avx2 =
      __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("bmi") != 0 && __builtin_cpu_supports("bmi2") != 0;
  if (has_avx2) return avx2::parse_any_order(order, run);
#endif
  baseline::parse_any_order(order, run);
}

template <class Index, class Value>
void parse_plain_lines_portably(int order, WindowRun<Index, Value>& run) {
  baseline::parse_any_order(order, run);
}

template void parse_plain_lines_portably(int, WindowRun<std::uint32_t, float>&);
template void parse_plain_lines_portably(int, WindowRun<std::uint32_t, double>&);
template void parse_plain_lines_portably(int, WindowRun<std::uint64_t, float>&);
template void parse_plain_lines_portably(int, WindowRun<std::uint64_t, double>&);

template void parse_plain_lines(int, WindowRun<std::uint32_t, float>&);
template void parse_plain_lines(int, WindowRun<std::uint32_t, double>&);
template void parse_plain_lines(int, WindowRun<std::uint64_t, float>&);
template void parse_plain_lines(int, WindowRun<std::uint64_t, double>&);

}  // namespace polyad::io
