// SPDX-License-Identifier: MIT
#include "polyad/statistics.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "backends/cpu/threads.hpp"
#include "core/group_sizes.hpp"

namespace polyad {

namespace {

// A sum that carries its rounding errors along (Knuth's TwoSum; Ogita, Rump, Oishi 2005, "Accurate sum and dot
// product", Sum2): as if computed in twice the precision, then rounded. It costs nothing here: memory is the limit.
struct Accurate {
  double sum = 0;
  double error = 0;

  void add(double x) {
    const double t = sum + x;
    const double z = t - sum;
    error += (sum - (t - z)) + (x - z);
    sum = t;
  }
  void add(const Accurate& other) {
    add(other.sum);
    error += other.error;
  }
  // After an overflow the error is NaN and means nothing.
  [[nodiscard]] double value() const { return std::isfinite(sum + error) ? sum + error : sum; }
};

struct ValueSums {
  Accurate sum;
  Accurate squares;  // of scale * value
  double min = std::numeric_limits<double>::infinity();
  double max = -std::numeric_limits<double>::infinity();
  std::uint64_t zeros = 0;

  void add(const ValueSums& other) {
    sum.add(other.sum);
    squares.add(other.squares);
    min = std::min(min, other.min);
    max = std::max(max, other.max);
    zeros += other.zeros;
  }
};

// Four lanes, so that SSE2 has two vectors of each and the chain of additions is not the limit.
template <class Value>
ValueSums sum_block(const Value* values, std::size_t n, double scale) {
  constexpr std::size_t lanes = 4;
  std::array<ValueSums, lanes> lane;
  const auto add = [&](ValueSums& s, Value value) {
    const auto v = static_cast<double>(value);
    s.sum.add(v);
    s.squares.add((scale * v) * (scale * v));
    s.min = v < s.min ? v : s.min;
    s.max = v > s.max ? v : s.max;
    s.zeros += v == 0 ? 1 : 0;
  };
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (std::size_t l = 0; l < lanes; ++l) add(lane[l], values[i + l]);
  for (; i < n; ++i) add(lane[i % lanes], values[i]);
  for (std::size_t l = 1; l < lanes; ++l) lane[0].add(lane[l]);
  return lane[0];
}

// In blocks of a fixed size, added up in their order: the same bits for any number of threads.
template <class Value>
ValueSums sum_values(const Value* values, std::uint64_t n, double scale, int threads) {
  constexpr std::uint64_t block = 1U << 15U;
  std::vector<ValueSums> sums((n + block - 1) / block);
  cpu::parallel_ranges(
      threads, sums.size(),
      [&](std::uint64_t begin, std::uint64_t end) {
        for (std::uint64_t b = begin; b < end; ++b)
          sums[b] = sum_block(values + b * block, std::min(block, n - b * block), scale);
      },
      1);
  ValueSums total;
  for (const ValueSums& s : sums) total.add(s);
  return total;
}

template <class Value>
void describe_values(const Value* values, std::uint64_t n, int threads, TensorStatistics& s) {
  const ValueSums sums = sum_values(values, n, 1.0, threads);
  s.sum = sums.sum.value();
  s.min = sums.min;
  s.max = sums.max;
  s.zeros = sums.zeros;
  const double largest = std::max(std::abs(sums.min), std::abs(sums.max));
  // Squares overflow above sqrt(2^1023 / n), n < 2^64. Below 2^-400 they lose digits; a value that is small next to the
  // largest may lose them all, for its share of the norm is less than 2^-200.
  const bool safe = (largest >= std::ldexp(1.0, -400) && largest <= std::ldexp(1.0, 479)) || largest == 0;
  if (safe || !std::isfinite(largest)) {
    s.norm = std::sqrt(sums.squares.value());
    return;
  }
  const int exponent = std::clamp(std::ilogb(largest), -1000, 1000);
  const ValueSums scaled = sum_values(values, n, std::ldexp(1.0, -exponent), threads);
  s.norm = std::ldexp(std::sqrt(scaled.squares.value()), exponent);
}

// nnz / product of dims, with the product's exponent apart: 32 dims of 64 bits are 2048 bits.
double density(std::uint64_t nnz, std::span<const std::uint64_t> dims) {
  double product = 1;
  int exponent = 0;
  for (const std::uint64_t d : dims) {
    int e = 0;
    product = std::frexp(product * static_cast<double>(d), &e);
    exponent += e;
  }
  return product == 0 ? 0.0 : std::ldexp(static_cast<double>(nnz) / product, -exponent);
}

}  // namespace

TensorStatistics statistics(const CooTensor& x, const Context& context) {
  TensorStatistics s;
  const std::uint64_t nnz = x.nnz();
  const auto order = x.dims.size();
  s.modes.resize(order);
  for (std::size_t m = 0; m < order; ++m) s.modes[m].dim = x.dims[m];
  if (nnz == 0) return s;

  s.density = density(nnz, x.dims);
  std::visit([&](const auto& values) { describe_values(values.data(), nnz, context.thread_count(), s); }, x.values);

  const GroupCounter groups(x, context);
  std::vector<int> all(order);
  std::iota(all.begin(), all.end(), 0);
  const std::uint64_t passes = 2 * order + 1;
  std::uint64_t done = 0;
  const auto count = [&](std::span<const int> modes) {
    context.report({"counting slices and fibres", done++, passes, "passes"});
    return groups.count(modes);
  };
  for (std::size_t m = 0; m < order; ++m) s.modes[m].slices = count(std::span(all).subspan(m, 1)).statistics();
  for (std::size_t m = 0; m < order; ++m) {
    if (order == 2) {  // a fibre of a matrix is a slice of the other mode
      s.modes[m].fibres = s.modes[1 - m].slices;
      continue;
    }
    std::vector<int> others = all;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(m));
    s.modes[m].fibres = count(others).statistics();
  }
  if (!x.duplicates_merged) s.duplicates = nnz - count(all).count;
  context.report({"counting slices and fibres", passes, passes, "passes"});
  return s;
}

}  // namespace polyad
