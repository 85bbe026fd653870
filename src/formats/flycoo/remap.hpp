// SPDX-License-Identifier: MIT
/// \file Dynamic tensor remapping: records of one super-shard appended to the super-shards of the next mode.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "formats/flycoo/parameters.hpp"

namespace polyad {

/// Where one thread's records go. Plain stores: collecting whole lines per target and writing them past the caches took
/// 2.8 ns a record instead of 1.4 (20 M records, 2 threads, few targets), with over a hundred targets 1.3 times as long.
class Destinations {
 public:
  /// \param next_mode the mode that the records are being ordered for
  Destinations(const SuperShardMap& map, int next_mode, std::size_t record_bytes)
      : map_(map), mode_(static_cast<std::size_t>(next_mode)), record_bytes_(record_bytes), next_(map.count()) {}

  /// The next records go to record number start[t] of `to` and on, for super-shard t.
  void begin(std::byte* to, const std::uint64_t* start) {
    for (std::size_t t = 0; t < next_.size(); ++t) next_[t] = to + start[t] * record_bytes_;
  }

  [[nodiscard]] const SuperShardMap& map() const noexcept { return map_; }
  [[nodiscard]] std::size_t mode() const noexcept { return mode_; }
  [[nodiscard]] std::size_t record_bytes() const noexcept { return record_bytes_; }
  /// Per super-shard, where its next record goes.
  [[nodiscard]] std::byte** next() noexcept { return next_.data(); }

 private:
  SuperShardMap map_;
  std::size_t mode_;
  std::size_t record_bytes_;
  std::vector<std::byte*> next_;  // [super-shards]
};

/// Appends records. RecordBytes: their size when known at compile time, else 0.
template <class Index, std::size_t RecordBytes = 0>
void move_records(const std::byte* record, std::size_t count, Destinations& to) {
  // Copies: bytes that are stored may alias any member.
  const SuperShardMap map = to.map();
  const std::size_t mode = to.mode();
  const std::size_t bytes = RecordBytes > 0 ? RecordBytes : to.record_bytes();
  std::byte** next = to.next();
  for (std::size_t k = 0; k < count; ++k, record += bytes) {
    Index index = 0;
    std::memcpy(&index, record + mode * sizeof(Index), sizeof(Index));
    std::byte*& place = next[map(index)];
    std::memcpy(place, record, bytes);
    place += bytes;
  }
}

}  // namespace polyad
