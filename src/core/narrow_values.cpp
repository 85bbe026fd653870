// SPDX-License-Identifier: MIT
#include "core/narrow_values.hpp"

#include <algorithm>
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

template <class Value>
bool same_bits(Value a, Value b) {  // a negative zero is another value
  using Bits = std::conditional_t<sizeof(Value) == 4, std::uint32_t, std::uint64_t>;
  return std::bit_cast<Bits>(a) == std::bit_cast<Bits>(b);
}

/// The bytes of the whole numbers that have to be divided by `divisor` to be the values, if there are such.
template <class Value>
std::optional<std::uint32_t> whole_bytes(const Buffer<Value>& values, double divisor, const Context& context) {
  constexpr double most = (1U << 23U) - 1;
  std::vector<double> largest(static_cast<std::size_t>(context.thread_count()), 0.0);  // absolute code, of each thread
  const bool whole = holds_for_all(values.size(), context, [&](std::uint64_t begin, std::uint64_t end, int rank) {
    bool here = true;
    double top = 0;
    for (std::uint64_t k = begin; k < end; ++k) {
      const double code = nearest_whole(static_cast<double>(values[k]) * divisor);
      here &= same_bits(static_cast<Value>(code / divisor), values[k]) && std::abs(code) <= most;
      top = std::max(top, std::abs(code));
    }
    largest[static_cast<std::size_t>(rank)] = std::max(largest[static_cast<std::size_t>(rank)], top);
    return here;
  });
  if (!whole) return std::nullopt;
  const double top = *std::ranges::max_element(largest);
  return top <= std::numeric_limits<std::int8_t>::max()    ? 1U
         : top <= std::numeric_limits<std::int16_t>::max() ? 2U
                                                           : 3U;
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
      here &= same_bits(code / divisor, v) &&
              (divisor == 1 ? v == 0 || std::abs(v) >= least : std::abs(v * divisor) <= most);
    }
    return here;
  });
}

}  // namespace

ValueCode ValueCode::of(const CooTensor& x, const Context& context) {
  return std::visit(
      [&]<class Value>(const Buffer<Value>& values) {
        for (double divisor = 1; divisor <= largest_divisor; divisor *= 10)
          if (const auto bytes = whole_bytes(values, divisor, context)) return ValueCode{*bytes, divisor};
        if constexpr (std::is_same_v<Value, double>) {
          for (double divisor = 1; divisor <= largest_divisor; divisor *= 10)
            if (floats_give(values, divisor, context)) return ValueCode{sizeof(float), divisor};
        }
        return ValueCode{sizeof(Value), 1};
      },
      x.values);
}

NarrowValues::NarrowValues(const Context& context, const ValueCode& code, std::uint64_t count, std::string_view purpose)
    : code_(code), bytes_(context, count * code.bytes + 2 * padding, purpose, Paging::plain, Content::any) {
  std::fill_n(bytes_.data(), padding, std::byte{0});
  std::fill_n(data() + count * code.bytes, padding, std::byte{0});
}

}  // namespace polyad
