// SPDX-License-Identifier: MIT
/// \file Sums of nonzeros that have one row of the output in common and lie side by side: the inner loop of `copies`
/// and `tiles`. Compiled once per instruction set (Highway's way), so it has no ordinary include guard.
#if defined(POLYAD_ROW_PASS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYAD_ROW_PASS_INL
#undef POLYAD_ROW_PASS_INL
#else
#define POLYAD_ROW_PASS_INL
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/mttkrp/row_inputs.hpp"
#include "kernels/mttkrp/rows-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace polyad::HWY_NAMESPACE {

/// How often rows are requested before they are used. Those from memory twice: so many nonzeros ahead into the
/// second-level cache, where more requests can be under way than the first level has room for, and shortly before they
/// are used. Against one request 16 ahead on deli, rank 16 (two cores of Emerald Rapids, in turn): f64 264 to 270 ms in
/// place of 290 to 325, f32 165 to 186 in place of 174 to 192. Those from a third-level cache once: a second request
/// takes longer than what it saves (factors of 6 to 13 MB, Zen 5: 1.15 to 1.25 of the time).
enum class Requests { none, once, twice };
constexpr std::uint64_t far_ahead = 48;
constexpr std::uint64_t before_use = 8;
constexpr std::uint64_t once_ahead = 16;
static_assert(far_ahead + 4 <= SortedCopy::padding);

/// Codes of one to three bytes.
struct WholeCode {};

/// Values in all columns. \tparam Value what is stored: T, float in place of double, or WholeCode
template <class T, class Value>
struct RowValues {
  const Value* values;

  /// \param first the number of value 0
  HWY_INLINE RowValues(const NarrowValues& all, std::uint64_t first)
      : values(reinterpret_cast<const Value*>(all.data()) + first) {}

  /// Where a value lies.
  using Place = const Value*;
  HWY_INLINE Place place_of(std::uint64_t z) const { return values + z; }
  template <class Row>
  HWY_INLINE Row at(Place place, int offset) const {
    return Row::all(static_cast<T>(place[offset]));
  }
  HWY_INLINE Place after(Place place, int count) const { return place + count; }
  HWY_INLINE void request(Place place) const { request_elements(place, sizeof(Value)); }
};

/// The last byte of a code is the highest of four that one load puts into all columns; shifting drops what lies before
/// it.
template <class T>
struct RowValues<T, WholeCode> {
  const std::byte* fours;  // [values] steps apart
  std::uint64_t step;

  HWY_INLINE RowValues(const NarrowValues& all, std::uint64_t first)
      : fours(all.data() + first * all.code().bytes - (sizeof(std::int32_t) - all.code().bytes)),
        step(all.code().bytes) {}

  using Place = const std::byte*;
  HWY_INLINE Place place_of(std::uint64_t z) const { return fours + z * step; }
  HWY_INLINE Place after(Place place, int count) const { return place + static_cast<std::uint64_t>(count) * step; }
  HWY_INLINE void request(Place place) const { request_elements(place, step); }
  template <class Row>
  HWY_INLINE Row at(Place place, int offset) const {
    const typename Row::D d;
    const hn::Rebind<std::int32_t, typename Row::D> whole;
    std::int32_t four = 0;
    std::memcpy(&four, place + static_cast<std::uint64_t>(offset) * step, sizeof four);
    const auto unused = hn::Set(whole, static_cast<std::int32_t>(32 - 8 * step));
    const auto code = hn::Shr(hn::Set(whole, four), unused);
    Row row;
    if constexpr (sizeof(T) == 4) {
      row.v[0] = hn::ConvertTo(d, code);
    } else {
      row.v[0] = hn::PromoteTo(d, code);
    }
    for (int i = 1; i < Row::vectors; ++i) row.v[i] = row.v[0];
    return row;
  }
};

/// Sums of nonzeros that lie side by side, for C columns; their numbers count from the first one of the inputs. Inputs:
/// number of factors when it is 1, 2 or 3, else 0.
/// Whole: a row is these C columns and nothing else, so that addresses need no multiplication. Everything is in locals:
/// a vector store may alias anything, so members would be read again after each.
template <class T, int C, class Index, class Value, int Inputs, bool Whole, Requests ahead>
struct RowPass {
  using Row = Cols<T, C>;
  static constexpr int most = Inputs > 0 ? Inputs : max_order;
  /// Sums of a long row: one would wait for itself at every nonzero. As many as leave registers for the rest.
  static constexpr int sums = Row::vectors == 1 ? 4 : Row::vectors == 2 ? 2 : 1;

  const T* factors[most];      // [inputs], at the first column
  const Index* indices[most];  // [inputs]
  RowValues<T, Value> values;
  T unit;  // codes are multiples of it
  std::uint64_t row_stride;
  int input_count;
  int prefetched;

  HWY_INLINE RowPass(const RowInputs<T>& l, std::uint64_t column)
      : values(*l.values, l.begin_nonzero),
        unit(static_cast<T>(1 / l.values->code().divisor)),
        row_stride(l.stride),
        input_count(l.inputs),
        prefetched(l.prefetched) {
    for (int m = 0; m < inputs(); ++m) {
      factors[m] = l.factors[static_cast<std::size_t>(m)] + column;
      indices[m] = static_cast<const Index*>(l.indices[static_cast<std::size_t>(m)]) + l.begin_nonzero;
    }
  }

  HWY_INLINE int inputs() const { return Inputs > 0 ? Inputs : input_count; }
  HWY_INLINE std::uint64_t stride() const { return Whole ? C : row_stride; }
  HWY_INLINE const T* row(int m, std::uint64_t z) const { return factors[m] + index_at(indices[m], z) * stride(); }
  using Place = typename RowValues<T, Value>::Place;

  /// Adds nonzero z + i, whose value is i after the one at the place.
  HWY_INLINE void add(std::uint64_t z, Place place, int i, Row& sum) const {
    z += static_cast<std::uint64_t>(i);
    if (ahead != Requests::none)
      for (int m = 0; m < requested(); ++m) {
        if (ahead == Requests::twice) prefetch_row_into_second_cache<T, C>(row(m, z + far_ahead));
        prefetch_row<T, C>(row(m, z + (ahead == Requests::twice ? before_use : once_ahead)));
      }
    Row product = values.template at<Row>(place, i);
    for (int m = 0; m + 1 < inputs(); ++m) product.times(row(m, z));
    sum.add_product(product, row(inputs() - 1, z));
  }
  /// Of indices of 16 bits either all rows are requested or none, and there is a loop for each: counting them would
  /// take a tenth of the time. General loops count.
  HWY_INLINE int requested() const { return sizeof(Index) == 2 && Whole ? inputs() : prefetched; }

  /// A nonzero, where its value lies, and the next one at which nonzeros ahead are requested. It goes from row to row:
  /// looking values up anew costs short ones a tenth.
  struct Cursor {
    std::uint64_t z = 0;
    Place place;
    std::uint64_t next_request = 0;
  };
  HWY_INLINE Cursor begin() const { return {0, values.place_of(0), 0}; }

  HWY_INLINE void request_nonzeros(Cursor& at) const {
    for (; at.next_request <= at.z; at.next_request += stream_step) {
      for (int m = 0; m < inputs(); ++m) request_elements(indices[m] + at.next_request, sizeof(Index));
      values.request(values.place_of(at.next_request));
    }
  }

  /// The sum of all up to `end`, where the cursor is then. \tparam Request whether to request nonzeros ahead
  template <bool Request>
  HWY_INLINE Row sum_to(std::uint64_t end, Cursor& at) const {
    Row sum = Row::zero();
    if (sums > 1 && end - at.z >= std::uint64_t{2} * sums) {
      Row other[sums];
      for (int i = 1; i < sums; ++i) other[i] = sum;
      if constexpr (Request) {
        while (end - at.z >= stream_step) {
          request_nonzeros(at);
          add_in_turn(at.z + stream_step, at, sum, other);
        }
      }
      add_in_turn(end, at, sum, other);
      for (int i = 1; i < sums; ++i) sum.add(other[i]);
    }
    if constexpr (Request) {
      while (end - at.z >= stream_step) {  // of rows that are one sum
        request_nonzeros(at);
        add_each(at.z + stream_step, at, sum);
      }
      request_nonzeros(at);
    }
    add_each(end, at, sum);
    scale(sum);
    return sum;
  }
  /// The same, one after the other.
  HWY_INLINE Row short_sum_to(std::uint64_t end, Cursor& at) const {
    Row sum = Row::zero();
    add_each(end, at, sum);
    scale(sum);
    return sum;
  }
  HWY_INLINE void add_in_turn(std::uint64_t end, Cursor& at, Row& sum, Row* other) const {
    std::uint64_t z = at.z;
    Place place = at.place;
    for (; z + sums <= end; z += sums) {
      add(z, place, 0, sum);
      for (int i = 1; i < sums; ++i) add(z, place, i, other[i]);
      place = values.after(place, sums);
    }
    at.z = z;
    at.place = place;
  }
  HWY_INLINE void add_each(std::uint64_t end, Cursor& at, Row& sum) const {
    std::uint64_t z = at.z;
    Place place = at.place;
    for (; z < end; ++z, place = values.after(place, 1)) add(z, place, 0, sum);
    at.z = z;
    at.place = place;
  }
  HWY_INLINE void scale(Row& sum) const {
    if constexpr (!std::is_same_v<Value, T>) sum.times(Row::all(unit));
  }
};

/// Calls f.template with_value<C, Value>(column) with what is stored in place of numbers of T.
template <class T, int C, class F>
HWY_INLINE void with_value_type(const NarrowValues& values, const F& f, std::uint64_t column) {
  if (values.code().is_whole()) return f.template with_value<C, WholeCode>(column);
  if constexpr (!std::is_same_v<T, float>) {
    if (values.code().bytes == sizeof(float)) return f.template with_value<C, float>(column);
  }
  f.template with_value<C, T>(column);
}

}  // namespace polyad::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
