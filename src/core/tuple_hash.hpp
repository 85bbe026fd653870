// SPDX-License-Identifier: MIT
/// \file Hashes of tuples of indices, many at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "polyad/coo_tensor.hpp"

namespace polyad {

/// A number without visible structure for every number (the finaliser of SplitMix64).
[[nodiscard]] constexpr std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31U);
}

/// The indices of some modes of a tensor, divided by 2^shift. The hash of a nonzero is mixed(sum of index * factor).
template <class Index>
struct TupleSource {
  std::size_t modes = 0;
  int shift = 0;
  std::array<const Index*, max_order> indices = {};   // [modes][nnz]
  std::array<std::uint64_t, max_order> factors = {};  // [modes] odd, its own for every mode
};

/// How many elements behind `count` the vectors of small_hashes may write to.
inline constexpr std::size_t hash_padding = 8;

/// Writes the hashes of nonzeros [begin, begin + count) that are at most `most`, in their order. Returns how many.
/// \param out room for count + hash_padding
[[nodiscard]] std::size_t small_hashes(const TupleSource<std::uint32_t>& source, std::uint64_t begin, std::size_t count,
                                       std::uint64_t most, std::uint64_t* out);
/// The same for wide indices.
[[nodiscard]] std::size_t small_hashes(const TupleSource<std::uint64_t>& source, std::uint64_t begin, std::size_t count,
                                       std::uint64_t most, std::uint64_t* out);

}  // namespace polyad
