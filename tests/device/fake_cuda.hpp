// SPDX-License-Identifier: MIT
/// \file What tests can ask the test double of NVIDIA's driver (fake_cuda.cpp), besides being a driver.
///
/// Environment: FAKE_CUDA_SEED (delays), FAKE_CUDA_DEVICES, FAKE_CUDA_MEMORY (bytes of all), FAKE_CUDA_ARCHITECTURE
/// (90: sm_90), FAKE_CUDA_BUS (of the first device; 0: not told), FAKE_CUDA_INIT (1: no driver that starts),
/// FAKE_CUDA_DRIVER and FAKE_NVRTC (versions, 12040: 12.4).
#pragma once

#include <cstdint>

/// How a compiled program begins: this, its length in bytes, a line feed; the bytes of a shared library follow.
inline constexpr char fake_image_head[] = "FAKE CUDA PROGRAM ";

extern "C" {
/// Forgets faults and counts; the wait of this number (from 0) for an event will be forgotten, -1: none.
void fake_cuda_reset(std::int64_t dropped_wait);
/// Waits of streams for events.
std::uint64_t fake_cuda_waits();
std::uint64_t fake_cuda_launches();
/// Device memory that is allocated.
std::uint64_t fake_cuda_used_bytes();
/// What went wrong: commands that use the same memory in any order, memory that is not there, torn barriers. Null when
/// there are not so many.
const char* fake_cuda_fault(std::uint64_t number);
}
