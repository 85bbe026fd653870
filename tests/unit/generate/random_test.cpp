// SPDX-License-Identifier: MIT
#include "generate/random.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "generate/bijection.hpp"

namespace polyad::portable {
namespace {

// The vectors of Random123 (kat_vectors, philox4x32 with 10 rounds).
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t f = 0xffffffff;
  EXPECT_EQ(philox({f, f, f, f}, {f, f}), (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, SeekGivesTheSameDraws) {
  const Key key(7, "test");
  Random all(key, 3);
  std::vector<std::uint64_t> draws;
  for (int k = 0; k < 20; ++k) draws.push_back(all.next());
  for (std::uint64_t k = 0; k < draws.size(); ++k) {
    Random one(key, 3);
    one.seek(k);
    for (std::uint64_t j = k; j < draws.size(); ++j) EXPECT_EQ(one.next(), draws[j]) << k << " " << j;
  }
}

TEST(Random, SeedPurposePartAndStreamAllMatter) {
  const std::uint64_t draw = Random(Key(1, "a", 0), 0).next();
  EXPECT_NE(draw, Random(Key(2, "a", 0), 0).next());
  EXPECT_NE(draw, Random(Key(1, "b", 0), 0).next());
  EXPECT_NE(draw, Random(Key(1, "a", 1), 0).next());
  EXPECT_NE(draw, Random(Key(1, "a", 0), 1).next());
}

// Golden numbers: a change here changes every generated tensor and every random start of users.
TEST(Random, StaysTheSame) {
  Random random(Key(1, "test"));
  EXPECT_EQ(random.next(), 0xcc205a128c5934dU);
  EXPECT_EQ(random.next(), 0xd910ca18d4ead6acU);
}

TEST(Random, UniformAndBelow) {
  Random random(Key(5, "test"));
  double sum = 0;
  double squares = 0;
  constexpr int n = 100000;
  std::vector<int> counts(10);
  for (int k = 0; k < n; ++k) {
    const double u = random.uniform();
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
    squares += u * u;
    ++counts[random.below(10)];
  }
  // Six standard deviations of the mean: 6 sqrt(1/12 / n), 6 sqrt(4/45 / n), 6 sqrt(0.09 n).
  EXPECT_NEAR(sum / n, 0.5, 0.0055);
  EXPECT_NEAR(squares / n, 1.0 / 3, 0.0057);
  for (const int c : counts) EXPECT_NEAR(c, n / 10, 570);
}

TEST(Bijection, IsOne) {
  for (const std::uint64_t n : {1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33, 1000, 4096, 4097}) {
    const Bijection p(n, Key(11, "test", n));
    std::vector<bool> hit(n, false);
    for (std::uint64_t x = 0; x < n; ++x) {
      const std::uint64_t y = p(x);
      ASSERT_LT(y, n);
      ASSERT_FALSE(hit[y]) << n;
      hit[y] = true;
    }
  }
}

TEST(Bijection, LargeDomains) {
  for (const std::uint64_t n : {(std::uint64_t{1} << 40U) + 1, std::uint64_t{1} << 63U, std::uint64_t{1} << 62U}) {
    const Bijection p(n, Key(1, "test"));
    double sum = 0;
    for (std::uint64_t x = 0; x < 4096; ++x) {
      ASSERT_LT(p(x), n);
      sum += static_cast<double>(p(x)) / static_cast<double>(n);
    }
    EXPECT_NEAR(sum / 4096, 0.5, 0.03);  // 6 sqrt(1/12 / 4096) = 0.027
  }
}

// Neighbours should not stay neighbours: chi-squared of the place of p(x+1) - p(x) in 16 bins.
TEST(Bijection, Shuffles) {
  constexpr std::uint64_t n = 100003;
  const Bijection p(n, Key(3, "test"));
  std::vector<double> bins(16);
  for (std::uint64_t x = 0; x + 1 < n; ++x) bins[(p(x + 1) + n - p(x)) % n * 16 / n] += 1;
  double chi = 0;
  for (const double b : bins) chi += (b - n / 16.0) * (b - n / 16.0) / (n / 16.0);
  EXPECT_LT(chi, 60);  // 15 degrees of freedom: beyond 60 with probability 2e-7
}

}  // namespace
}  // namespace polyad::portable
