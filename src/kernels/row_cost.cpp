// SPDX-License-Identifier: MIT
/// \file Measures what the planner counts in: rows read from and added to tables of several sizes, at places that
/// nothing predicts, requested ahead as the kernels do.
#include "core/row_cost.hpp"

#include "backends/cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/row_cost.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <chrono>

#include "backends/cpu/threads.hpp"
#include "kernels/mttkrp/rows-inl.hpp"
#include "polyad/buffer.hpp"

HWY_BEFORE_NAMESPACE();
namespace polyad::HWY_NAMESPACE {

constexpr std::size_t ahead = 32;
constexpr std::uint64_t columns = 16;  // floats of a cache line

float read_rows(const float* table, const std::uint32_t* rows, std::size_t count) {
  using Row = Cols<float, columns>;
  Row even = Row::zero();
  Row odd = Row::zero();
  for (std::size_t i = 0; i + 1 < count; i += 2) {
    prefetch_row<float, columns>(table + rows[i + ahead] * columns);
    prefetch_row<float, columns>(table + rows[i + ahead + 1] * columns);
    even.add_scaled(1.5F, table + rows[i] * columns);
    odd.add_scaled(1.5F, table + rows[i + 1] * columns);
  }
  even.add(odd);
  alignas(64) float sums[columns];
  even.store(sums);
  return sums[0];
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
HWY_EXPORT(add_rows);

RowCost RowCost::measured(const Context& context) {
  // More than a cache of 32 MB holds: what a round leaves there is of no use to the next.
  constexpr std::size_t rows_each = std::size_t{1} << 19U;
  const int threads = context.thread_count();
  const auto team = static_cast<std::size_t>(threads);
  Buffer<float> all(context, static_cast<std::size_t>(table.back()) / sizeof(float), "measuring the machine");
  Buffer<std::uint32_t> places(context, team * (rows_each + 64), "measuring the machine");
  std::fill(all.begin(), all.end(), 1.0F);
  std::vector<float> sink(team);
  const auto seconds = [](const auto& f) {
    double best = 1e30;
    for (int round = 0; round < 6; ++round) {  // others may use the caches in one of them
      const auto begin = std::chrono::steady_clock::now();
      f();
      best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    return best;
  };
  RowCost cost;
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
      return seconds([&] {
               cpu::run_team(threads, [&](int rank, int) {
                 const auto t = static_cast<std::size_t>(rank);
                 body(t, places.data() + t * (rows_each + 64));
               });
             }) *
             1e9 / static_cast<double>(rows_each);
    };
    draw(0, rows);
    cost.read[size] = on_team([&](std::size_t t, const std::uint32_t* at) {
      sink[t] = HWY_DYNAMIC_DISPATCH(read_rows)(all.data(), at, rows_each);
    });
    draw(part, part);
    cost.add[size] = on_team([&](std::size_t, const std::uint32_t* at) {
      HWY_DYNAMIC_DISPATCH(add_rows)(all.data(), at, rows_each);
    });
  }
  const std::size_t half = all.size() / 2;
  const double copied = seconds([&] {
    cpu::parallel_ranges(threads, half, [&](std::uint64_t b, std::uint64_t e) {
      std::copy(all.data() + b, all.data() + e, all.data() + half + b);
    });
  });
  // Read, written, and read again before it is written.
  cost.stream = 3 * static_cast<double>(half * sizeof(float)) / copied / 1e9 / threads;
  return cost;
}

}  // namespace polyad
#endif
