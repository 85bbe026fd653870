// SPDX-License-Identifier: MIT
#include "backends/cpu/tiny_numbers.hpp"

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace polyad::cpu {

namespace {

#if defined(__SSE2__)
/// MXCSR: results as 0 (bit 15), operands as 0 (bit 6).
constexpr unsigned as_zero = 0x8040;
bool is_set() { return (_mm_getcsr() & as_zero) == as_zero; }
void set(bool on) { _mm_setcsr(on ? _mm_getcsr() | as_zero : _mm_getcsr() & ~as_zero); }
#elif defined(__aarch64__)
/// FPCR.FZ: both.
constexpr std::uint64_t as_zero = std::uint64_t{1} << 24U;
std::uint64_t control() {
  std::uint64_t bits = 0;
  asm volatile("mrs %0, fpcr" : "=r"(bits));
  return bits;
}
bool is_set() { return (control() & as_zero) != 0; }
void set(bool on) {
  const std::uint64_t bits = on ? control() | as_zero : control() & ~as_zero;
  asm volatile("msr fpcr, %0" : : "r"(bits));
}
#else
bool is_set() { return false; }
void set(bool) {}
#endif

}  // namespace

TinyNumbersAsZero::TinyNumbersAsZero(bool wanted) : before_(is_set()) {
  if (wanted && !before_) set(true);
}

TinyNumbersAsZero::~TinyNumbersAsZero() {
  if (is_set() != before_) set(before_);
}

bool TinyNumbersAsZero::active() { return is_set(); }

}  // namespace polyad::cpu
