// SPDX-License-Identifier: MIT
/// \file The partition of FLYCOO: how many super-shards a mode has, which one an index belongs to, and who computes
/// them (Wijeratne, Kannan and Prasanna, "Dynasor", sections III-C and IV-A).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "polyad/coo_tensor.hpp"
#include "polyad/tensor.hpp"

namespace polyad {

/// The map from the indices of a mode to its super-shards: equal ranges, their lengths differ by at most one row.
/// super_shard(i) = floor(i * count / dim), by one multiplication with the reciprocal.
class SuperShardMap {
 public:
  SuperShardMap() = default;
  /// \param count 1 <= count <= dim (dim 0 counts as 1)
  SuperShardMap(std::uint64_t dim, std::uint64_t count);

  /// The super-shard of an index. Indices of 32 bits never need the shift that brings longer ones into range.
  template <class Index>
  [[nodiscard]] std::uint64_t operator()(Index i) const noexcept {
    std::uint64_t scaled = i;
    if constexpr (sizeof(Index) == 8) scaled >>= static_cast<unsigned>(shift_);
    return static_cast<std::uint64_t>((static_cast<Wide>(2 * scaled) * reciprocal_) >> 64U);
  }
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  /// The first row of a super-shard; of `count()` it is the length of the mode.
  [[nodiscard]] std::uint64_t first_row(std::uint64_t super_shard) const;

 private:
  __extension__ typedef unsigned __int128 Wide;

  std::uint64_t dim_ = 1;
  std::uint64_t count_ = 1;
  int shift_ = 0;                 // dim >> shift fits 32 bits
  std::uint64_t reciprocal_ = 0;  // ceil(count * 2^63 / (dim >> shift)), 0 when there is one super-shard
};

/// What equations (2) and (3) of the paper are about.
struct FlycooMachine {
  std::uint64_t cache_bytes = 0;  // Gamma
  std::uint64_t threads = 1;      // nu
};

/// The partition of a tensor.
struct FlycooParameters {
  std::uint64_t shard_nonzeros = 0;           // g
  std::vector<std::uint64_t> super_shards;    // [order] k_n
  std::uint64_t most_rows = 0;                // no m_n of a long mode is above it (unless nonzeros are few)
  static constexpr double cache_share = 0.5;  // theta
};

/// Largest m_n that equation (3) allows with shards of g nonzeros, within the paper's 1000 .. 16000:
/// (row_bytes * m_n + record_bytes * g) * threads + 8 * nnz / g <= theta * cache.
[[nodiscard]] std::uint64_t most_super_shard_rows(const FlycooMachine& machine, std::uint64_t row_bytes,
                                                  std::uint64_t record_bytes, std::uint64_t shard_nonzeros,
                                                  std::uint64_t nnz);

/// Chooses g and k_n. Equation (2), k_n a multiple of the threads, holds for every mode of at least `threads` rows; a
/// shorter one has a super-shard per row. Of the multiples it takes the smallest that keeps m_n small enough and the
/// threads balanced within 3 %. options.shard_nonzeros and options.supershard_rows replace what is chosen.
[[nodiscard]] FlycooParameters flycoo_parameters(const CooTensor& x, const FlycooMachine& machine,
                                                 std::uint64_t record_bytes, const FormatOptions& options,
                                                 const Context& context);

/// Jobs with the largest first; equal ones keep their order.
[[nodiscard]] std::vector<std::uint32_t> largest_first(std::span<const std::uint64_t> sizes);

/// Algorithm 3: the load of each of `bins` threads when every job, largest first, goes to the least loaded one. The
/// largest load is at most 4/3 - 1/(3 bins) of the best possible (Graham 1969).
[[nodiscard]] std::vector<std::uint64_t> greedy_loads(std::span<const std::uint64_t> sizes, std::size_t bins);

}  // namespace polyad
