// SPDX-License-Identifier: MIT
#include "core/nonzero_order.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "oracle/coo_oracle.hpp"

namespace polyad {
namespace {

Context checked_by(int threads) {
  Context context;
  context.threads = threads;
  return context;
}

NonzeroOrder order_by(const std::vector<oracle::Nonzero>& all, const std::vector<int>& modes, int threads,
                      std::uint64_t last_dim = 90) {
  return order_of(oracle::tensor({100, 80, last_dim}, all, Precision::f32), modes, checked_by(threads));
}

/// Lengths of the last mode for both widths of indices.
constexpr std::array<std::uint64_t, 2> widths = {90, std::uint64_t{1} << 40U};

TEST(NonzeroOrder, IsSeenWhereverAPairBreaksIt) {
  std::vector<oracle::Nonzero> all;
  for (std::uint64_t i = 0; i < 100; ++i)
    for (std::uint64_t j = 0; j < 80; ++j)
      for (std::uint64_t k = 0; k < 10; ++k) all.push_back({{i, j, 9 * k}, 1});
  for (const int threads : {1, 3}) {
    for (const std::uint64_t last_dim : widths) {
      EXPECT_EQ(order_by(all, {0, 1, 2}, threads, last_dim), NonzeroOrder::strict);
      EXPECT_EQ(order_by(all, {0, 1}, threads, last_dim), NonzeroOrder::sorted);
      EXPECT_EQ(order_by(all, {1, 2}, threads, last_dim), NonzeroOrder::none);
      EXPECT_EQ(order_by(all, {}, threads, last_dim), NonzeroOrder::sorted);
    }
    for (const std::size_t at : {std::size_t{0}, std::size_t{1023}, std::size_t{1024}, std::size_t{26666},
                                 all.size() - 2}) {  // the ends of blocks and shares too
      std::vector<oracle::Nonzero> changed = all;
      changed[at + 1] = changed[at];
      for (const std::uint64_t last_dim : widths)
        EXPECT_EQ(order_by(changed, {0, 1, 2}, threads, last_dim), NonzeroOrder::sorted) << at;
      changed = all;
      std::swap(changed[at], changed[at + 1]);
      for (const std::uint64_t last_dim : widths)
        EXPECT_EQ(order_by(changed, {0, 1, 2}, threads, last_dim), NonzeroOrder::none) << at;
    }
  }
}

TEST(NonzeroOrder, IsSeenInEveryLaneAndIndex) {
  // 70 nonzeros: whole vectors of any length, and what is left over. Their first indices agree more or less long.
  for (const std::uint64_t last_dim : widths)
    for (std::size_t at = 0, mode = 0; at + 1 < 70; mode = (mode + 1) % 3, at += mode == 0 ? 1 : 0) {
      std::vector<oracle::Nonzero> all;
      for (std::uint64_t z = 0; z < 70; ++z) {
        oracle::Nonzero nonzero{{50, 40, 30}, 1};
        nonzero.index[mode] = z;
        all.push_back(nonzero);
      }
      EXPECT_EQ(order_by(all, {0, 1, 2}, 1, last_dim), NonzeroOrder::strict) << at;
      all[at + 1] = all[at];
      EXPECT_EQ(order_by(all, {0, 1, 2}, 1, last_dim), NonzeroOrder::sorted) << at;
      all[at].index[mode] = at + 1;
      EXPECT_EQ(order_by(all, {0, 1, 2}, 1, last_dim), NonzeroOrder::none) << at;
      all[at].index[mode] = at;
      all[at + 1].index[2] = mode == 2 ? at : 29;
      EXPECT_EQ(order_by(all, {0, 1, 2}, 1, last_dim), mode == 2 ? NonzeroOrder::sorted : NonzeroOrder::none) << at;
    }
}

TEST(NonzeroOrder, OfFewerThanTwoIsStrict) {
  EXPECT_EQ(order_by({}, {0, 1, 2}, 1), NonzeroOrder::strict);
  EXPECT_EQ(order_by({{{1, 2, 3}, 1}}, {0, 1, 2}, 1), NonzeroOrder::strict);
}

}  // namespace
}  // namespace polyad
