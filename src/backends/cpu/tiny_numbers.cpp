// SPDX-License-Identifier: MIT
#include "backends/cpu/tiny_numbers.hpp"

#include <cstdint>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace polyad::cpu {

namespace {

#if defined(__SSE2__)
/// MXCSR: results as 0 (bit 15), operands as 0 (bit 6).
constexpr TinyNumberBits flushing = 0x8040;
TinyNumberBits float_control() { return _mm_getcsr(); }
void set_float_control(TinyNumberBits bits) { _mm_setcsr(static_cast<unsigned>(bits)); }
#elif defined(__aarch64__)
/// FPCR.FZ: results and operands.
constexpr TinyNumberBits flushing = 1UL << 24U;
TinyNumberBits float_control() {
  std::uint64_t bits = 0;
  asm volatile("mrs %0, fpcr" : "=r"(bits));
  return bits;
}
void set_float_control(TinyNumberBits bits) { asm volatile("msr fpcr, %0" : : "r"(std::uint64_t{bits})); }
#else
constexpr TinyNumberBits flushing = 0;
TinyNumberBits float_control() { return 0; }
void set_float_control(TinyNumberBits) {}
#endif

TinyNumberBits flush_bits() { return float_control() & flushing; }
void set_flush_bits(TinyNumberBits bits) {
  if (flush_bits() != bits) set_float_control((float_control() & ~flushing) | bits);
}

/// What this thread had before its outermost TinyNumbersAsZero, if there is one.
struct OutsideMode {
  bool known = false;
  TinyNumberBits bits = 0;
};
thread_local OutsideMode outside;

}  // namespace

TinyNumbersAsZero::TinyNumbersAsZero(bool wanted) : before_(flush_bits()), outermost_(wanted && !outside.known) {
  if (outermost_) outside = {true, before_};
  if (wanted) set_flush_bits(flushing);
}

TinyNumbersAsZero::~TinyNumbersAsZero() {
  set_flush_bits(before_);
  if (outermost_) outside = {};
}

bool TinyNumbersAsZero::active() { return flushing != 0 && flush_bits() == flushing; }

TeamTinyNumbers::TeamTinyNumbers() : of_team_(flush_bits()) {
  if (outside.known) set_flush_bits(outside.bits);
}

TeamTinyNumbers::~TeamTinyNumbers() { set_flush_bits(of_team_); }

TeamTinyNumbers::Member::Member(const TeamTinyNumbers& team) : before_(flush_bits()) { set_flush_bits(team.of_team_); }

TeamTinyNumbers::Member::~Member() { set_flush_bits(before_); }

}  // namespace polyad::cpu
