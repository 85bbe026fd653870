// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

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
