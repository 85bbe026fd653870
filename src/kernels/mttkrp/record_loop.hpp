// SPDX-License-Identifier: MIT
/// \file The loop over nonzeros that are records (N indices of 32 bits and the value, one after the other), read in
/// place. What add_nonzeros is for arrays; here one stream of memory replaces N + 1, and the records move on to the
/// order of the next mode as they are used: storing them overlaps with computing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "formats/flycoo/remap.hpp"
#include "polyad/types.hpp"

namespace polyad {

/// Everything the loop needs, for one shard. The rows of the output belong to this thread.
template <class T>
struct RecordLoop {
  int inputs = 0;                                   // factors to multiply
  std::array<const T*, max_order> factors = {};     // [inputs][rows][stride]
  std::array<std::uint32_t, max_order> modes = {};  // [inputs] where their index is in a record
  std::uint32_t output_mode = 0;
  std::uint32_t words = 0;       // of a record
  std::uint32_t value_word = 0;  // where the value starts
  const std::byte* records = nullptr;
  std::size_t count = 0;      // nonzeros to add
  std::size_t available = 0;  // >= count: how far the records may be read
  T* out = nullptr;           // [rows][stride]
  std::uint64_t stride = 0;   // of factors and output
  int prefetched = 0;         // rows of so many of the first factors are requested ahead
  Destinations* destinations = nullptr;
  bool runs = false;  // neighbours often share the output row
};

/// out(row of k,:) += value of k * Hadamard product of the factor rows of k, in the order of k; every record
/// is appended to its destination.
void add_records(const RecordLoop<float>& loop);
void add_records(const RecordLoop<double>& loop);

}  // namespace polyad
