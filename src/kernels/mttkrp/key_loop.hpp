// SPDX-License-Identifier: MIT
/// \file The loop over nonzeros for ALTO's keys: it gathers the indices from the key where it needs them. Decoding
/// blocks first and then running the loop that all formats share takes more than twice the instructions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/bit_layout.hpp"
#include "kernels/mttkrp/nonzero_loop.hpp"

namespace polyad {

/// Everything the loop needs, for some nonzeros with keys of one word.
template <class T>
struct KeyLoop {
  int inputs = 0;                                // factors to multiply
  std::array<const T*, max_order> factors = {};  // [inputs][rows][stride], the largest first
  std::array<BitField, max_order> fields = {};   // [inputs] where the keys have their indices
  BitField row_field;                            // of the output
  const std::uint64_t* keys = nullptr;           // [available]
  const T* values = nullptr;                     // [count]
  std::size_t count = 0;                         // nonzeros to add
  std::size_t available = 0;                     // >= count: how far the keys may be read
  std::uint64_t stride = 0;                      // of factors and output
  int prefetched = 0;                            // so many of the first factors are worth prefetching
  bool prefetch_output = false;
  T* out = nullptr;  // [rows][stride], written by this thread only
};

/// out(row of key k,:) += values[k] * Hadamard product of the factor rows of key k, in the order of k.
void add_keys(const KeyLoop<float>& loop);
void add_keys(const KeyLoop<double>& loop);

}  // namespace polyad
