// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "backends/cpu/ordered_pipeline.hpp"
#include "backends/cpu/threads.hpp"

namespace polyad::cpu {
namespace {

TEST(Team, EveryRankRunsOnceAndTheFirstFailureIsRethrown) {
  for (const int size : {1, 2, 7, 33}) {
    std::vector<std::atomic<int>> ran(static_cast<std::size_t>(size));
    run_team(size, [&](int rank, int n) {
      EXPECT_EQ(n, size);
      ++ran[static_cast<std::size_t>(rank)];
    });
    for (const auto& r : ran) EXPECT_EQ(r, 1);
  }
  try {
    run_team(5, [](int rank, int) {
      if (rank >= 2) throw std::runtime_error(std::to_string(rank));
    });
    FAIL();
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "2");
  }
}

TEST(Team, EveryChunkIsHandedOutOnce) {
  for (const int threads : {0, 1, 2, 7, 33})
    for (const std::uint64_t chunks : {0UL, 1UL, 5UL, 100UL}) {
      std::vector<std::atomic<int>> taken(chunks);
      std::vector<std::atomic<int>> by_rank(40);
      for_each_chunk(threads, chunks, [&](std::uint64_t c, int rank) {
        ++taken.at(c);
        ++by_rank.at(static_cast<std::size_t>(rank));
      });
      for (const auto& t : taken) EXPECT_EQ(t, 1) << chunks << " chunks, " << threads << " threads";
      const int all = std::accumulate(by_rank.begin(), by_rank.end(), 0);
      EXPECT_EQ(static_cast<std::uint64_t>(all), chunks);
      for (std::size_t rank = static_cast<std::size_t>(std::max(threads, 1)); rank < by_rank.size(); ++rank)
        EXPECT_EQ(by_rank[rank], 0);
    }
}

TEST(Team, SharesCoverEverythingOnce) {
  for (const std::uint64_t n : {0UL, 1UL, 5UL, 100UL})
    for (const int size : {1, 2, 3, 7}) {
      std::uint64_t next = 0;
      for (int r = 0; r < size; ++r) {
        const Share s = share_of(n, r, size);
        EXPECT_EQ(s.begin, next);
        next = s.end;
      }
      EXPECT_EQ(next, n);
    }
}

TEST(Pipeline, CommitsInOrderWhateverTheThreads) {
  for (const int threads : {1, 2, 3, 16}) {
    int next = 0;
    std::vector<int> done;
    ordered_pipeline<int>(
        threads,
        [&](int& item) {
          item = next++;
          return item < 1000;
        },
        [](int& item) { item = item * 2; }, [&](int& item) { done.push_back(item); });
    ASSERT_EQ(done.size(), 1000U);
    for (int i = 0; i < 1000; ++i) EXPECT_EQ(done[static_cast<std::size_t>(i)], 2 * i);
  }
}

TEST(Pipeline, TheEarliestFailureWins) {
  for (const int threads : {1, 2, 7})
    for (const int stage : {0, 1, 2}) {
      int next = 0;
      int committed = 0;
      try {
        const auto fail_at = [&](int here, int item) {
          if (here == stage && item >= 50 && item % 2 == 0) throw item;
        };
        ordered_pipeline<int>(
            threads,
            [&](int& item) {
              item = next++;
              fail_at(0, item);
              return item < 1000;
            },
            [&](int& item) { fail_at(1, item); },
            [&](int& item) {
              fail_at(2, item);
              ++committed;
            });
        FAIL();
      } catch (int item) {
        EXPECT_EQ(item, 50);
        EXPECT_EQ(committed, 50);
      }
    }
}

}  // namespace
}  // namespace polyad::cpu
