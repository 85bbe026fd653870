// SPDX-License-Identifier: MIT
// Buffers, budgets, sizes, contexts.
#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>

#include "polyad/polyad.hpp"

namespace polyad {
namespace {

TEST(Buffer, GrowsAndShrinksKeepingItsContent) {
  for (const Paging paging : {Paging::huge, Paging::plain}) {
    const Context c;
    Buffer<std::uint32_t> b(c, 0, "test", paging);
    std::size_t filled = 0;
    // The heap, small pages, huge pages from 1 MB (262,144 elements) on, a last huge page that is used by half.
    for (const std::size_t n : {10UL, 100000UL, 70000UL, 262143UL, 262144UL, 500000UL, 300000UL, 400000UL, 200000UL,
                                700000UL, 800000UL, 5000000UL, 3UL, 2000000UL, 30000000UL, 100UL}) {
      b.resize(n, "test");
      for (std::size_t i = 0; i < std::min(filled, n); i += 997) ASSERT_EQ(b[i], i) << n;
      for (std::size_t i = std::min(filled, n); i < n; i += 101) ASSERT_EQ(b[i], 0U) << "new elements are zero";
      std::iota(b.begin(), b.end(), 0U);
      filled = n;
      ASSERT_EQ(c.memory->used(), n * 4);
    }
    b = {};
    EXPECT_EQ(c.memory->used(), 0U);
    EXPECT_EQ(c.memory->peak(), 120000000U);
  }
}

TEST(Buffer, TheBudgetSaysWhatWasNeededByWhat) {
  Context c;
  c.memory = std::make_shared<MemoryBudget>(1000000);
  const Buffer<double> a(c, 100000, "a table");
  try {
    const Buffer<double> b(c, 100000, "the index array of mode 2");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::limit);
    EXPECT_STREQ(
        e.what(),
        "the index array of mode 2 needs 800 kB, but with 800 kB in use that is over the memory limit of 1.00 MB");
  }
  EXPECT_EQ(c.memory->used(), 800000U);
  const Context unlimited;
  EXPECT_THROW(Buffer<double>(unlimited, std::size_t{1} << 58U, "too much"), Error);
  EXPECT_THROW(Buffer<double>(unlimited, std::size_t{1} << 61U, "more than a number of bytes can say"), Error);
}

TEST(Buffer, MovesAndViews) {
  const Context c;
  Buffer<int> a(c, 1000, "test");
  a[7] = 5;
  Buffer<int> b = std::move(a);
  EXPECT_EQ(b[7], 5);
  EXPECT_EQ(a.size(), 0U);  // NOLINT(bugprone-use-after-move): that is the question
  auto owner = std::make_shared<std::vector<int>>(10, 3);
  Buffer<int> view = Buffer<int>::view(owner, owner->data(), owner->size());
  EXPECT_TRUE(view.is_view());
  EXPECT_EQ(view[9], 3);
  view.resize(4, "test");
  EXPECT_EQ(view.size(), 4U);
}

TEST(CooTensor, WideIndicesSurviveCopyingAndSorting) {
  // Dims that would fit 32 bits, indices of 64: nothing may depend on the dims alone.
  CooTensor x = make_coo({5, 7}, 3, Precision::f64, IndexWidth::u64, {});
  for (std::uint64_t k = 0; k < 3; ++k) {
    std::get<1>(x.indices[0])[k] = 4 - k;
    std::get<1>(x.indices[1])[k] = 2 * k;
    std::get<1>(x.values)[k] = static_cast<double>(k + 1);
  }
  const CooTensor y = clone(x);
  EXPECT_TRUE(same_nonzeros(x, y));
  EXPECT_EQ(y.index(0, 0), 4U);
  EXPECT_EQ(copy_as(x, Precision::f32).index(1, 2), 4U);
  const std::vector<int> order = {0, 1};
  sort_nonzeros(x, order);
  EXPECT_EQ(x.index(0, 0), 2U);
  EXPECT_EQ(x.value(0), 3);
}

TEST(CooTensor, ASumThatOverflowsIsRefused) {
  CooTensor x = make_coo({2}, 2, Precision::f64, {});
  std::get<1>(x.values)[0] = 1e308;
  std::get<1>(x.values)[1] = 1e308;
  EXPECT_THROW(merge_duplicates(x), Error);
}

TEST(Sizes, ReadAndWritten) {
  EXPECT_EQ(parse_size("20000"), 20000U);
  EXPECT_EQ(parse_size("1M"), 1000000U);
  EXPECT_EQ(parse_size("2.5k"), 2500U);
  EXPECT_EQ(parse_size("4G"), 4000000000U);
  EXPECT_EQ(parse_size("4GiB"), 4294967296U);
  EXPECT_EQ(parse_size("1e6"), 1000000U);
  EXPECT_EQ(parse_size("18446744073709551615"), 18446744073709551615U);
  for (const char* bad : {"", "x", "-5", "1X", "1e30", "4GB4", "nan", "99999999999999999999999"})
    EXPECT_FALSE(parse_size(bad)) << bad;
  EXPECT_EQ(parse_dims("3x4,5"), (std::vector<std::uint64_t>{3, 4, 5}));
  for (const char* bad : {"", "3x", "x3", "3x0", "3xa"}) EXPECT_FALSE(parse_dims(bad)) << bad;
  EXPECT_EQ(readable_bytes(999), "999 B");
  EXPECT_EQ(readable_bytes(1000), "1.00 kB");
  EXPECT_EQ(readable_bytes(123456789), "123 MB");
  EXPECT_EQ(readable_count(1234567), "1,234,567");
  EXPECT_EQ(readable_count(12), "12");
}

TEST(Context, ThreadsAndCancelling) {
  setenv("OMP_NUM_THREADS", "3,2", 1);
  EXPECT_EQ(default_threads(), 3);
  unsetenv("OMP_NUM_THREADS");
  EXPECT_GE(default_threads(), 1);
  Context c;
  int calls = 0;
  c.observer = [&](const Progress&) { ++calls; };
  c.report({"testing", 1, 2, "steps"});
  EXPECT_EQ(calls, 1);
  c.cancelled = [] { return true; };
  try {
    c.report({"testing", 1, 2, "steps"});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::cancelled);
  }
}

}  // namespace
}  // namespace polyad
