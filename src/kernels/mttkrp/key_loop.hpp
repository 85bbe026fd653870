// SPDX-License-Identifier: MIT
/// \file The loop over nonzeros for formats that keep the indices of a nonzero in one key (ALTO, FLYCOO): it gathers
/// them from the key where it needs them. Decoding blocks first and then running the loop that all formats share takes
/// more than twice the instructions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/bit_layout.hpp"
#include "formats/flycoo/parameters.hpp"
#include "kernels/mttkrp/nonzero_loop.hpp"

namespace polyad {

/// Dynasor's remapping: after a nonzero was added it is appended to its super-shard of the next mode.
template <class T>
struct KeyMove {
  BitField field;                 // of the next mode
  SuperShardMap map;              // of the next mode
  std::uint64_t* next = nullptr;  // [super-shards] places
  std::uint64_t* keys = nullptr;  // [nnz]
  T* values = nullptr;            // [nnz]
};

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
  bool runs = false;                 // neighbours often share the output row
  T* out = nullptr;                  // [rows][stride], written by this thread only
  const KeyMove<T>* move = nullptr;  // null: nonzeros stay where they are
};

/// out(row of key k,:) += values[k] * Hadamard product of the factor rows of key k, in the order of k.
void add_keys(const KeyLoop<float>& loop);
void add_keys(const KeyLoop<double>& loop);

/// The part of a KeyLoop that is the same for all nonzeros of a request.
template <class Index, class T>
[[nodiscard]] KeyLoop<T> key_loop_for(const LoopPlan<Index, T>& plan, const BitLayout& layout, int mode) {
  KeyLoop<T> l;
  l.inputs = plan.loop.inputs;
  l.factors = plan.loop.factors;
  for (std::size_t i = 0; i < static_cast<std::size_t>(l.inputs); ++i) l.fields[i] = layout.field_of(plan.modes[i], 0);
  l.row_field = layout.field_of(mode, 0);
  l.stride = plan.loop.stride;
  l.prefetched = plan.loop.prefetched;
  l.prefetch_output = plan.loop.prefetch_output;
  l.runs = plan.loop.runs;
  return l;
}

/// Adds nonzeros begin .. end of arrays of `nnz` keys and values, in pieces whose keys stay in L1 from one block of
/// columns to the next.
template <class T>
void add_keys(KeyLoop<T> l, const std::uint64_t* keys, const T* values, std::uint64_t begin, std::uint64_t end,
              std::uint64_t nnz) {
  constexpr std::uint64_t piece = 1024;
  for (; begin < end; begin += piece) {
    l.keys = keys + begin;
    l.values = values + begin;
    l.count = static_cast<std::size_t>(std::min(end - begin, piece));
    l.available = static_cast<std::size_t>(std::min<std::uint64_t>(nnz - begin, l.count + prefetch_distance));
    add_keys(l);
  }
}

}  // namespace polyad
