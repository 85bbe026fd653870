// SPDX-License-Identifier: MIT
#define PD_REAL_BITS 32
#define PD_INDEX u32
#define PD_OFFSET u32
#define PLAIN_TYPES f32
#include "device/plain_kernels.inl"
