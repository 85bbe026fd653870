// SPDX-License-Identifier: MIT
#include "formats/coo_perm/coo_perm.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <polyad/polyad.hpp>

#include "matrix/cases.hpp"

namespace polyad {
namespace {

template <class Index>
void check_permutations(const CooTensor& x, int threads) {
  Context context;
  context.threads = threads;
  const CooPerm c = CooPerm::build(x, {}, context);
  ASSERT_EQ(c.permutations.size(), x.dims.size());
  for (int mode = 0; mode < x.order(); ++mode) {
    const auto& positions = std::get<Buffer<std::uint32_t>>(c.permutations[static_cast<std::size_t>(mode)]);
    std::vector<std::uint32_t> expected(x.nnz());
    std::iota(expected.begin(), expected.end(), 0U);
    std::stable_sort(expected.begin(), expected.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return x.index(mode, a) < x.index(mode, b); });
    ASSERT_TRUE(std::equal(expected.begin(), expected.end(), positions.begin(), positions.end())) << "mode " << mode;
    const PermutedOrder<Index, double, std::uint32_t> order(c, mode);
    NonzeroBlock<Index, double> block(x.order());
    const std::size_t count = std::min<std::size_t>(block.capacity, x.nnz());
    order.decode(x.nnz() - count, count, block);
    for (std::size_t k = 0; k < count; ++k) {
      const std::uint64_t at = expected[x.nnz() - count + k];
      ASSERT_EQ(block.values[k], x.value(at));
      for (int m = 0; m < x.order(); ++m) ASSERT_EQ(block.indices[static_cast<std::size_t>(m)][k], x.index(m, at));
    }
  }
}

TEST(CooPerm, SortsEveryModeStably) {
  for (const int threads : {1, 3}) {
    check_permutations<std::uint32_t>(cases::make({"", {30, 1, 50}, 3000, nullptr, true}, Precision::f64), threads);
    check_permutations<std::uint32_t>(cases::make({"", {300000, 2, 5000}, 100000, nullptr, true}, Precision::f64),
                                      threads);
    check_permutations<std::uint64_t>(
        cases::make({"", {std::uint64_t{1} << 40U, 20, 30}, 2000, nullptr, true}, Precision::f64), threads);
  }
}

TEST(CooPerm, TakesAPositionPerNonzeroAndMode) {
  const CooTensor x = cases::make({"", {30, 40, 50}, 1000, nullptr, true}, Precision::f32);
  const Tensor t = build(x, "coo-perm");
  EXPECT_EQ(t.bytes(), 1000U * (3 * 4 + 4 + 3 * 4));
  const StoragePrediction p = predict_storage(x, statistics(x), "coo-perm");
  EXPECT_EQ(p.words, 6000);
  EXPECT_EQ(p.bytes, static_cast<double>(t.bytes()));
}

}  // namespace
}  // namespace polyad
