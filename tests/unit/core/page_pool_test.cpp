// SPDX-License-Identifier: MIT
#include "core/page_pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <polyad/polyad.hpp>
#include <thread>
#include <vector>

namespace {

using namespace polyad;

constexpr std::size_t mega = std::size_t{1} << 20U;

std::size_t kept() { return detail::PagePool::instance().kept(); }

/// An array full of ones.
Buffer<std::uint8_t> full(std::size_t bytes, Paging paging) {
  Buffer<std::uint8_t> b(Context{}, bytes, "a test", paging);
  std::memset(b.data(), 1, bytes);
  return b;
}

/// Whether all elements from `from` on are `value`: a byte, and every one is as the one after it.
bool is_all(const Buffer<std::uint8_t>& b, std::uint8_t value, std::size_t from = 0) {
  return b[from] == value && std::memcmp(b.data() + from, b.data() + from + 1, b.size() - from - 1) == 0;
}
bool all_zero(const Buffer<std::uint8_t>& b, std::size_t from = 0) { return is_all(b, 0, from); }

TEST(PageReuse, NothingIsKeptOutsideOfIt) {
  (void)full(8 * mega, Paging::plain);
  EXPECT_EQ(kept(), 0U);
}

TEST(PageReuse, PagesServeTheNextAndAreZero) {
  for (const Paging paging : {Paging::plain, Paging::huge}) {
    {
      const PageReuse reuse;
      { const PageReuse inner; }  // of several the last one counts
      (void)full(8 * mega, paging);
      EXPECT_EQ(kept(), 8 * mega);
      const Buffer<std::uint8_t> part(Context{}, 2 * mega, "a test", paging);
      EXPECT_EQ(kept(), 6 * mega);
      EXPECT_TRUE(all_zero(part));
      const Buffer<std::uint8_t> more(Context{}, 8 * mega, "a test", paging);
      EXPECT_EQ(kept(), 0U);
      EXPECT_TRUE(all_zero(more));
    }
    EXPECT_EQ(kept(), 0U);
  }
}

TEST(PageReuse, WhatWillBeWrittenIsNotCleared) {
  for (const Paging paging : {Paging::plain, Paging::huge}) {
    const PageReuse reuse;
    (void)full(4 * mega, paging);
    Buffer<std::uint8_t> any(Context{}, 4 * mega, "a test", paging, Content::any);
    EXPECT_TRUE(is_all(any, 1));
    any = {};
    EXPECT_TRUE(all_zero(Buffer<std::uint8_t>(Context{}, 4 * mega, "a test", paging)));
    // What is added later is 0, also where the pages had room for it.
    (void)full(4 * mega, paging);
    Buffer<std::uint8_t> grows(Context{}, 3 * mega + 10, "a test", paging, Content::any);
    EXPECT_EQ(grows[1 * mega], 1);
    grows.resize(3 * mega + 1000, "a test");
    EXPECT_TRUE(all_zero(grows, 3 * mega + 10));
  }
}

TEST(PageReuse, SmallPagesLeaveHugeOnesWhileThereAreEnough) {
  const PageReuse reuse(std::uint64_t{1} << 40U);
  {
    const auto a = full(4 * mega, Paging::plain);
    const auto b = full(8 * mega, Paging::huge);
  }
  EXPECT_EQ(kept(), 12 * mega);
  const auto small = full(4 * mega, Paging::plain);
  EXPECT_EQ(kept(), 8 * mega);
  const auto huge = full(2 * mega, Paging::huge);  // of the kept ones: they were left
  EXPECT_EQ(kept(), 6 * mega);
  const auto grows = full(1 * mega, Paging::plain);  // arrays that may grow are of one piece
  EXPECT_EQ(kept(), 6 * mega);
  (void)full(1 * mega, Paging::plain);
  EXPECT_EQ(kept(), 7 * mega);
  // Three huge ones, as there is but one megabyte of small ones.
  Buffer<std::uint8_t> more(Context{}, 7 * mega, "a test", Paging::plain, Content::any);
  EXPECT_EQ(kept(), 0U);
  EXPECT_TRUE(is_all(more, 1));
  more.resize(9 * mega, "a test");
  EXPECT_TRUE(all_zero(more, 7 * mega));
  EXPECT_TRUE(std::all_of(more.begin(), more.begin() + 7 * mega, [](std::uint8_t v) { return v == 1; }));
}

TEST(PageReuse, OneArrayFromSeveral) {
  for (const Paging paging : {Paging::plain, Paging::huge}) {
    const PageReuse reuse;
    {
      const auto a = full(4 * mega, paging);
      const auto b = full(6 * mega, paging);
    }
    EXPECT_EQ(kept(), 10 * mega);
    Buffer<std::uint64_t> all(Context{}, 12 * mega / 8, "a test", paging);
    EXPECT_EQ(kept(), 0U);
    EXPECT_TRUE(std::ranges::all_of(all, [](std::uint64_t v) { return v == 0; }));
    // It grows, shrinks and grows as any other.
    std::iota(all.begin(), all.end(), std::uint64_t{0});
    const std::size_t before = all.size();
    all.resize(2 * before, "a test");
    for (std::size_t i = 0; i < 2 * before; ++i) ASSERT_EQ(all[i], i < before ? i : 0);
    all.resize(100, "a test");
    all.resize(before, "a test");
    for (std::size_t i = 0; i < before; ++i) ASSERT_EQ(all[i], i < 100 ? i : 0);
  }
}

TEST(PageReuse, AssembledArraysShrinkInPlace) {
  const PageReuse reuse;
  {
    const auto a = full(4 * mega, Paging::plain);
    const auto b = full(4 * mega, Paging::plain);
  }
  Buffer<std::uint8_t> all = full(8 * mega, Paging::plain);
  const std::uint8_t* before = all.data();
  all.resize(3 * mega, "a test");
  EXPECT_EQ(all.data(), before);
  EXPECT_EQ(kept(), 5 * mega);
  all.resize(8 * mega, "a test");
  EXPECT_TRUE(std::all_of(all.begin(), all.begin() + 3 * mega, [](std::uint8_t v) { return v == 1; }));
  EXPECT_TRUE(all_zero(all, 3 * mega));
}

TEST(PageReuse, TheLimitCountsWhatIsKept) {
  const PageReuse reuse(std::uint64_t{1} << 40U);
  Context context;
  context.memory = std::make_shared<MemoryBudget>(20 * mega);
  { const Buffer<std::uint8_t> b(context, 16 * mega, "a test", Paging::plain); }
  EXPECT_EQ(kept(), 16 * mega);
  context.memory->take(10 * mega, "memory that is no array");
  EXPECT_LE(kept(), 10 * mega);
  // An array of several pieces grows: for a moment there are two of it, and that is counted.
  { const Buffer<std::uint8_t> b(context, 1 * mega + 1, "a test", Paging::plain); }
  Buffer<std::uint8_t> grows(context, 6 * mega, "a test", Paging::plain);
  if (detail::PagePool::instance().kept() > 0) (void)full(1 * mega, Paging::plain);
  EXPECT_LE(context.memory->used() + kept(), 20 * mega);
  context.memory->give_back(10 * mega);
  grows.resize(9 * mega, "a test");
  EXPECT_EQ(context.memory->used(), 9 * mega);
  EXPECT_LE(context.memory->peak(), 20 * mega);
}

TEST(PageReuse, NeverMoreThanTheArraysWereAlone) {
  const PageReuse reuse;
  (void)full(8 * mega, Paging::plain);
  EXPECT_EQ(kept(), 8 * mega);
  const auto other = full(6 * mega, Paging::huge);  // cannot use these pages
  EXPECT_LE(kept(), 2 * mega);
  const auto small = full(1 * mega, Paging::plain);
  EXPECT_LE(kept(), 1 * mega);
}

TEST(PageReuse, AsMuchAsIsAllowed) {
  const PageReuse reuse(std::uint64_t{1} << 40U);
  const PageReuse strict;
  (void)full(8 * mega, Paging::plain);
  const auto other = full(6 * mega, Paging::huge);
  EXPECT_EQ(kept(), 8 * mega);
}

TEST(PageReuse, ModelsTakeWhatIsThere) {
  const PageReuse reuse;
  {
    const auto a = full(4 * mega, Paging::plain);
    const auto b = full(4 * mega, Paging::huge);
  }
  const Matrix all_zeros(mega, 1);
  EXPECT_EQ(kept(), 0U);
  EXPECT_EQ(std::ranges::count(all_zeros.values, 0.0), static_cast<std::ptrdiff_t>(mega));
}

TEST(PageReuse, FromManyThreads) {
  const PageReuse reuse;
  std::vector<std::thread> team;
  for (std::uint8_t t = 1; t <= 4; ++t)
    team.emplace_back([t] {
      for (std::size_t k = 0; k < 20; ++k) {
        Buffer<std::uint8_t> b(Context{}, (1 + (k * t) % 5) * mega + k * 100, "a test",
                               k % 2 == 0 ? Paging::plain : Paging::huge);
        ASSERT_TRUE(all_zero(b));
        std::memset(b.data(), t, b.size());
        ASSERT_TRUE(is_all(b, t));
      }
    });
  for (std::thread& t : team) t.join();
}

}  // namespace
