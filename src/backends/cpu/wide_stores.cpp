// SPDX-License-Identifier: MIT
#include "backends/cpu/wide_stores.hpp"

#if defined(__x86_64__)
#include <cpuid.h>

#include <cstring>
#include <string_view>
#endif

namespace polyad::cpu {

namespace {

/// AMD's family 0x19 are Zen 3, which has no such vectors, and Zen 4.
bool is_zen4() {
#if defined(__x86_64__)
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  if (__get_cpuid(0, &eax, &ebx, &ecx, &edx) == 0) return false;
  char vendor[12];
  std::memcpy(vendor, &ebx, 4);
  std::memcpy(vendor + 4, &edx, 4);
  std::memcpy(vendor + 8, &ecx, 4);
  if (std::string_view(vendor, sizeof vendor) != "AuthenticAMD" || __get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0)
    return false;
  constexpr unsigned extended = 0xF;  // a family of 15 or more is the sum of two fields
  return (eax >> 8U & 0xFU) == extended && extended + (eax >> 20U & 0xFFU) == 0x19U;
#else
  return false;
#endif
}

}  // namespace

bool halve_wide_stores = is_zen4();

}  // namespace polyad::cpu
