// SPDX-License-Identifier: MIT
/// \file Measures what the planner counts in: rows read from and added to tables of several sizes, at places that
/// nothing predicts, requested ahead as the kernels do.
#include "core/row_cost.hpp"

#include "backends/cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/row_cost.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "backends/cpu/threads.hpp"
#include "kernels/mttkrp/rows-inl.hpp"
#include "polyad/buffer.hpp"
#include "polyad/machine.hpp"

HWY_BEFORE_NAMESPACE();
namespace polyad::HWY_NAMESPACE {

constexpr std::size_t ahead = 32;
constexpr std::uint64_t columns = 16;  // floats of a cache line

/// Rows of one cache line or two: C columns.
template <int C>
float read_rows_of(const float* table, const std::uint32_t* rows, std::size_t count) {
  using Row = Cols<float, C>;
  Row even = Row::zero();
  Row odd = Row::zero();
  for (std::size_t i = 0; i + 1 < count; i += 2) {
    prefetch_row<float, C>(table + std::uint64_t{rows[i + ahead]} * C);
    prefetch_row<float, C>(table + std::uint64_t{rows[i + ahead + 1]} * C);
    even.add_scaled(1.5F, table + std::uint64_t{rows[i]} * C);
    odd.add_scaled(1.5F, table + std::uint64_t{rows[i + 1]} * C);
  }
  even.add(odd);
  alignas(64) float sums[C];
  even.store(sums);
  return sums[0];
}

float read_rows(const float* table, const std::uint32_t* rows, std::size_t count) {
  return read_rows_of<16>(table, rows, count);
}
float read_double_rows(const float* table, const std::uint32_t* rows, std::size_t count) {
  return read_rows_of<32>(table, rows, count);
}

/// Products of two rows, of two tables side by side, and a value, as copies sum them (RowPass): no requests ahead,
/// several sums. \param values [count]
float multiply_rows(const float* table, std::uint64_t rows_each, const std::uint32_t* rows, const float* values,
                    std::size_t count) {
  using Row = Cols<float, columns>;
  constexpr std::size_t sums = Row::vectors == 1 ? 4 : Row::vectors == 2 ? 2 : 1;
  const float* second = table + rows_each * columns;
  Row sum[sums];
  for (Row& s : sum) s = Row::zero();
  for (std::size_t i = 0; i + sums <= count; i += sums)
    for (std::size_t k = 0; k < sums; ++k) {
      Row product = Row::all(values[i + k]);
      product.times(table + rows[i + k] * columns);
      sum[k].add_product(product, second + rows[i + k + 1] * columns);
    }
  for (std::size_t k = 1; k < sums; ++k) sum[0].add(sum[k]);
  alignas(64) float out[columns];
  sum[0].store(out);
  return out[0];
}

void add_rows(float* table, const std::uint32_t* rows, std::size_t count) {
  using Row = Cols<float, columns>;
  const Row one = Row::all(1.0F);
  for (std::size_t i = 0; i < count; ++i) {
    prefetch_row_to_write<float, columns>(table + rows[i + ahead] * columns);
    one.add_to(table + rows[i] * columns);
  }
}

}  // namespace polyad::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyad {

HWY_EXPORT(read_rows);
HWY_EXPORT(read_double_rows);
HWY_EXPORT(multiply_rows);
HWY_EXPORT(add_rows);

namespace {

/// What the calling thread has had of a processor.
double thread_seconds() {
  timespec t = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

}  // namespace

RowCost RowCost::measured(const Context& context) {
  // More than a cache of 32 MB holds: what a round leaves there is of no use to the next.
  constexpr std::size_t rows_each = std::size_t{1} << 19U;
  const int threads = context.thread_count();
  const auto team = static_cast<std::size_t>(threads);
  Buffer<float> all(context, static_cast<std::size_t>(table.back()) / sizeof(float), "measuring the machine");
  Buffer<std::uint32_t> places(context, team * (rows_each + 64), "measuring the machine");
  std::fill(all.begin(), all.end(), 1.0F);
  std::vector<float> sink(team);
  std::vector<double> busy(team);
  // By the clock of each thread, the slowest in the best of six rounds: others may use the processor or the caches in
  // some. By the clock on the wall two compilers beside it made everything up to 20 times as slow, and it is
  // remembered.
  const auto seconds = [&](const auto& body) {
    double best = 1e30;
    for (int round = 0; round < 6; ++round) {
      cpu::run_team(threads, [&](int rank, int size) {
        const double begin = thread_seconds();
        body(rank, size);
        busy[static_cast<std::size_t>(rank)] = thread_seconds() - begin;
      });
      best = std::min(best, *std::ranges::max_element(busy));
    }
    return best;
  };
  RowCost cost;
  std::array<double, sizes> both_lines = {};  // reading rows of two lines
  constexpr double streams_table = 6e6;
  static_assert(std::ranges::count(table, streams_table) == 1);
  for (std::size_t size = 0; size < table.size(); ++size) {
    const auto rows = static_cast<std::uint64_t>(table[size]) / 64;
    const std::uint64_t part = std::max<std::uint64_t>(1, rows / team);  // what one thread adds to
    const auto draw = [&](std::uint64_t first_of_rank, std::uint64_t among) {
      cpu::run_team(threads, [&](int rank, int) {
        const auto t = static_cast<std::size_t>(rank);
        std::uint64_t state = t + 1;
        for (std::size_t i = 0; i < rows_each + 64; ++i) {
          state = state * 6364136223846793005U + 1442695040888963407U;  // Knuth's MMIX
          places[t * (rows_each + 64) + i] = static_cast<std::uint32_t>(t * first_of_rank + (state >> 33U) % among);
        }
      });
    };
    const auto on_team = [&](const auto& body) {
      return seconds([&](int rank, int) {
               const auto t = static_cast<std::size_t>(rank);
               body(t, places.data() + t * (rows_each + 64));
             }) *
             1e9 / static_cast<double>(rows_each);
    };
    draw(0, rows);
    cost.read[size] = on_team([&](std::size_t t, const std::uint32_t* at) {
      sink[t] = HWY_DYNAMIC_DISPATCH(read_rows)(all.data(), at, rows_each);
    });
    draw(0, std::max<std::uint64_t>(1, rows / 2));
    both_lines[size] = on_team([&](std::size_t t, const std::uint32_t* at) {
      sink[t] = HWY_DYNAMIC_DISPATCH(read_double_rows)(all.data(), at, rows_each);
    });
    const auto multiply = [&](const auto& values_of) {
      std::vector<std::size_t> rounds(team);
      return 0.5 * on_team([&](std::size_t t, const std::uint32_t* at) {
               sink[t] =
                   HWY_DYNAMIC_DISPATCH(multiply_rows)(all.data(), rows / 2, at, values_of(t, rounds[t]++), rows_each);
             });
    };
    // The values of a round lie where those of the one before did, or elsewhere, behind the tables.
    const float* last_values = all.data() + all.size() - rows_each;
    cost.pair[size] = multiply([&](std::size_t, std::size_t) { return last_values; });
    if (table[size] == streams_table && all.bytes() > last_cache_bytes()) {
      const std::size_t places_of_values = all.size() / rows_each / 2;
      const double far = multiply([&](std::size_t t, std::size_t round) {
        return last_values - (round * team + t) % places_of_values * rows_each;
      });
      cost.among_streams = std::clamp(far / cost.pair[size], 1.0, 2.0);
    }
    draw(part, part);
    cost.add[size] = on_team([&](std::size_t, const std::uint32_t* at) {
      HWY_DYNAMIC_DISPATCH(add_rows)(all.data(), at, rows_each);
    });
  }
  // No table costs more than a larger one: where it did, others were at work.
  for (std::size_t size = table.size() - 1; size-- > 0;) {
    cost.read[size] = std::min(cost.read[size], cost.read[size + 1]);
    cost.pair[size] = std::min(cost.pair[size], cost.pair[size + 1]);
    cost.add[size] = std::min(cost.add[size], cost.add[size + 1]);
    both_lines[size] = std::min(both_lines[size], both_lines[size + 1]);
  }
  for (std::size_t size = 0; size < table.size(); ++size)
    cost.next[size] = std::max(0.02, both_lines[size] - cost.read[size]);
  const std::size_t half = all.size() / 2;
  const double copied = seconds([&](int rank, int size) {
    const cpu::Share s = cpu::share_of(half, rank, size);
    std::copy(all.data() + s.begin, all.data() + s.end, all.data() + half + s.begin);
  });
  // Read and written: so much is copied past the caches, and not read again before it is written.
  cost.stream = 2 * static_cast<double>(half * sizeof(float)) / copied / 1e9 / threads;
  // What a cache holds as a whole says nothing of the memory behind it (Emerald Rapids, 260 MB: 36 to 41 bytes a
  // nanosecond and thread, where STREAM gives 16).
  if (all.bytes() <= last_cache_bytes()) cost.stream = std::min(cost.stream, RowCost{}.stream);
  return cost;
}

}  // namespace polyad
#endif
