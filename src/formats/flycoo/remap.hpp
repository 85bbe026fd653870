// SPDX-License-Identifier: MIT
/// \file Dynamic tensor remapping: nonzeros of one super-shard appended to the super-shards of the next mode.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "formats/flycoo/parameters.hpp"

namespace polyad {

/// Where one thread's nonzeros go. Plain stores: collecting whole lines per target and writing them past the caches
/// took twice as long (20 M nonzeros, 2 threads, few targets), with over a hundred targets 1.3 times.
class Destinations {
 public:
  /// \param map the super-shards of the mode that the nonzeros are being ordered for
  explicit Destinations(const SuperShardMap& map) : map_(map), next_(map.count()) {}

  /// The next nonzeros go to place start[t] and on, for super-shard t.
  void begin(const std::uint64_t* start) { next_.assign(start, start + next_.size()); }

  [[nodiscard]] const SuperShardMap& map() const noexcept { return map_; }
  /// Per super-shard the place of its next nonzero.
  [[nodiscard]] std::uint64_t* next() noexcept { return next_.data(); }

 private:
  SuperShardMap map_;
  std::vector<std::uint64_t> next_;  // [super-shards]
};

/// Appends nonzeros whose indices in the next mode are given.
/// \param words of a key
template <class Index, class Value>
void append(const Index* indices, const std::uint64_t* keys, std::size_t words, const Value* values, std::size_t count,
            Destinations& to, std::uint64_t* keys_to, Value* values_to) {
  const SuperShardMap map = to.map();
  std::uint64_t* next = to.next();
  for (std::size_t k = 0; k < count; ++k) {
    const std::uint64_t place = next[map(indices[k])]++;
    for (std::size_t w = 0; w < words; ++w) keys_to[place * words + w] = keys[k * words + w];
    values_to[place] = values[k];
  }
}

}  // namespace polyad
