// SPDX-License-Identifier: MIT
/// \file FLYCOO (Wijeratne, Kannan and Prasanna, "Dynasor", section III): one copy of the tensor serves every mode, as
/// computing one mode also writes the nonzeros in the order that the next mode needs, into a second buffer.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/cpu/threads.hpp"
#include "core/bit_layout.hpp"
#include "core/format.hpp"
#include "formats/flycoo/parameters.hpp"
#include "formats/flycoo/remap.hpp"

namespace polyad {

/// FLYCOO. A nonzero is a key, which holds its indices side by side, and a value. In the order of mode n the
/// super-shards of n follow each other, and within one the nonzeros are in the order that mode n-1 had.
struct Flycoo {
  /// The partition for one mode.
  struct Mode {
    SuperShardMap map;
    std::vector<std::uint64_t> begin;      // [count + 1] first nonzero of each super-shard in the order of this mode
    std::vector<std::uint64_t> first_row;  // [count + 1]
    std::vector<std::uint32_t> schedule;   // [count] largest first
    Buffer<std::uint64_t> start;  // [count][count of the next mode] where the nonzeros of a super-shard go in its order
  };

  /// Nonzeros in some order.
  struct Nonzeros {
    Buffer<std::uint64_t> keys;  // [nnz][words of the layout], the low word first
    ValueBuffer values;          // [nnz]
  };

  /// Nonzeros are decoded this many at a time.
  static constexpr std::size_t block_nonzeros = 512;

  TensorShape tensor_shape;
  BitLayout layout;  ///< of the keys
  std::uint64_t shard_nonzeros = 0;
  bool reproducible = false;  ///< partition and order do not depend on the number of threads
  std::vector<Mode> modes;
  std::array<Nonzeros, 2> buffers;
  int current = 0;  ///< the buffer that holds the tensor
  int mode = 0;     ///< whose order it has

  [[nodiscard]] static Flycoo build(const CooTensor& x, const FormatOptions& options, const Context& context);

  [[nodiscard]] const TensorShape& shape() const { return tensor_shape; }
  [[nodiscard]] std::uint64_t bytes() const;
  [[nodiscard]] int next_mode() const { return mode + 1 == tensor_shape.order() ? 0 : mode + 1; }
  [[nodiscard]] const Mode& partition(int m) const { return modes[static_cast<std::size_t>(m)]; }
  [[nodiscard]] std::size_t key_words() const { return static_cast<std::size_t>(layout.words()); }
  [[nodiscard]] const Nonzeros& nonzeros() const { return buffers[static_cast<std::size_t>(current)]; }
  [[nodiscard]] Nonzeros& other_nonzeros() { return buffers[static_cast<std::size_t>(1 - current)]; }

  /// One step of the cycle of orders, from `mode` to the next. Every super-shard is handled by one thread, in shards:
  /// on_super_shard(super_shard), then on_shard(first, count, destinations) for each shard, which moves its nonzeros.
  template <class OnSuperShard, class OnShard>
  void advance(const Context& context, const OnSuperShard& on_super_shard, const OnShard& on_shard) {
    const Mode& from = partition(mode);
    const SuperShardMap& to = partition(next_mode()).map;
    std::atomic<std::size_t> taken{0};
    const auto team = std::min<std::uint64_t>(static_cast<std::uint64_t>(context.thread_count()), from.map.count());
    cpu::run_team(static_cast<int>(team), [&](int, int) {
      Destinations destinations(to);
      for (std::size_t i = taken.fetch_add(1); i < from.schedule.size(); i = taken.fetch_add(1)) {
        const std::uint32_t s = from.schedule[i];
        on_super_shard(s);
        destinations.begin(from.start.data() + s * to.count());
        for (std::uint64_t first = from.begin[s]; first < from.begin[s + 1]; first += shard_nonzeros)
          on_shard(first, static_cast<std::size_t>(std::min(shard_nonzeros, from.begin[s + 1] - first)), destinations);
      }
    });
    current = 1 - current;
    mode = next_mode();
  }

  /// Appends nonzeros [first, first + count) to the super-shards of the next mode, in the other buffer.
  template <class Index, class Value>
  void move(std::uint64_t first, std::size_t count, Destinations& to) {
    std::array<Index, block_nonzeros> indices;
    const Nonzeros& from = nonzeros();
    Nonzeros& other = other_nonzeros();
    for (std::size_t done = 0; done < count; done += block_nonzeros) {
      const std::size_t n = std::min(count - done, block_nonzeros);
      const std::uint64_t* keys = from.keys.data() + (first + done) * key_words();
      layout.decode(keys, key_words(), n, next_mode(), indices.data());
      append(indices.data(), keys, key_words(), typed<Value>(from.values) + first + done, n, to, other.keys.data(),
             typed<Value>(other.values));
    }
  }

  /// Steps on without computing until the order is the one of mode m.
  void bring_to(int m, const Context& context);

  template <class Index, class Value>
  void decode(std::uint64_t first, std::size_t count, NonzeroBlock<Index, Value>& block) const {
    for (int m = 0; m < tensor_shape.order(); ++m)
      layout.decode(nonzeros().keys.data() + first * key_words(), key_words(), count, m, block.index_room(m));
    block.values = typed<Value>(nonzeros().values) + first;
  }
};

}  // namespace polyad
