// SPDX-License-Identifier: MIT
#include "formats/hocsr/hocsr.hpp"

#include <gtest/gtest.h>

#include <polyad/polyad.hpp>

#include "formats/hocoo/hocoo.hpp"
#include "unit/formats/example_a.hpp"

namespace polyad {
namespace {

FormatOptions for_mode(int mode) {
  FormatOptions o;
  o.mode = mode;
  return o;
}

TEST(Hocoo, KeepsExampleASorted) {
  const CooTensor x = example_a();
  const Hocoo h = Hocoo::build(x, {}, {});
  for (std::uint64_t k = 0; k < h.x.nnz(); ++k) {
    for (int m = 0; m < 3; ++m)
      EXPECT_EQ(h.x.index(m, k) + 1, static_cast<std::uint64_t>(example_a_nonzeros[k][static_cast<std::size_t>(m)]));
    EXPECT_EQ(h.x.value(k), example_a_nonzeros[k][3]);
  }
  EXPECT_EQ(h.bytes(), 21U * (3 * 4 + 8));
  const StoragePrediction p = predict_storage(x, statistics(x), "hocoo");
  EXPECT_EQ(p.words, 84);
  EXPECT_EQ(p.bytes, static_cast<double>(h.bytes()));
}

TEST(Hocsr, HasThePointersOfExampleA) {
  for (const IndexWidth width : {IndexWidth::u32, IndexWidth::u64}) {
    const CooTensor x = example_a(Precision::f32, width);
    const Hocsr h = Hocsr::build(x, for_mode(2), {});
    const std::vector<std::uint64_t> printed = {1,  3,  4,  6,  8,  9,  9,  9,  9,  9, 9,
                                                10, 11, 13, 15, 15, 17, 18, 20, 20, 22};
    ASSERT_EQ(h.rows.size(), printed.size());
    for (std::size_t r = 0; r < printed.size(); ++r) EXPECT_EQ(h.rows[r] + 1, printed[r]) << "row " << r + 1;
    for (std::size_t k = 0; k < 21; ++k) {
      EXPECT_EQ(std::get<Buffer<std::uint32_t>>(h.indices)[k] + 1, static_cast<unsigned>(example_a_nonzeros[k][2]));
      EXPECT_EQ(std::get<Buffer<float>>(h.values)[k], static_cast<float>(example_a_nonzeros[k][3]));
    }
    const StoragePrediction p = predict_storage(x, statistics(x), "hocsr", for_mode(2));
    EXPECT_EQ(p.words, 62);
    EXPECT_EQ(p.bytes, static_cast<double>(h.bytes()));
    EXPECT_TRUE(p.refusal.empty());
  }
}

TEST(Hocsr, PointersAreTheSameWithManyThreads) {
  CooTensor x = make_coo({50, 60, 70}, 60000, Precision::f64, {});
  visit(x, [&]<class Index, class Value>(const CooView<Index, Value>& v) {
    std::uint64_t state = 1;
    for (std::uint64_t k = 0; k < v.nnz; ++k) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      v.indices[0][k] = static_cast<Index>((state >> 33U) % 50 / 3 * 3);
      v.indices[1][k] = static_cast<Index>((state >> 40U) % 60);
      v.indices[2][k] = static_cast<Index>((state >> 48U) % 70 / 2 * 2);
    }
  });
  Context many;
  many.threads = 7;
  Context one;
  one.threads = 1;
  for (int mode = 0; mode < 3; ++mode) {
    const Hocsr a = Hocsr::build(x, for_mode(mode), one);
    const Hocsr b = Hocsr::build(x, for_mode(mode), many);
    ASSERT_EQ(a.rows.size(), b.rows.size());
    std::vector<std::uint64_t> counts(a.rows.groups());
    for (std::uint64_t k = 0; k < x.nnz(); ++k) {
      std::uint64_t row = 0;
      for (int m = 0; m < 3; ++m)
        if (m != mode) row = row * x.dims[static_cast<std::size_t>(m)] + x.index(m, k);
      ++counts[row];
    }
    for (std::uint64_t r = 0; r < counts.size(); ++r) {
      ASSERT_EQ(a.rows.count(r), counts[r]) << "mode " << mode + 1 << ", row " << r;
      ASSERT_EQ(a.rows[r], b.rows[r]);
    }
  }
}

TEST(Hocsr, RefusesTooManyRows) {
  const CooTensor x = make_coo({20000, 20000, 3}, 0, Precision::f64, {});
  try {
    static_cast<void>(build(x, "hocsr", for_mode(2)));
    FAIL() << "4e8 rows were built";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::limit);
    EXPECT_NE(std::string(e.what()).find("400,000,000 rows"), std::string::npos) << e.what();
    EXPECT_EQ(predict_storage(x, statistics(x), "hocsr", for_mode(2)).refusal, e.what());
  }
  EXPECT_EQ(build(x, "hocsr", for_mode(0)).nnz(), 0U);
  const std::uint64_t side = std::uint64_t{1} << 31U;
  EXPECT_THROW(static_cast<void>(build(make_coo({side, side, side, 3}, 0, Precision::f64, {}), "hocsr", for_mode(3))),
               Error);
}

TEST(Hocsr, RefusesWhatTheMemoryBudgetDoesNotHold) {
  const CooTensor x = make_coo({1000, 1000, 3}, 0, Precision::f64, {});
  Context small;
  small.memory = std::make_shared<MemoryBudget>(1000000);
  try {
    static_cast<void>(build(x, "hocsr", for_mode(2), small));
    FAIL() << "4 MB of pointers in 1 MB";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::limit);
    EXPECT_NE(std::string(e.what()).find("row pointers of format hocsr"), std::string::npos) << e.what();
  }
}

TEST(Offsets, AreNarrowAsLongAsTheyFit) {
  const std::uint64_t limit = 0xffffffffU;
  Offsets narrow({}, 3, limit, "a test");
  Offsets wide({}, 3, limit + 1, "a test");
  EXPECT_EQ(narrow.bytes(), 12U);
  EXPECT_EQ(wide.bytes(), 24U);
  for (Offsets* o : {&narrow, &wide}) {
    o->set(1, 5);
    o->set(2, limit);
    EXPECT_EQ((*o)[2], limit);
    EXPECT_EQ(o->groups(), 2U);
    EXPECT_EQ(o->count(1), limit - 5);
    EXPECT_EQ(o->group_of(4), 0U);
    EXPECT_EQ(o->group_of(5), 1U);
    EXPECT_EQ(o->group_of(limit - 1), 1U);
  }
  wide.set(2, limit + 7);
  EXPECT_EQ(wide[2], limit + 7);
}

TEST(Offsets, FindGroupsAmongEmptyOnes) {
  Offsets o({}, 101, 1000, "a test");
  for (std::uint64_t i = 0; i <= 100; ++i) o.set(i, i < 40 ? 0 : i < 90 ? 3 : 3 + (i - 90) * 2);
  // Group 39 holds 0, 1, 2; groups 90 to 99 two each; the others nothing.
  EXPECT_EQ(o.group_of(0), 39U);
  EXPECT_EQ(o.group_of(2), 39U);
  EXPECT_EQ(o.group_of(3), 90U);
  EXPECT_EQ(o.group_after(39, 3), 90U);
  EXPECT_EQ(o.group_after(90, 22), 99U);
}

}  // namespace
}  // namespace polyad
