// SPDX-License-Identifier: MIT
/// \file The instruction sets that kernels are compiled for. To be included before any Highway header. x86-64: AVX2,
/// AVX-512 (HWY_AVX3), and plain code for processors without AVX2; the steps between (SSSE3, SSE4) gain little over it
/// and would double the build. Plain code keeps the loops for particular numbers of factors: with the general ones
/// only, COO took twice as long (uber, rank 16, f32: 231 ms a sweep in place of 110).
#pragma once

#ifdef POLYAD_SANITIZED  // one target and the general instances find mistakes, and such builds are slow
#define HWY_COMPILE_ONLY_STATIC
#define POLYAD_FEW_INSTANCES 1
#else
#define POLYAD_FEW_INSTANCES 0
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#endif

#include <hwy/detect_targets.h>
