// SPDX-License-Identifier: MIT
/// \file Records that are sorted by a key which holds several indices: how keys are packed, and tensors as sources of
/// such records.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "polyad/coo_tensor.hpp"

namespace polyad::radix {

/// Two machine words: keys of 65 to 128 bits, which is where most big order-4 tensors of FROSTT are.
__extension__ typedef unsigned __int128 uint128;

/// A key and what travels with it. The key is kept as 32-bit words so that a 64-bit key and a float take 12 bytes,
/// not 16.
template <class Key, class Payload>
struct Record {
  std::array<std::uint32_t, sizeof(Key) / 4> words;
  Payload payload;
};

template <class Key, class Payload>
[[nodiscard]] inline Key key_of(const Record<Key, Payload>& r) {
  return std::bit_cast<Key>(r.words);
}
[[nodiscard]] inline std::uint32_t key_of(std::uint32_t key) { return key; }
[[nodiscard]] inline std::uint64_t key_of(std::uint64_t key) { return key; }
[[nodiscard]] inline uint128 key_of(uint128 key) { return key; }

/// Type of the key of a record.
template <class Rec>
using KeyOf = decltype(key_of(std::declval<const Rec&>()));

/// Number of zero bits below the lowest one bit; key is not 0.
template <class Key>
[[nodiscard]] inline int lowest_bit(Key key) {
  if constexpr (sizeof(Key) == 16) {
    const auto low = static_cast<std::uint64_t>(key);
    return low != 0 ? std::countr_zero(low) : 64 + std::countr_zero(static_cast<std::uint64_t>(key >> 64));
  } else {
    return std::countr_zero(key);
  }
}

/// Number of binary digits of key.
template <class Key>
[[nodiscard]] inline int width_of(Key key) {
  if constexpr (sizeof(Key) == 16) {
    const auto high = static_cast<std::uint64_t>(key >> 64);
    return static_cast<int>(high != 0 ? 64 + std::bit_width(high) : std::bit_width(static_cast<std::uint64_t>(key)));
  } else {
    return static_cast<int>(std::bit_width(key));
  }
}

/// Where the indices of some modes sit in a key: key = sum of index[mode] << shift. A mode whose indices are all 0
/// takes no bits and has no field.
struct KeyLayout {
  struct Field {
    int mode = 0;
    int shift = 0;
    int bits = 0;
  };
  std::vector<Field> fields;  ///< most significant first
  int bits = 0;               ///< of the whole key

  /// \param largest per mode no index is above it
  /// \param modes most significant first
  KeyLayout(std::span<const std::uint64_t> largest, std::span<const int> modes) {
    for (const int m : modes) bits += width_of(largest[static_cast<std::size_t>(m)]);
    int shift = bits;
    for (const int m : modes) {
      const int width = width_of(largest[static_cast<std::size_t>(m)]);
      shift -= width;
      if (width > 0) fields.push_back({m, shift, width});
    }
  }

  /// Packs the keys of nonzeros [begin, begin + count). Bits below `needed_from` may be left out: counting a digit then
  /// reads only the modes that it covers.
  template <class Key, class Index>
  void pack(const std::array<Index*, max_order>& indices, std::uint64_t begin, std::size_t count, Key* out,
            int needed_from = 0) const {
    bool first = true;
    for (const Field& f : fields) {
      if (f.shift + f.bits <= needed_from) break;
      const Index* index = indices[static_cast<std::size_t>(f.mode)] + begin;
      const int shift = f.shift;
      if (first) {
        for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<Key>(static_cast<Key>(index[i]) << shift);
      } else {
        for (std::size_t i = 0; i < count; ++i) out[i] |= static_cast<Key>(static_cast<Key>(index[i]) << shift);
      }
      first = false;
    }
    if (first) std::fill_n(out, count, Key{0});
  }

  /// The index that a field holds.
  template <class Index, class Key>
  [[nodiscard]] static Index unpack(Key key, const Field& f) {
    // An index has at most 64 bits, so the mask works on the low word.
    return static_cast<Index>(static_cast<std::uint64_t>(key >> f.shift) & (~std::uint64_t{0} >> (64 - f.bits)));
  }
};

/// Records are loaded and packed this many at a time, in the L1 cache.
inline constexpr std::size_t block_records = 512;

/// The keys of a tensor's nonzeros, packed as they are read: a source of keys alone.
template <class Key, class Index>
struct KeySource {
  const KeyLayout* layout = nullptr;
  std::array<Index*, max_order> indices = {};

  void load(std::uint64_t begin, std::size_t count, Key* out) const { layout->pack(indices, begin, count, out); }
  void load_keys(std::uint64_t begin, std::size_t count, Key* out, int needed_from) const {
    layout->pack(indices, begin, count, out, needed_from);
  }
};

/// The nonzeros of a tensor as (packed indices, value), packed as they are read.
template <class Rec, class Index, class Value>
struct RecordSource {
  const KeyLayout* layout = nullptr;
  std::array<Index*, max_order> indices = {};
  Value* values = nullptr;

  void load(std::uint64_t begin, std::size_t count, Rec* out) const {
    std::array<KeyOf<Rec>, block_records> keys;
    for (std::size_t done = 0; done < count; done += block_records) {
      const std::size_t n = std::min(count - done, block_records);
      layout->pack(indices, begin + done, n, keys.data());
      for (std::size_t i = 0; i < n; ++i)
        out[done + i] = {std::bit_cast<decltype(Rec::words)>(keys[i]), values[begin + done + i]};
    }
  }
  void load_keys(std::uint64_t begin, std::size_t count, KeyOf<Rec>* out, int needed_from) const {
    layout->pack(indices, begin, count, out, needed_from);
  }
};

}  // namespace polyad::radix
