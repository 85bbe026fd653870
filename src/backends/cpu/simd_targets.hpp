// SPDX-License-Identifier: MIT
/// \file The instruction sets that kernels are compiled for. To be included before any Highway header. Without AVX2 the
/// plain version runs; the steps between (SSSE3, SSE4) gain little over it and would double the build.
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
