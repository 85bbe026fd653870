// SPDX-License-Identifier: MIT
#include "core/tensor_sample.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <tuple>
#include <vector>

#include "oracle/coo_oracle.hpp"

namespace polyad {
namespace {

using Tuples = std::set<std::tuple<std::uint64_t, std::uint64_t>>;

/// Nonzeros at (i, j, k) of f(z) for z below nnz.
template <class F>
std::vector<oracle::Nonzero> nonzeros(std::uint64_t nnz, const F& f) {
  std::vector<oracle::Nonzero> all;
  for (std::uint64_t z = 0; z < nnz; ++z) all.push_back({f(z), 1});
  return all;
}

void expect_near(const std::vector<oracle::Nonzero>& all, const std::vector<std::uint64_t>& dims) {
  Context three;
  three.threads = 3;
  const CooTensor x = oracle::tensor(dims, all, Precision::f32);
  const TensorSample one(x, {});
  const TensorSample other(x, three);
  for (int m = 0; m < 3; ++m) {
    Tuples fibres;
    const std::array<int, 2> others = {m == 0 ? 1 : 0, m == 2 ? 1 : 2};
    for (const oracle::Nonzero& z : all)
      fibres.emplace(z.index[static_cast<std::size_t>(others[0])], z.index[static_cast<std::size_t>(others[1])]);
    const auto exact = static_cast<double>(fibres.size());
    EXPECT_NEAR(one.fibres(m), exact, exact < 16384 && 7 * exact < static_cast<double>(all.size()) ? 0 : 0.08 * exact)
        << "mode " << m;
    EXPECT_EQ(one.fibres(m), other.fibres(m)) << "whatever the threads, mode " << m;
    EXPECT_EQ(one.fibres(m), TensorSample(x, {}).distinct(others)) << "alone or with the others, mode " << m;
  }
  EXPECT_GE(one.nonzeros_per_block(), 1);
  EXPECT_EQ(one.nonzeros_per_block(), other.nonzeros_per_block());
}

/// Numbers without order below `most`.
std::uint64_t scattered(std::uint64_t z, std::uint64_t most) { return (z * 0x9E3779B97F4A7C15U >> 20U) % most; }

TEST(TensorSample, CountsFibresOfWhichThereAreMany) {
  for (const std::uint64_t last : {std::uint64_t{5000}, std::uint64_t{1} << 40U})  // both widths of indices
    expect_near(nonzeros(100000,
                         [&](std::uint64_t z) -> std::vector<std::uint64_t> {
                           return {scattered(z, 3000), scattered(z + 7, 4000), scattered(z + 13, last)};
                         }),
                {3000, 4000, last});
}

TEST(TensorSample, CountsFibresOfWhichThereAreFew) {
  // 100,000 nonzeros in some 6,000 fibres of mode 3: few of their hashes are below the limit for 100,000 of them.
  expect_near(nonzeros(100000,
                       [](std::uint64_t z) -> std::vector<std::uint64_t> {
                         return {scattered(z % 6000, 3000), scattered(z % 6000 + 7, 4000), scattered(z, 5000)};
                       }),
              {3000, 4000, 5000});
  // Few enough to be counted.
  expect_near(nonzeros(50000,
                       [](std::uint64_t z) -> std::vector<std::uint64_t> {
                         return {scattered(z % 2000, 3000), scattered(z % 2000 + 7, 4000), scattered(z, 5000)};
                       }),
              {3000, 4000, 5000});
}

TEST(TensorSample, CountsTheSameHoweverNonzerosAreShared) {
  // Fibres of mode 3, too many for a table and too few for the limit, most of them in the last nonzeros: threads let go
  // of hashes that the others keep.
  for (const std::uint64_t fibres : {std::uint64_t{25000}, std::uint64_t{40000}}) {
    constexpr std::uint64_t nnz = 400000;
    const auto fibre = [&](std::uint64_t z) { return z < nnz / 3 ? z % 3000 : z % fibres; };
    std::vector<oracle::Nonzero> all = nonzeros(nnz, [&](std::uint64_t z) -> std::vector<std::uint64_t> {
      return {scattered(fibre(z), 30000), scattered(fibre(z) + 7, 40000), scattered(z, 50000)};
    });
    Tuples exact;
    for (const oracle::Nonzero& z : all) exact.emplace(z.index[0], z.index[1]);
    const CooTensor x = oracle::tensor({30000, 40000, 50000}, all, Precision::f32);
    const double found = TensorSample(x, {}).fibres(2);
    EXPECT_NEAR(found, static_cast<double>(exact.size()), 0.08 * static_cast<double>(exact.size()));
    for (const int threads : {2, 3, 8}) {
      Context context;
      context.threads = threads;
      EXPECT_EQ(TensorSample(x, context).fibres(2), found) << threads << " threads";
    }
    std::ranges::reverse(all);
    const CooTensor reversed = oracle::tensor({30000, 40000, 50000}, all, Precision::f32);
    EXPECT_EQ(TensorSample(reversed, {}).fibres(2), found) << "in another order";
  }
}

TEST(TensorSample, CountsIndicesOfAMode) {
  const CooTensor x = oracle::tensor({300, 400, 500},
                                     nonzeros(20000,
                                              [](std::uint64_t z) -> std::vector<std::uint64_t> {
                                                return {scattered(z, 100), 2 * scattered(z + 1, 200), 499};
                                              }),
                                     Precision::f64);
  const TensorSample sample(x, {});
  const std::array<double, 3> exact = {100, 200, 1};
  for (int m = 0; m < 3; ++m) EXPECT_EQ(sample.distinct({&m, 1}), exact[static_cast<std::size_t>(m)]) << m;
}

TEST(TensorSample, AnyOrderAndNoNonzeros) {
  const std::vector<std::uint64_t> dims(max_order, 2);
  const CooTensor one = oracle::tensor(dims, {{std::vector<std::uint64_t>(max_order, 1), 1}}, Precision::f32);
  const TensorSample full(one, {});
  EXPECT_EQ(full.fibres(max_order - 1), 1);
  EXPECT_EQ(full.nonzeros_per_block(), 1);
  const CooTensor nothing = oracle::tensor({3, 4, 5}, {}, Precision::f32);
  EXPECT_EQ(TensorSample(nothing, {}).fibres(0), 0);
}

}  // namespace
}  // namespace polyad
