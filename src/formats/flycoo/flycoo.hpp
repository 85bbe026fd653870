// SPDX-License-Identifier: MIT
/// \file FLYCOO (Wijeratne, Kannan and Prasanna, "Dynasor", section III): one copy of the tensor serves every mode, as
/// computing one mode also writes the nonzeros in the order that the next mode needs, into a second buffer.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "backends/cpu/threads.hpp"
#include "core/format.hpp"
#include "formats/flycoo/parameters.hpp"
#include "formats/flycoo/remap.hpp"

namespace polyad {

/// FLYCOO. Nonzeros are records (N indices, value). In the order of mode n the super-shards of n follow each other, and
/// within one the nonzeros are in the order that mode n-1 had.
struct Flycoo {
  /// The partition for one mode.
  struct Mode {
    SuperShardMap map;
    std::vector<std::uint64_t> begin;      // [count + 1] first nonzero of each super-shard in the order of this mode
    std::vector<std::uint64_t> first_row;  // [count + 1]
    std::vector<std::uint32_t> schedule;   // [count] largest first
    Buffer<std::uint64_t> start;  // [count][count of the next mode] where the nonzeros of a super-shard go in its order
  };

  TensorShape tensor_shape;
  std::uint64_t shard_nonzeros = 0;
  std::size_t record_bytes = 0;
  bool reproducible = false;  ///< partition and order do not depend on the number of threads
  std::vector<Mode> modes;
  std::array<Buffer<std::byte>, 2> buffers;  ///< [nnz] records each
  int current = 0;                           ///< the buffer that holds the tensor
  int mode = 0;                              ///< whose order it has

  [[nodiscard]] static Flycoo build(const CooTensor& x, const FormatOptions& options, const Context& context);

  [[nodiscard]] const TensorShape& shape() const { return tensor_shape; }
  [[nodiscard]] std::uint64_t bytes() const;
  [[nodiscard]] int next_mode() const { return mode + 1 == tensor_shape.order() ? 0 : mode + 1; }
  [[nodiscard]] const Mode& partition(int m) const { return modes[static_cast<std::size_t>(m)]; }
  [[nodiscard]] const std::byte* records() const { return buffers[static_cast<std::size_t>(current)].data(); }
  [[nodiscard]] std::byte* other_records() { return buffers[static_cast<std::size_t>(1 - current)].data(); }
  /// Bytes from the start of a record to its value.
  [[nodiscard]] std::size_t value_offset() const {
    return tensor_shape.dims.size() * bytes_of(tensor_shape.index_width());
  }

  /// One step of the cycle of orders, from `mode` to the next. Every super-shard is handled by one thread, in shards:
  /// on_super_shard(super_shard), then on_shard(first, count, destinations) for each shard, which moves its records.
  template <class OnSuperShard, class OnShard>
  void advance(const Context& context, const OnSuperShard& on_super_shard, const OnShard& on_shard) {
    const Mode& from = partition(mode);
    const int next = next_mode();
    const SuperShardMap& to = partition(next).map;
    std::byte* destination = other_records();
    std::atomic<std::size_t> taken{0};
    const auto team = std::min<std::uint64_t>(static_cast<std::uint64_t>(context.thread_count()), from.map.count());
    cpu::run_team(static_cast<int>(team), [&](int, int) {
      Destinations destinations(to, next, record_bytes);
      for (std::size_t i = taken.fetch_add(1); i < from.schedule.size(); i = taken.fetch_add(1)) {
        const std::uint32_t s = from.schedule[i];
        on_super_shard(s);
        destinations.begin(destination, from.start.data() + s * to.count());
        for (std::uint64_t first = from.begin[s]; first < from.begin[s + 1]; first += shard_nonzeros)
          on_shard(first, static_cast<std::size_t>(std::min(shard_nonzeros, from.begin[s + 1] - first)), destinations);
      }
    });
    current = 1 - current;
    mode = next;
  }

  /// Steps on without computing until the order is the one of mode m.
  void bring_to(int m, const Context& context);

  template <class Index, class Value>
  void decode(std::uint64_t first, std::size_t count, NonzeroBlock<Index, Value>& block) const {
    const std::byte* record = records() + first * record_bytes;
    for (std::size_t m = 0; m < modes.size(); ++m) block.indices[m] = reinterpret_cast<const Index*>(record) + m;
    block.index_stride = record_bytes / sizeof(Index);
    Value* values = block.value_room();
    for (std::size_t k = 0; k < count; ++k)  // a double need not be aligned to 8
      std::memcpy(values + k, record + k * record_bytes + value_offset(), sizeof(Value));
  }
};

}  // namespace polyad
