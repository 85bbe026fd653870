// SPDX-License-Identifier: MIT
/// \file Values in as few bytes each as lose nothing: most tensors hold counts, ratings or prices.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "polyad/buffer.hpp"
#include "polyad/context.hpp"
#include "polyad/coo_tensor.hpp"

namespace polyad {

/// How a value is stored: value = code / divisor, to the last bit. A decimal of few digits is the quotient of two
/// numbers that both types hold exactly, and division rounds as reading it did.
struct ValueCode {
  /// 1, 2, 3: whole numbers in two's complement; 4: floats; 8: doubles, the values themselves.
  std::uint32_t bytes = sizeof(double);
  double divisor = 1;  ///< a power of ten up to a million

  /// The narrowest that loses nothing of the values of a tensor. A pass for each divisor that is tried, which the first
  /// value that it does not fit ends.
  [[nodiscard]] static ValueCode of(const CooTensor& x, const Context& context);

  /// Whether it loses nothing of some thousand values of a tensor, all over it: a code that was found for another
  /// tensor hardly does.
  [[nodiscard]] bool suits(const CooTensor& x) const;

  [[nodiscard]] bool is_whole() const noexcept { return bytes < sizeof(float); }
  bool operator==(const ValueCode&) const = default;
};

/// A number that has no room for fractions is added to x, |x| < 2^51: what is left is the whole number next to it, in
/// two's complement in the low bits. No call, no branch.
[[nodiscard]] inline double whole_to_bits(double x) { return x + 0x1.8p52; }
[[nodiscard]] inline double whole_from_bits(double shifted) { return shifted - 0x1.8p52; }

/// The float that stands for a value.
[[nodiscard]] inline float float_code(double value, double divisor) {
  return static_cast<float>(divisor == 1 ? value : whole_from_bits(whole_to_bits(value * divisor)));
}

/// Codes in registers: the low bytes of 32 bits, or the bits of a double. \tparam Code uint64_t if code.bytes is 8,
/// else uint32_t \param value_at the value with a number below count
template <class Code, class ValueAt>
void encode_values(const ValueCode& code, std::size_t count, const ValueAt& value_at, Code* to) {
  const double divisor = code.divisor;
  if constexpr (sizeof(Code) == sizeof(double)) {
    for (std::size_t i = 0; i < count; ++i) to[i] = std::bit_cast<Code>(static_cast<double>(value_at(i)));
  } else if (code.is_whole()) {
    for (std::size_t i = 0; i < count; ++i)
      to[i] =
          static_cast<Code>(std::bit_cast<std::uint64_t>(whole_to_bits(static_cast<double>(value_at(i)) * divisor)));
  } else {
    for (std::size_t i = 0; i < count; ++i)
      to[i] = std::bit_cast<Code>(float_code(static_cast<double>(value_at(i)), divisor));
  }
}

/// An array of values of one code.
class NarrowValues {
 public:
  /// Bytes before the first code and behind the last one. A load of four bytes that ends with the first code begins up
  /// to three before it; the rest keeps codes at multiples of a cache line.
  static constexpr std::size_t padding = 64;

  NarrowValues() = default;
  /// Room for `count` codes, all of which are to be written.
  NarrowValues(const Context& context, const ValueCode& code, std::uint64_t count, std::string_view purpose);

  [[nodiscard]] const ValueCode& code() const noexcept { return code_; }
  /// The first code.
  [[nodiscard]] std::byte* data() noexcept { return bytes_.data() + padding; }
  [[nodiscard]] const std::byte* data() const noexcept { return bytes_.data() + padding; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_.bytes(); }
  /// Of an array of so many.
  [[nodiscard]] static double predicted_bytes(const ValueCode& code, double count) {
    return count * code.bytes + 2.0 * static_cast<double>(padding);
  }

  /// Codes as they come from encode_values, to the places from `first` on.
  template <class Code>
  void put(std::uint64_t first, std::size_t count, const Code* codes) {
    with_width([&]<std::size_t width>(std::integral_constant<std::size_t, width>) {
      std::byte* to = data() + first * width;
      if constexpr (width <= sizeof(Code))
        for (std::size_t i = 0; i < count; ++i, to += width) std::memcpy(to, codes + i, width);
    });
  }

  /// Calls f with the codes, each an array of its bytes: for what moves them about.
  template <class F>
  void visit_codes(const F& f) {
    with_width([&]<std::size_t width>(std::integral_constant<std::size_t, width>) {
      f(reinterpret_cast<std::array<std::byte, width>*>(data()));
    });
  }

  /// Whether they are plain numbers of a type, one after the other.
  template <class Value>
  [[nodiscard]] bool are() const noexcept {
    return code_.bytes == sizeof(Value) && !code_.is_whole() && code_.divisor == 1;
  }
  /// The values from `first` on, to the last bit: where they lie, or in the room. \param room [count]
  template <class Value>
  [[nodiscard]] const Value* get(std::uint64_t first, std::size_t count, Value* room) const {
    if (are<Value>()) return reinterpret_cast<const Value*>(data()) + first;
    with_width([&]<std::size_t width>(std::integral_constant<std::size_t, width>) {
      const std::byte* from = data() + first * width;
      const double divisor = code_.divisor;
      // Numbers first: compilers divide several at a time then.
      std::array<double, 64> numbers;
      for (std::size_t begin = 0; begin < count; begin += numbers.size()) {
        const std::size_t some = std::min(numbers.size(), count - begin);
        for (std::size_t i = 0; i < some; ++i, from += width) numbers[i] = number<width>(from);
        for (std::size_t i = 0; i < some; ++i) room[begin + i] = static_cast<Value>(numbers[i] / divisor);
      }
    });
    return room;
  }

 private:
  /// Calls f with the bytes of a code as a constant.
  template <class F>
  void with_width(const F& f) const {
    switch (code_.bytes) {
      case 1:
        return f(std::integral_constant<std::size_t, 1>());
      case 2:
        return f(std::integral_constant<std::size_t, 2>());
      case 3:
        return f(std::integral_constant<std::size_t, 3>());
      case 4:
        return f(std::integral_constant<std::size_t, 4>());
      default:
        return f(std::integral_constant<std::size_t, 8>());
    }
  }
  /// A code as a number. Of a whole number the last byte is the highest of four that are loaded: there is padding
  /// before the first one.
  template <std::size_t width>
  [[nodiscard]] static double number(const std::byte* from) {
    if constexpr (width == sizeof(double)) {
      return read<double>(from);
    } else if constexpr (width == sizeof(float)) {
      return static_cast<double>(read<float>(from));
    } else {
      return static_cast<double>(read<std::int32_t>(from - (sizeof(std::int32_t) - width)) >> (32 - 8 * width));
    }
  }
  template <class Number>
  [[nodiscard]] static Number read(const std::byte* from) {
    Number n;
    std::memcpy(&n, from, sizeof n);
    return n;
  }

  static_assert(std::endian::native == std::endian::little, "codes are the low bytes of a number");
  ValueCode code_;
  Buffer<std::byte> bytes_;  // [padding + count * code_.bytes + padding]
};

}  // namespace polyad
