// SPDX-License-Identifier: MIT
/// \file Nonzeros in the order of some modes, as trees and fibres are built from them: in the form in which the sort
/// leaves them, so that no sorted tensor is written and read again.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <variant>
#include <vector>

#include "core/radix_sort.hpp"
#include "polyad/context.hpp"
#include "polyad/coo_tensor.hpp"

namespace polyad {

/// Sorted nonzeros that were packed into records.
template <class Key, class Value>
struct PackedNonzeros {
  using value_type = Value;
  struct Place {
    int shift = 0;
    std::uint64_t mask = 0;
  };

  const radix::Record<Key, Value>* records = nullptr;
  std::array<Place, max_order> places = {};                     // [level]
  std::array<std::uint8_t, 8 * sizeof(Key) + 1> level_of = {};  // [binary digits of a difference of keys]

  template <class Index>
  [[nodiscard]] Index index(std::size_t level, std::uint64_t z) const {
    const Place& p = places[level];
    return static_cast<Index>(static_cast<std::uint64_t>(radix::key_of(records[z]) >> p.shift) & p.mask);
  }
  [[nodiscard]] Value value(std::uint64_t z) const { return records[z].payload; }
  /// The indices of nonzeros [begin, begin + count).
  template <class Index>
  void copy_indices(std::size_t level, std::uint64_t begin, std::size_t count, Index* out) const {
    const Place p = places[level];
    const radix::Record<Key, Value>* from = records + begin;
    for (std::size_t i = 0; i < count; ++i)
      out[i] = static_cast<Index>(static_cast<std::uint64_t>(radix::key_of(from[i]) >> p.shift) & p.mask);
  }
  /// Sets out[i] to 1 where nonzero begin + i differs from the one before it in one of the first levels, else to 0.
  /// begin > 0
  void new_tuples(std::uint64_t begin, std::size_t count, std::size_t levels, std::uint8_t* out) const {
    int floor = -1;  // indices that are all 0 have no bits
    for (std::size_t l = 0; l < levels; ++l)
      if (places[l].mask != 0) floor = places[l].shift;
    if (floor < 0) {
      std::fill_n(out, count, std::uint8_t{0});
      return;
    }
    Key before = radix::key_of(records[begin - 1]) >> floor;
    for (std::size_t i = 0; i < count; ++i) {
      const Key key = radix::key_of(records[begin + i]) >> floor;
      out[i] = key != before;
      before = key;
    }
  }
  /// The first level at which nonzeros [begin, begin + count) differ from the ones before them, or `below` if that is
  /// no less. begin > 0
  void new_levels(std::uint64_t begin, std::size_t count, std::uint8_t below, std::uint8_t* out) const {
    Key before = radix::key_of(records[begin - 1]);
    for (std::size_t i = 0; i < count; ++i) {
      const Key key = radix::key_of(records[begin + i]);
      out[i] = std::min(below, level_of[static_cast<std::size_t>(radix::width_of(static_cast<Key>(key ^ before)))]);
      before = key;
    }
  }
};

/// Sorted nonzeros that are coordinates: the same functions.
template <class StoredIndex, class Value>
struct SortedCoordinates {
  using value_type = Value;

  std::array<const StoredIndex*, max_order> indices = {};  // [level][nnz]
  const Value* values = nullptr;                           // [nnz]

  template <class Index>
  [[nodiscard]] Index index(std::size_t level, std::uint64_t z) const {
    return static_cast<Index>(indices[level][z]);
  }
  [[nodiscard]] Value value(std::uint64_t z) const { return values[z]; }
  template <class Index>
  void copy_indices(std::size_t level, std::uint64_t begin, std::size_t count, Index* out) const {
    const StoredIndex* from = indices[level] + begin;
    for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<Index>(from[i]);
  }
  void new_tuples(std::uint64_t begin, std::size_t count, std::size_t levels, std::uint8_t* out) const {
    std::fill_n(out, count, std::uint8_t{0});
    for (std::size_t l = 0; l < levels; ++l) {
      const StoredIndex* index = indices[l] + begin;
      const StoredIndex* before = index - 1;
      for (std::size_t i = 0; i < count; ++i) out[i] |= static_cast<std::uint8_t>(index[i] != before[i]);
    }
  }
  void new_levels(std::uint64_t begin, std::size_t count, std::uint8_t below, std::uint8_t* out) const {
    std::fill_n(out, count, below);
    for (std::uint8_t l = below; l-- > 0;) {  // one level after the other: loops without branches
      const StoredIndex* index = indices[l] + begin;
      const StoredIndex* before = index - 1;
      for (std::size_t i = 0; i < count; ++i) out[i] = index[i] != before[i] ? l : out[i];
    }
  }
};

/// Whether nonzeros lie in the order of some modes: as is known of them, else as one pass finds, which ends where they
/// do not.
[[nodiscard]] bool lie_in_order(const CooTensor& x, std::span<const int> modes, const Context& context);

/// The nonzeros of a tensor sorted by the first of its modes. A level is a position in the order of the modes.
class SortedNonzeros {
 public:
  /// Sorts stably by the first `sorted_modes` of `mode_order`, which has every mode once. Keeps references to x, whose
  /// arrays are used where they are sorted already, and to the scratch memory, which holds the records. Peak: 12 or 16
  /// bytes per nonzero (f32, f64), 20 or 24 when the indices of a nonzero need more than 64 bits; beyond 128 bits a
  /// copy of the coordinates and what sort_nonzeros needs.
  SortedNonzeros(const CooTensor& x, std::span<const int> mode_order, std::size_t sorted_modes, const Context& context,
                 radix::Scratch& scratch);
  /// Nonzeros that are sorted by all modes, once more with another mode first and the others as they were: a sort by
  /// that mode alone. The scratch memory must not be that of `sorted`, which has to stay.
  SortedNonzeros(const SortedNonzeros& sorted, int root, const Context& context, radix::Scratch& scratch);
  /// Coordinates that are sorted by all modes.
  SortedNonzeros(CooTensor&& sorted, std::span<const int> mode_order);

  [[nodiscard]] std::uint64_t nnz() const noexcept { return nnz_; }
  [[nodiscard]] std::span<const int> mode_order() const noexcept { return mode_order_; }

  /// Calls f with a PackedNonzeros or SortedCoordinates: one dispatch, then typed loops.
  template <class F>
  decltype(auto) visit(F&& f) const {
    return std::visit(std::forward<F>(f), form_);
  }

 private:
  using Form = std::variant<PackedNonzeros<std::uint64_t, float>, PackedNonzeros<std::uint64_t, double>,
                            PackedNonzeros<radix::uint128, float>, PackedNonzeros<radix::uint128, double>,
                            SortedCoordinates<std::uint32_t, float>, SortedCoordinates<std::uint32_t, double>,
                            SortedCoordinates<std::uint64_t, float>, SortedCoordinates<std::uint64_t, double>>;

  /// Levels to sort by: those before `end`, by the first of which (before `begin`) the nonzeros are sorted already.
  struct SortedRange {
    std::size_t begin = 0;
    std::size_t end = 0;
  };

  void use(const CooTensor& sorted);
  /// Sorts coordinates by the first modes: by records if keys of 128 bits hold the indices, else as a tensor.
  void sort(const CooTensor& x, SortedRange modes, const Context& context, radix::Scratch& scratch);
  template <class Key, class Value, class Source>
  void sort_records(const Source& source, const radix::KeyLayout& layout, SortedRange modes, const Context& context,
                    radix::Scratch& scratch);

  std::uint64_t nnz_ = 0;
  std::vector<int> mode_order_;
  const CooTensor* tensor_ = nullptr;   // that the nonzeros come from; null when they are taken over
  std::vector<std::uint64_t> largest_;  // [mode] no index is above it
  CooTensor taken_;
  Form form_;
};

/// The arrays of x without owning them.
[[nodiscard]] CooTensor view_of(const CooTensor& x);

}  // namespace polyad
