// SPDX-License-Identifier: MIT
#include "core/narrow_values.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <optional>
#include <variant>
#include <vector>

#include "backends/cpu/threads.hpp"

namespace polyad {

namespace {

constexpr std::uint64_t block = 4096;
constexpr double largest_divisor = 1e6;

/// Calls holds(begin, end, rank) for blocks of nonzeros until one of them says no.
template <class Holds>
bool holds_for_all(std::uint64_t nnz, const Context& context, const Holds& holds) {
  std::atomic<bool> all{true};
  cpu::for_each_chunk(context.thread_count(), (nnz + block - 1) / block, [&](std::uint64_t c, int rank) {
    if (!all.load(std::memory_order_relaxed)) return;
    if (!holds(c * block, std::min(nnz, (c + 1) * block), rank)) all.store(false, std::memory_order_relaxed);
  });
  return all;
}

/// Of a number, to compare with ==: a negative zero is another value than zero.
template <class Value>
auto bits_of(Value v) {
  return std::bit_cast<std::conditional_t<sizeof(Value) == 4, std::uint32_t, std::uint64_t>>(v);
}

/// What whole numbers that stand for values have in bits.
struct WholeBits {
  std::uint64_t different = 0;               // not 0 if one of them divided is not the value
  std::array<std::uint64_t, 3> beyond = {};  // not 0 if one of them needs more than 1, 2, 3 bytes

  void add(const WholeBits& other) {
    different |= other.different;
    for (std::size_t b = 0; b < beyond.size(); ++b) beyond[b] |= other.beyond[b];
  }
};

/// Without branches, and with nothing but what every processor's vectors can.
template <class Value>
WholeBits whole_bits(const Value* values, std::size_t count, double divisor) {
  const std::uint64_t zero = bits_of(whole_to_bits(0));
  decltype(bits_of(Value{})) different = 0;
  std::uint64_t beyond[3] = {};
  for (std::size_t k = 0; k < count; ++k) {
    const double shifted = whole_to_bits(static_cast<double>(values[k]) * divisor);
    different |= bits_of(static_cast<Value>(whole_from_bits(shifted) / divisor)) ^ bits_of(values[k]);
    const std::uint64_t code = bits_of(shifted) - zero;
    beyond[0] |= (code + (1U << 7U)) >> 8U;
    beyond[1] |= (code + (1U << 15U)) >> 16U;
    beyond[2] |= (code + (1U << 23U)) >> 24U;
  }
  return {different, {beyond[0], beyond[1], beyond[2]}};
}

/// The bytes of the whole numbers that have to be divided by `divisor` to be the values, if there are such.
template <class Value>
std::optional<std::uint32_t> whole_bytes(const Buffer<Value>& values, double divisor, const Context& context) {
  std::vector<WholeBits> of_threads(static_cast<std::size_t>(context.thread_count()));
  const bool whole = holds_for_all(values.size(), context, [&](std::uint64_t begin, std::uint64_t end, int rank) {
    WholeBits& bits = of_threads[static_cast<std::size_t>(rank)];
    bits.add(whole_bits(values.data() + begin, end - begin, divisor));
    return bits.different == 0 && bits.beyond[2] == 0;
  });
  if (!whole) return std::nullopt;
  WholeBits all = {};
  for (const WholeBits& bits : of_threads) all.add(bits);
  return all.beyond[0] == 0 ? 1U : all.beyond[1] == 0 ? 2U : 3U;
}

/// Whether floats divided by `divisor` are the values.
bool floats_give(const Buffer<double>& values, double divisor, const Context& context) {
  constexpr double most = 1U << 24U;  // whole numbers up to it are floats
  constexpr double least = std::numeric_limits<float>::min();
  return holds_for_all(values.size(), context, [&](std::uint64_t begin, std::uint64_t end, int) {
    bool here = true;
    for (std::uint64_t k = begin; k < end; ++k) {
      const double v = values[k];
      const auto code = static_cast<double>(float_code(v, divisor));
      // Kernels may take subnormal numbers for zeros.
      here &= bits_of(code / divisor) == bits_of(v) &&
              (divisor == 1 ? v == 0 || std::abs(v) >= least : std::abs(v * divisor) <= most);
    }
    return here;
  });
}

template <class Value>
ValueCode narrowest_code(const Buffer<Value>& values, const Context& context) {
  for (double divisor = 1; divisor <= largest_divisor; divisor *= 10)
    if (const auto bytes = whole_bytes(values, divisor, context)) return {*bytes, divisor};
  if constexpr (std::is_same_v<Value, double>) {
    for (double divisor = 1; divisor <= largest_divisor; divisor *= 10)
      if (floats_give(values, divisor, context)) return {sizeof(float), divisor};
  }
  return {sizeof(Value), 1};
}

}  // namespace

ValueCode ValueCode::of(const CooTensor& x, const Context& context) {
  return std::visit([&](const auto& values) { return narrowest_code(values, context); }, x.values);
}

bool ValueCode::suits(const CooTensor& x) const {
  if (bytes > bytes_of(x.precision())) return false;
  return std::visit(
      [&]<class Value>(const Buffer<Value>& values) {
        const std::uint64_t step = values.size() / 4096 + 1;
        for (std::uint64_t k = 0; k < values.size(); k += step) {
          const Value v = values[k];
          if (is_whole()) {
            const WholeBits bits = whole_bits(&v, 1, divisor);
            if (bits.different != 0 || bits.beyond[bytes - 1] != 0) return false;
          } else if (bytes == sizeof(float)) {
            if (bits_of(static_cast<Value>(static_cast<double>(float_code(static_cast<double>(v), divisor)) /
                                           divisor)) != bits_of(v))
              return false;
          }
        }
        return true;
      },
      x.values);
}

NarrowValues::NarrowValues(const Context& context, const ValueCode& code, std::uint64_t count, std::string_view purpose)
    : code_(code), bytes_(context, count * code.bytes + 2 * padding, purpose, Paging::plain, Content::any) {
  std::fill_n(bytes_.data(), padding, std::byte{0});
  std::fill_n(data() + count * code.bytes, padding, std::byte{0});
}

}  // namespace polyad
