// SPDX-License-Identifier: MIT
#include "formats/flycoo/flycoo.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <polyad/polyad.hpp>

#include "matrix/cases.hpp"
#include "oracle/kernel_oracle.hpp"

namespace polyad {
namespace {

Context with_threads(int threads, bool deterministic = false) {
  Context context;
  context.threads = threads;
  context.deterministic = deterministic;
  return context;
}

CooTensor some_tensor(std::vector<std::uint64_t> dims, std::uint64_t nnz, Precision precision = Precision::f64) {
  return cases::make({"", std::move(dims), nnz, nullptr, true}, precision);
}

/// Values 0, 1, 2, ... tell the nonzeros apart.
CooTensor numbered(CooTensor x) {
  double* values = std::get<Buffer<double>>(x.values).data();
  std::iota(values, values + x.nnz(), 0.0);
  return x;
}

template <class Index>
std::vector<std::uint64_t> numbers_in_order(const Flycoo& f) {
  std::vector<std::uint64_t> numbers;
  NonzeroBlock<Index, double> block(f.shape().order());
  for (std::uint64_t k = 0; k < f.shape().nnz; ++k) {
    f.decode(k, 1, block);
    numbers.push_back(static_cast<std::uint64_t>(static_cast<std::int64_t>(block.values[0])));  // some are negative
  }
  return numbers;
}

// ---- who computes what ----

std::uint64_t best_possible(const std::vector<std::uint64_t>& sizes, std::vector<std::uint64_t>& loads, std::size_t job,
                            std::uint64_t best) {
  if (job == sizes.size()) return std::min(best, *std::max_element(loads.begin(), loads.end()));
  for (std::uint64_t& load : loads) {
    if (load + sizes[job] >= best) continue;
    load += sizes[job];
    best = best_possible(sizes, loads, job + 1, best);
    load -= sizes[job];
  }
  return best;
}

TEST(LargestFirst, ReachesGrahamsBoundOnItsWorstCase) {
  for (std::uint64_t m = 2; m <= 12; ++m) {  // 2m-1, 2m-1, 2m-2, 2m-2, .., m+1, m+1, m, m, m: the optimum is 3m
    std::vector<std::uint64_t> sizes = {m};
    for (std::uint64_t s = m; s < 2 * m; ++s) sizes.insert(sizes.end(), 2, s);
    const std::vector<std::uint64_t> loads = greedy_loads(sizes, m);
    EXPECT_EQ(*std::max_element(loads.begin(), loads.end()), 4 * m - 1);
    EXPECT_EQ(std::accumulate(loads.begin(), loads.end(), std::uint64_t{0}), 3 * m * m);
  }
}

TEST(LargestFirst, StaysWithinGrahamsBound) {
  cases::Dice dice(3);
  for (int round = 0; round < 300; ++round) {
    const std::size_t bins = 2 + dice.below(3);
    std::vector<std::uint64_t> sizes(1 + dice.below(9));
    for (std::uint64_t& s : sizes) s = dice.below(2) == 0 ? dice.below(20) : dice.below(1000);
    const std::vector<std::uint64_t> loads = greedy_loads(sizes, bins);
    std::vector<std::uint64_t> none(bins);
    const std::uint64_t sum = std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
    const std::uint64_t best = best_possible(sizes, none, 0, sum + 1);
    EXPECT_EQ(std::accumulate(loads.begin(), loads.end(), std::uint64_t{0}), sum);
    EXPECT_LE(*std::max_element(loads.begin(), loads.end()) * 3 * bins, (4 * bins - 1) * best);
  }
}

TEST(LargestFirst, KeepsTheOrderOfEqualJobs) {
  const std::vector<std::uint64_t> sizes = {3, 9, 3, 12, 9};
  EXPECT_EQ(largest_first(sizes), (std::vector<std::uint32_t>{3, 1, 4, 0, 2}));
}

// ---- indices to super-shards ----

TEST(SuperShardMap, CutsAModeIntoEqualRanges) {
  for (const std::uint64_t dim : {1ULL, 2ULL, 3ULL, 7ULL, 100ULL, 1717ULL, 65536ULL}) {
    for (std::uint64_t count = 1; count <= std::min<std::uint64_t>(dim, 130); ++count) {
      const SuperShardMap map(dim, count);
      for (std::uint64_t i = 0; i<dim; i += dim> 2000 ? 37 : 1) {
        ASSERT_EQ(map(static_cast<std::uint32_t>(i)), i * count / dim) << dim << " " << count << " " << i;
        ASSERT_EQ(map(i), i * count / dim);
      }
      for (std::uint64_t s = 0; s < count; ++s) {
        const std::uint64_t rows = map.first_row(s + 1) - map.first_row(s);
        ASSERT_LE(rows, (dim + count - 1) / count);
        ASSERT_GE(rows, dim / count);
      }
    }
  }
}

TEST(SuperShardMap, CutsTheLongestModes) {
  for (const std::uint64_t dim : {std::uint64_t{0xffffffff}, std::uint64_t{1} << 32U, std::uint64_t{3} << 40U,
                                  ~std::uint64_t{0}, ~std::uint64_t{0} - 12345}) {
    for (const std::uint64_t count : {1ULL, 2ULL, 3ULL, 16ULL, 1000ULL, 4097ULL}) {
      const SuperShardMap map(dim, count);
      EXPECT_EQ(map(std::uint64_t{0}), 0U);
      EXPECT_EQ(map(dim - 1), count - 1) << dim << " " << count;
      for (std::uint64_t s = 1; s < count; s += 1 + count / 50) {
        const std::uint64_t first = map.first_row(s);
        EXPECT_EQ(map(first), s);
        EXPECT_EQ(map(first - 1), s - 1);
        EXPECT_NEAR(static_cast<double>(first) / static_cast<double>(dim),
                    static_cast<double>(s) / static_cast<double>(count), 1e-9);
      }
    }
  }
}

// ---- parameters ----

TEST(FlycooParameters, SatisfyTheEquations) {
  const CooTensor x = some_tensor({120000, 30, 3, 1}, 300000, Precision::f32);
  for (const std::uint64_t threads : {1, 2, 7, 16})
    for (const std::uint64_t cache : {8U << 20U, 32U << 20U, 320U << 20U})
      for (const std::uint64_t rank : {1, 16, 64}) {
        const FlycooParameters p = flycoo_parameters(x, {cache, threads}, 20, {.rank = rank}, {});
        const std::uint64_t g = p.shard_nonzeros;
        EXPECT_GE(g, 1024U);
        EXPECT_LE(g, 32768U);
        for (std::size_t m = 0; m < x.dims.size(); ++m) {
          const std::uint64_t k = p.super_shards[m];
          if (x.dims[m] <= threads) {
            EXPECT_EQ(k, x.dims[m]);  // m_n = 1
            continue;
          }
          EXPECT_EQ(k % threads, 0U) << k;  // (2)
          const std::uint64_t rows = (x.dims[m] + k - 1) / k;
          EXPECT_LE(rows, 16000U);
          const std::uint64_t row_bytes = 4 * padded_columns(rank);
          const std::uint64_t need = (row_bytes * rows + 20 * g) * threads + 8 * x.nnz() / g;  // (3)
          if (rows > 1000) {
            EXPECT_LE(2 * need, cache) << rows;
          }
        }
      }
}

TEST(FlycooParameters, BalanceASkewedMode) {
  CooTensor x = some_tensor({4000, 50, 60}, 40000);  // two thirds of the nonzeros in the first quarter of mode 1
  auto* index = std::get<Buffer<std::uint32_t>>(x.indices[0]).data();
  for (std::uint64_t k = 0; k < x.nnz(); ++k)
    if (k % 3 != 0) index[k] /= 4;
  const Flycoo f = Flycoo::build(x, {}, with_threads(2));
  std::vector<std::uint64_t> sizes;
  const Flycoo::Mode& mode = f.modes[0];
  for (std::size_t s = 0; s < mode.map.count(); ++s) sizes.push_back(mode.begin[s + 1] - mode.begin[s]);
  const std::vector<std::uint64_t> loads = greedy_loads(sizes, 2);
  EXPECT_GT(sizes.size(), 2U);
  EXPECT_LE(static_cast<double>(std::max(loads[0], loads[1])), 1.04 * 20000);
}

TEST(FlycooParameters, FollowTheOptions) {
  const CooTensor x = some_tensor({100, 200, 30}, 5000);
  const Flycoo f = Flycoo::build(x, {.shard_nonzeros = 7, .supershard_rows = 25}, with_threads(3));
  EXPECT_EQ(f.shard_nonzeros, 7U);
  EXPECT_EQ(f.modes[0].map.count(), 4U);
  EXPECT_EQ(f.modes[1].map.count(), 8U);
  EXPECT_EQ(f.modes[2].map.count(), 2U);
  EXPECT_EQ(f.modes[1].first_row[3], 75U);
}

// ---- remapping ----

template <class Index>
void check_remaps(const CooTensor& x, const FormatOptions& options, int threads) {
  const Context context = with_threads(threads);
  Flycoo f = Flycoo::build(x, options, context);
  ASSERT_EQ(f.mode, 0);
  std::vector<std::vector<std::uint64_t>> orders;
  for (int step = 0; step < 2 * x.order() + 1; ++step) {
    const int mode = step % x.order();
    f.bring_to(mode, context);
    const Flycoo::Mode& partition = f.partition(mode);
    const std::vector<std::uint64_t> order = numbers_in_order<Index>(f);
    std::vector<std::uint64_t> sorted = order;
    std::sort(sorted.begin(), sorted.end());
    for (std::uint64_t k = 0; k < x.nnz(); ++k) ASSERT_EQ(sorted[k], k) << "mode " << mode;  // a permutation
    ASSERT_EQ(partition.begin.back(), x.nnz());
    NonzeroBlock<Index, double> block(x.order());
    for (std::uint64_t s = 0; s < partition.map.count(); ++s)
      for (std::uint64_t k = partition.begin[s]; k < partition.begin[s + 1]; ++k) {
        const std::uint64_t row = x.index(mode, order[k]);
        ASSERT_GE(row, partition.first_row[s]);
        ASSERT_LT(row, partition.first_row[s + 1]);
        f.decode(k, 1, block);
        for (int m = 0; m < x.order(); ++m)
          ASSERT_EQ(*block.indices[static_cast<std::size_t>(m)], x.index(m, order[k]));
      }
    if (step >= x.order()) {
      EXPECT_EQ(order, orders[static_cast<std::size_t>(mode)]);  // the orders repeat
    }
    orders.push_back(order);
  }
}

TEST(FlycooRemap, IsACycleOfPermutations) {
  for (const int threads : {1, 2, 5}) {
    check_remaps<std::uint32_t>(numbered(some_tensor({50, 60, 70}, 3000)), {.supershard_rows = 6}, threads);
    check_remaps<std::uint32_t>(numbered(some_tensor({300, 2}, 1000)), {}, threads);
    check_remaps<std::uint32_t>(numbered(some_tensor({9, 1, 40, 33, 7}, 2000)), {.supershard_rows = 4}, threads);
    check_remaps<std::uint64_t>(numbered(some_tensor({std::uint64_t{1} << 40U, 60, 70}, 1000)), {}, threads);
  }
}

TEST(FlycooRemap, KeepsTheOrderOfTheModeBeforeInsideASuperShard) {
  const CooTensor x = numbered(some_tensor({40, 50, 60}, 2000));
  Flycoo f = Flycoo::build(x, {.supershard_rows = 10}, with_threads(2));
  const std::vector<std::uint64_t> order = numbers_in_order<std::uint32_t>(f);
  const auto shard = [&](int mode, std::uint64_t k) {
    return f.partition(mode).map(static_cast<std::uint32_t>(x.index(mode, order[k])));
  };
  for (std::uint64_t k = 1; k < x.nnz(); ++k) {  // by super-shards of modes 1, 3 and 2, then as they came
    const std::array before = {shard(0, k - 1), shard(2, k - 1), shard(1, k - 1), order[k - 1]};
    const std::array here = {shard(0, k), shard(2, k), shard(1, k), order[k]};
    ASSERT_LT(before, here);
  }
}

TEST(FlycooRemap, DoesNotDependOnTheThreadsWhenDeterministic) {
  const CooTensor x = some_tensor({500, 60, 7}, 70000);
  const Flycoo one = Flycoo::build(x, {}, with_threads(1, true));
  const Flycoo seven = Flycoo::build(x, {}, with_threads(7, true));
  ASSERT_EQ(one.nonzeros().keys.bytes(), x.nnz() * 8);  // 9 + 6 + 3 bits
  EXPECT_TRUE(std::ranges::equal(one.nonzeros().keys, seven.nonzeros().keys));
  EXPECT_EQ(numbers_in_order<std::uint32_t>(one), numbers_in_order<std::uint32_t>(seven));
}

// ---- MTTKRP ----

template <class T>
std::vector<FactorMatrix<T>> factors_for(const CooTensor& x, std::uint64_t rank, const Context& context,
                                         std::vector<oracle::Dense>* dense = nullptr) {
  cases::Dice dice(8);
  std::vector<FactorMatrix<T>> all;
  for (const std::uint64_t d : x.dims) {
    FactorMatrix<T>& f = all.emplace_back(context, d, rank);
    if (dense) dense->emplace_back(d, rank);
    for (std::uint64_t i = 0; i < d; ++i)
      for (std::uint64_t r = 0; r < rank; ++r) {
        f(i, r) = static_cast<T>(dice.below(5)) - 2;
        if (dense) dense->back()(i, r) = static_cast<double>(f(i, r));
      }
  }
  return all;
}

template <class T>
void check_sequence(const CooTensor& x, const FormatOptions& options, const std::vector<int>& sequence) {
  const Context context = with_threads(3);
  Tensor t = build(x, "flycoo", options, context);
  std::vector<oracle::Dense> dense;
  const auto factors = factors_for<T>(x, 10, context, &dense);
  Workspace workspace;
  for (const int mode : sequence) {
    const oracle::Dense want = oracle::mttkrp(x, dense, mode);
    FactorMatrix<T> out(context, want.rows, want.cols);
    std::fill_n(out.data(), out.rows() * out.stride(), T{77});
    mttkrp<T>(t, std::span<const FactorMatrix<T>>(factors), mode, out, workspace, context, "mttkrp/flycoo/remapping");
    for (std::uint64_t i = 0; i < want.rows; ++i)
      for (std::uint64_t r = 0; r < want.cols; ++r) ASSERT_EQ(static_cast<double>(out(i, r)), want(i, r)) << mode;
  }
}

TEST(FlycooMttkrp, IsExactSweepAfterSweepAndInAnySequenceOfModes) {
  for (const std::vector<int>& sequence : {std::vector{0, 1, 2, 0, 1, 2, 0, 1, 2, 0}, std::vector{2, 0, 0, 1, 1, 0}}) {
    check_sequence<float>(some_tensor({90, 80, 70}, 4000, Precision::f32), {.supershard_rows = 9}, sequence);
    check_sequence<double>(some_tensor({90, 80, 70}, 4000), {.shard_nonzeros = 100}, sequence);
    check_sequence<double>(some_tensor({90, 8, 7, 30}, 4000), {}, sequence);
  }
}

TEST(FlycooMttkrp, TakesTwoBuffersAndNothingElse) {
  const CooTensor x = some_tensor({60000, 50000, 7}, 30000);
  Context context = with_threads(4);
  constexpr std::uint64_t rank = 32;
  const std::uint64_t factor_bytes = (60000 + 50000 + 7) * rank * 8;
  const std::uint64_t out_bytes = 60000 * rank * 8;
  const std::uint64_t tensor_bytes = x.nnz() * (3 * 4 + 8);
  const std::uint64_t offsets = std::uint64_t{1} << 16U;  // three tables of pairs of super-shards
  const std::uint64_t limit = 2 * tensor_bytes + factor_bytes + out_bytes + offsets;
  context.memory = std::make_shared<MemoryBudget>(limit);
  Tensor t = build(x, "flycoo", {.rank = rank}, context);
  EXPECT_LE(t.bytes(), 2 * tensor_bytes + offsets);
  const auto factors = factors_for<double>(x, rank, context);
  FactorMatrix<double> out(context, 60000, rank);
  EXPECT_LT(limit - context.memory->used(), out_bytes);  // not one private output more would fit
  Workspace workspace;
  for (int sweep = 0; sweep < 2; ++sweep)
    mttkrp<double>(t, std::span<const FactorMatrix<double>>(factors), 0, out, workspace, context,
                   "mttkrp/flycoo/remapping");
  EXPECT_EQ(workspace.bytes(), 0U);
  EXPECT_LE(context.memory->peak(), limit);
}

TEST(FlycooMttkrp, RefusesToBeDeterministicWhenBuiltOtherwise) {
  const CooTensor x = some_tensor({9, 8, 7}, 100);
  const Tensor t = build(x, "flycoo", {}, with_threads(2));
  const Context context = with_threads(2, true);
  EXPECT_THROW(static_cast<void>(mttkrp_choice(t, 0, 4, context, "mttkrp/flycoo/remapping")), Error);
  EXPECT_THROW((void)mttkrp_choice(t, 0, 4, context), Error);
  const Tensor same = build(x, "flycoo", {}, context);
  EXPECT_EQ(mttkrp_choice(same, 0, 4, context).name, "mttkrp/flycoo/remapping");
}

TEST(FlycooStorage, IsPredicted) {
  const CooTensor x = some_tensor({1024, 512, 256}, 4096, Precision::f32);
  const StoragePrediction p = predict_storage(x, statistics(x), "flycoo", {.shard_nonzeros = 1024});
  EXPECT_DOUBLE_EQ(p.words, 2.0 * 4096 * (3 * 2 + 10 + 9 + 8 + 32) / 32);
  EXPECT_GT(p.bytes, 2.0 * 4096 * 12);  // 27 bits in a key of one word; and the tables
  EXPECT_EQ(p.bytes, static_cast<double>(build(x, "flycoo", {.shard_nonzeros = 1024}).bytes()));
}

TEST(FlycooStorage, AShardMayBeAsLargeAsAnyNumber) {
  const CooTensor x = some_tensor({40, 50, 60}, 2000);
  const Flycoo f = Flycoo::build(x, {.shard_nonzeros = ~std::uint64_t{0}}, with_threads(3));
  EXPECT_EQ(f.shard_nonzeros, x.nnz());
  EXPECT_EQ(numbers_in_order<std::uint32_t>(f).size(), x.nnz());
}

}  // namespace
}  // namespace polyad
