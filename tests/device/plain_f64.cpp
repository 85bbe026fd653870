// SPDX-License-Identifier: MIT
#define PD_REAL_BITS 64
#define PD_INDEX u32
#define PD_OFFSET u32
#define PLAIN_TYPES f64
#include "device/plain_kernels.inl"
