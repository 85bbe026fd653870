// SPDX-License-Identifier: MIT
/// \file Long keys that hold the bits of all indices of a nonzero, interleaved (Morton order, ALTO's line), and sorting
/// nonzeros by them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/radix_sort.hpp"
#include "polyad/buffer.hpp"
#include "polyad/context.hpp"
#include "polyad/coo_tensor.hpp"

namespace polyad {

/// The bits of one mode within one 64-bit word of a key: word bits at `mask` are index bits shift, shift + 1, ...
struct BitField {
  int mode = 0;
  int shift = 0;
  std::uint64_t mask = 0;
  /// The six steps of a compress / expand network for the mask (Hacker's Delight, section 7-4), for machines without
  /// pext and pdep.
  std::array<std::uint64_t, 6> moves = {};
};

/// The bits of a word that a field has, packed together (without the shift).
[[nodiscard]] inline std::uint64_t gathered(std::uint64_t word, const BitField& f) {
  word &= f.mask;
  for (unsigned step = 0; step < 6; ++step) {
    const std::uint64_t moving = word & f.moves[step];
    word = (word ^ moving) | (moving >> (1U << step));
  }
  return word;
}

/// Per mode the largest index that its length allows.
[[nodiscard]] std::vector<std::uint64_t> largest_allowed(std::span<const std::uint64_t> dims);

/// Where the bits of the indices sit in a key. Bit j of an index belongs to level j; levels are stacked from the lowest
/// one up, and within a level the longest mode is on top. A mode that has no more bits drops out, so the extra bits of
/// long modes end up at the top: ALTO's line, and Morton order when all modes are of one length.
class BitLayout {
 public:
  /// Which levels to interleave.
  struct Levels {
    int skipped = 0;  ///< the lowest levels are not in the key: keys of blocks
    int plain = 0;    ///< the lowest levels lie below, mode after mode with the first mode on top: offsets in blocks
  };

  /// No modes.
  BitLayout() = default;
  /// \param largest per mode no index is above it
  /// \param native use the machine's bit instructions when it has fast ones; false is for tests
  BitLayout(std::span<const std::uint64_t> largest, Levels levels, bool native = true);

  /// Of the whole key.
  [[nodiscard]] int bits() const noexcept { return bits_; }
  /// 64-bit words of a key, at least 1.
  [[nodiscard]] int words() const noexcept { return static_cast<int>(fields_.size()); }
  /// The fields of a word, 0 is the lowest.
  [[nodiscard]] std::span<const BitField> fields(int word) const { return fields_[static_cast<std::size_t>(word)]; }
  /// Whether the machine's own bit instructions are used.
  [[nodiscard]] bool native() const noexcept { return native_; }
  /// The field of a mode in a word, empty (mask 0) when it has none there.
  [[nodiscard]] BitField field_of(int mode, int word) const;
  /// Key bits that belong to levels below `level`: they are the lowest when nothing is plain above that level.
  [[nodiscard]] int bits_below(int level) const;

  /// One word of the keys of nonzeros [begin, begin + count).
  template <class Index>
  void encode(const std::array<Index*, max_order>& indices, std::uint64_t begin, std::size_t count, int word,
              std::uint64_t* out) const;

  /// The whole keys, one machine number each.
  template <class Key, class Index>
  void encode_keys(const std::array<Index*, max_order>& indices, std::uint64_t begin, std::size_t count,
                   Key* out) const {
    if constexpr (sizeof(Key) == 8) {
      encode(indices, begin, count, 0, out);
    } else {
      std::array<std::uint64_t, radix::block_records> low;
      std::array<std::uint64_t, radix::block_records> high;
      for (std::size_t done = 0; done < count; done += low.size()) {
        const std::size_t n = std::min(count - done, low.size());
        encode(indices, begin + done, n, 0, low.data());
        high.fill(0);
        if (words() > 1) encode(indices, begin + done, n, 1, high.data());
        for (std::size_t i = 0; i < n; ++i) out[done + i] = static_cast<Key>(high[i]) << 64 | low[i];
      }
    }
  }

  /// The indices of a mode; `keys` has `stride` >= words() words per key, the lowest first.
  template <class Index>
  void decode(const std::uint64_t* keys, std::size_t stride, std::size_t count, int mode, Index* out) const;

 private:
  std::vector<int> widths_;                    // [order] bits of an index
  std::vector<std::vector<BitField>> fields_;  // [words][modes that have bits there]
  int skipped_ = 0;
  int bits_ = 0;
  bool native_ = false;
};

/// Nonzeros that are sorted by their keys.
template <class Value>
struct KeyedNonzeros {
  std::size_t key_words = 1;   // 1 or 2
  Buffer<std::uint64_t> keys;  // [nnz][key_words], the low word first
  Buffer<Value> values;        // [nnz]
};

/// Sorts the nonzeros of a tensor with values of type Value by keys of at most 128 bits, stably. Peak memory: the
/// result and one record of key and value per nonzero.
template <class Value>
[[nodiscard]] KeyedNonzeros<Value> sorted_by_keys(const CooTensor& x, const BitLayout& layout, const Context& context);

/// The same for keys of any length: the order as positions of nonzeros. Sorts by one word of the key after the other,
/// the lowest first.
[[nodiscard]] Buffer<std::uint64_t> order_by_keys(const CooTensor& x, const BitLayout& layout, const Context& context);

}  // namespace polyad
