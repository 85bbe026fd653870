// SPDX-License-Identifier: MIT
#include "polyad/operations.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <set>

#include "oracle/coo_oracle.hpp"
#include "polyad/error.hpp"

namespace polyad {
namespace {

constexpr std::uint64_t u64_max = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t u32_max = std::numeric_limits<std::uint32_t>::max();
constexpr std::array all_threads = {1, 2, 3, 7, 16};

Context with_threads(int threads) {
  Context context;
  context.threads = threads;
  return context;
}

std::vector<oracle::Shape> shapes() {
  return {
      {{7}, 0, 0, 0},
      {{7}, 1, 0, 0},
      {{50}, 30000, 0, 0},
      {{40, 30}, 60000, 0, 0},
      {{40, 30}, 60000, 90, 0},
      {{1, 1, 1}, 60000, 0, 0},
      {{1209, 918, 2881}, 60000, 50, 0},
      {{u64_max, 500, u64_max}, 60000, 30, 40},
      {{u32_max, u32_max, u32_max}, 60000, 0, 2},
      {std::vector<std::uint64_t>(32, 100), 20000, 0, 1},
  };
}

std::vector<int> natural(std::size_t order) {
  std::vector<int> modes(order);
  std::iota(modes.begin(), modes.end(), 0);
  return modes;
}

// A tensor over the arrays of another.
CooTensor view_of(CooTensor& x) {
  const auto owner = std::make_shared<int>(0);
  CooTensor v;
  v.dims = x.dims;
  for (IndexBuffer& index : x.indices)
    std::visit([&]<class T>(Buffer<T>& b) { v.indices.emplace_back(Buffer<T>::view(owner, b.data(), b.size())); },
               index);
  std::visit([&]<class T>(Buffer<T>& b) { v.values = Buffer<T>::view(owner, b.data(), b.size()); }, x.values);
  return v;
}

// ---- merge ----

TEST(MergeDuplicates, SumsEqualCoordinates) {
  std::uint64_t seed = 0;
  for (const oracle::Shape& shape : shapes()) {
    const std::vector<oracle::Nonzero> all = oracle::random_nonzeros(shape, ++seed);
    const std::vector<oracle::Nonzero> expected = oracle::merged(oracle::sorted(all, natural(shape.dims.size())));
    for (const int threads : all_threads) {
      CooTensor x = oracle::tensor(shape.dims, all, seed % 2 == 0 ? Precision::f32 : Precision::f64);
      EXPECT_EQ(merge_duplicates(x, with_threads(threads)), all.size() - expected.size());
      EXPECT_EQ(oracle::nonzeros(x), expected) << seed << ", " << threads << " threads";
      EXPECT_TRUE(x.duplicates_merged);
      EXPECT_EQ(x.sorted_by, natural(shape.dims.size()));
      EXPECT_EQ(merge_duplicates(x, with_threads(threads)), 0U);
    }
  }
}

TEST(MergeDuplicates, KeepsAKnownOrder) {
  const oracle::Shape shape{{20, 30, 40}, 50000, 0, 0};
  const std::vector<oracle::Nonzero> all = oracle::random_nonzeros(shape, 4);
  CooTensor x = oracle::tensor(shape.dims, all, Precision::f64);
  sort_nonzeros(x, std::vector<int>{2, 0, 1});
  merge_duplicates(x);
  EXPECT_EQ(oracle::nonzeros(x), oracle::merged(oracle::sorted(all, {2, 0, 1})));
  EXPECT_EQ(x.sorted_by, (std::vector<int>{2, 0, 1}));
}

TEST(MergeDuplicates, AddsFromLeftToRightInDouble) {
  // (1 + 1e16) - 1e16 is 0 in double, and 1 in any other order.
  CooTensor x = oracle::tensor({2}, {{{1}, 1}, {{1}, 1e16}, {{1}, -1e16}}, Precision::f64);
  merge_duplicates(x);
  EXPECT_EQ(x.value(0), 0);
  // 2^24 + 1 + 1 in float would stay 2^24.
  CooTensor y = oracle::tensor({2}, {{{1}, 0x1p24}, {{1}, 1}, {{1}, 1}}, Precision::f32);
  merge_duplicates(y);
  EXPECT_EQ(y.value(0), 0x1p24 + 2);
}

TEST(MergeDuplicates, RefusesASumThatOverflowsAndChangesNothing) {
  CooTensor x = oracle::tensor({3, 3}, {{{0, 0}, 1}, {{2, 1}, 3e38}, {{2, 1}, 3e38}}, Precision::f32);
  const CooTensor before = clone(x);
  try {
    merge_duplicates(x);
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::input);
    EXPECT_NE(std::string(e.what()).find("(3, 2)"), std::string::npos) << e.what();
  }
  EXPECT_TRUE(same_nonzeros(x, before));
}

TEST(MergeDuplicates, KeepsTheBitsOfSingleValues) {
  CooTensor x = oracle::tensor({3}, {{{0}, -0.0}, {{1}, 1}, {{1}, 2}}, Precision::f64);
  merge_duplicates(x);
  EXPECT_TRUE(std::signbit(x.value(0)));
}

// ---- drop ----

TEST(DropZeros, RemovesThemAndKeepsTheRestInOrder) {
  std::uint64_t seed = 20;
  for (const oracle::Shape& shape : shapes()) {
    const std::vector<oracle::Nonzero> all = oracle::random_nonzeros(shape, ++seed);
    std::vector<oracle::Nonzero> expected;
    for (const oracle::Nonzero& z : all)
      if (z.value != 0) expected.push_back(z);
    for (const int threads : all_threads) {
      CooTensor x = oracle::tensor(shape.dims, all, seed % 2 == 0 ? Precision::f32 : Precision::f64);
      x.duplicates_merged = seed % 3 == 0;
      EXPECT_EQ(drop_zeros(x, with_threads(threads)), all.size() - expected.size());
      EXPECT_EQ(oracle::nonzeros(x), expected);
      EXPECT_EQ(x.duplicates_merged, seed % 3 == 0);
      EXPECT_EQ(drop_zeros(x, with_threads(threads)), 0U);
    }
  }
}

TEST(DropZeros, MayLeaveNothing) {
  CooTensor x = oracle::tensor({3, 4}, {{{0, 0}, 0}, {{1, 1}, -0.0}}, Precision::f64);
  EXPECT_EQ(drop_zeros(x), 2U);
  EXPECT_EQ(x.nnz(), 0U);
  EXPECT_EQ(x.indices[1].index(), 0U);
}

TEST(DropEmptySlices, RenumbersAndReturnsTheOldIndices) {
  std::uint64_t seed = 40;
  for (const oracle::Shape& shape : shapes()) {
    if (shape.nnz == 0) continue;
    const std::vector<oracle::Nonzero> all = oracle::random_nonzeros(shape, ++seed);
    CooTensor sorted = oracle::tensor(shape.dims, all, Precision::f64);
    ensure_sorted(sorted);
    const std::vector<oracle::Nonzero> before = oracle::nonzeros(sorted);
    std::vector<std::vector<std::uint64_t>> used;  // per mode
    for (std::size_t m = 0; m < shape.dims.size(); ++m) {
      std::set<std::uint64_t> indices;
      for (const oracle::Nonzero& z : all) indices.insert(z.index[m]);
      used.emplace_back(indices.begin(), indices.end());
    }
    for (const int threads : all_threads) {
      CooTensor x = clone(sorted);
      const auto old = drop_empty_slices(x, with_threads(threads));
      ASSERT_EQ(old.size(), shape.dims.size());
      for (std::size_t m = 0; m < old.size(); ++m) {
        EXPECT_EQ(old[m], used[m]);
        EXPECT_EQ(x.dims[m], old[m].size());
      }
      EXPECT_EQ(x.index_width(), width_for(x.dims));
      std::vector<oracle::Nonzero> back = oracle::nonzeros(x);
      for (oracle::Nonzero& z : back)
        for (std::size_t m = 0; m < old.size(); ++m) z.index[m] = old[m][z.index[m]];
      EXPECT_EQ(back, before) << seed;
      EXPECT_EQ(x.sorted_by, natural(shape.dims.size()));
    }
  }
}

TEST(DropEmptySlices, TakesTheLabelsAlong) {
  CooTensor x = oracle::tensor({4, 2}, {{{1, 0}, 1}, {{3, 1}, 2}}, Precision::f64);
  x.labels = {ModeLabels("letter"), ModeLabels("plain")};
  for (const char* label : {"a", "b", "c", "d"}) x.labels[0].push_back(label);
  EXPECT_EQ(drop_empty_slices(x)[0], (std::vector<std::uint64_t>{1, 3}));
  ASSERT_EQ(x.labels[0].size(), 2U);
  EXPECT_EQ(x.labels[0].name(), "letter");
  EXPECT_EQ(x.labels[0][0], "b");
  EXPECT_EQ(x.labels[0][1], "d");
  EXPECT_EQ(x.labels[1], ModeLabels("plain"));
}

TEST(DropEmptySlices, LeavesOneIndexPerModeOfAnEmptyTensor) {
  CooTensor x = make_coo({u64_max, 4}, 0, Precision::f64, Context{});
  const auto old = drop_empty_slices(x);
  EXPECT_EQ(x.dims, (std::vector<std::uint64_t>{1, 1}));
  EXPECT_EQ(old[0], std::vector<std::uint64_t>{0});
  EXPECT_EQ(x.index_width(), IndexWidth::u32);
}

TEST(DropEmptySlices, AllocatesByNonzerosOnly) {
  Context context = with_threads(2);
  CooTensor x = oracle::tensor({u64_max, u32_max}, {{{u64_max - 1, 9}, 1}, {{3, 7}, 2}}, Precision::f64, context);
  drop_empty_slices(x, context);
  EXPECT_LE(context.memory->peak(), 10000U);
  EXPECT_EQ(oracle::nonzeros(x), (std::vector<oracle::Nonzero>{{{1, 1}, 1}, {{0, 0}, 2}}));
}

// ---- values ----

TEST(TransformValues, Log1pAndBinary) {
  for (const Precision precision : {Precision::f32, Precision::f64}) {
    CooTensor x = oracle::tensor({5}, {{{0}, -7}, {{1}, 0}, {{2}, 1}, {{3}, 1e-9}, {{4}, 1e30}}, precision);
    CooTensor y = clone(x);
    transform_values(x, ValueTransform::log1p);
    for (std::uint64_t k = 0; k < 5; ++k) {
      const double v = y.value(k);
      const double expected = v < 0 ? -std::log1p(-v) : std::log1p(v);
      EXPECT_EQ(x.value(k), precision == Precision::f32 ? static_cast<float>(expected) : expected);
    }
    transform_values(y, ValueTransform::binary);
    for (std::uint64_t k = 0; k < 5; ++k) EXPECT_EQ(y.value(k), k == 1 ? 0 : 1);
  }
}

// ---- subset ----

TEST(TransformValues, DevianceIsWhatIndependenceDoesNotExplain) {
  // Sums of rows 10, 6; of columns 12, 4; of all 16: cell (0,0) is expected to be 7.5, (1,1) 1.5.
  CooTensor x = make_coo({2, 2}, 4, Precision::f64, {});
  visit(x, [](const auto& v) {
    const double cells[] = {9, 1, 3, 3};
    for (int k = 0; k < 4; ++k) {
      v.indices[0][k] = static_cast<std::remove_reference_t<decltype(v.indices[0][0])>>(k / 2);
      v.indices[1][k] = static_cast<std::remove_reference_t<decltype(v.indices[0][0])>>(k % 2);
      v.values[k] = static_cast<std::remove_reference_t<decltype(v.values[0])>>(cells[k]);
    }
  });
  CooTensor by_mode = clone(x);
  to_deviance(x);
  to_deviance(by_mode, 1);
  EXPECT_TRUE(same_nonzeros(x, by_mode)) << "with two modes both are the same";
  EXPECT_NEAR(x.value(0), std::sqrt(2 * (9 * std::log(9 / 7.5) - 9 + 7.5)), 1e-14);
  EXPECT_EQ(x.value(1), 0);
  EXPECT_EQ(x.value(2), 0);
  EXPECT_NEAR(x.value(3), std::sqrt(2 * (3 * std::log(3 / 1.5) - 3 + 1.5)), 1e-14);
  std::get<Buffer<double>>(x.values)[1] = -1;
  EXPECT_THROW(to_deviance(x), Error);
  EXPECT_THROW(to_deviance(x, 2), Error);
}

TEST(Subset, KeepsWhatIsInsideAllRanges) {
  std::uint64_t seed = 60;
  for (const oracle::Shape& shape : shapes()) {
    std::vector<oracle::Nonzero> all = oracle::random_nonzeros(shape, ++seed);
    for (const bool sort_first : {false, true}) {
      if (sort_first) all = oracle::sorted(all, natural(shape.dims.size()));
      CooTensor x = oracle::tensor(shape.dims, all, Precision::f32);
      if (sort_first) ensure_sorted(x);
      std::vector<IndexRange> ranges;
      for (std::size_t m = 0; m < std::min<std::size_t>(shape.dims.size(), 2); ++m)
        ranges.push_back({static_cast<int>(m), shape.dims[m] / 4, shape.dims[m] / 2 + 1});
      std::vector<oracle::Nonzero> expected;
      for (oracle::Nonzero z : all) {
        bool inside = true;
        for (const IndexRange& r : ranges) {
          std::uint64_t& i = z.index[static_cast<std::size_t>(r.mode)];
          inside = inside && i >= r.begin && i < r.end;
          i -= r.begin;
        }
        if (inside) expected.push_back(z);
      }
      for (const int threads : all_threads) {
        const CooTensor y = subset(x, ranges, with_threads(threads));
        EXPECT_EQ(oracle::nonzeros(y), expected) << seed;
        EXPECT_EQ(y.sorted_by, x.sorted_by);
        EXPECT_EQ(y.dims[0], ranges[0].end - ranges[0].begin);
        EXPECT_EQ(y.index_width(), width_for(y.dims));
        EXPECT_EQ(y.precision(), Precision::f32);
      }
    }
  }
}

TEST(Subset, NarrowsIndicesAndLabels) {
  CooTensor x = oracle::tensor({u64_max, 3}, {{{u64_max - 2, 1}, 1}, {{0, 1}, 2}}, Precision::f64);
  x.labels = {ModeLabels("big"), ModeLabels("small")};
  for (const char* label : {"a", "b", "c"}) x.labels[1].push_back(label);
  const std::vector<IndexRange> ranges = {{0, u64_max - 10, u64_max}, {1, 0, 2}, {1, 1, 3}};
  const CooTensor y = subset(x, ranges);
  EXPECT_EQ(y.dims, (std::vector<std::uint64_t>{10, 1}));
  EXPECT_EQ(y.index_width(), IndexWidth::u32);
  EXPECT_EQ(oracle::nonzeros(y), (std::vector<oracle::Nonzero>{{{8, 0}, 1}}));
  EXPECT_EQ(y.labels[0].name(), "big");
  ASSERT_EQ(y.labels[1].size(), 1U);
  EXPECT_EQ(y.labels[1][0], "b");
}

TEST(Subset, RefusesRangesThatMakeNoSense) {
  const CooTensor x = oracle::tensor({10, 3}, {{{1, 1}, 1}}, Precision::f64);
  for (const std::vector<IndexRange>& ranges : {std::vector<IndexRange>{{2, 0, 1}},
                                                {{-1, 0, 1}},
                                                {{0, 5, 5}},
                                                {{0, 6, 5}},
                                                {{0, 0, 11}},
                                                {{0, 0, 2}, {0, 2, 4}}}) {
    try {
      (void)subset(x, ranges);
      FAIL() << "no error";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::usage);
    }
  }
  EXPECT_TRUE(same_nonzeros(subset(x, {}), x));
}

// ---- copies ----

TEST(CopyAs, ConvertsAndKeepsWhatIsKnown) {
  CooTensor x = oracle::tensor({4, u64_max}, {{{0, 5}, 0.1}, {{3, u64_max - 1}, -2}}, Precision::f64);
  x.sorted_by = {0, 1};
  x.duplicates_merged = true;
  x.labels = {ModeLabels("a"), ModeLabels("b")};
  const CooTensor y = copy_as(x, Precision::f32);
  EXPECT_EQ(y.precision(), Precision::f32);
  EXPECT_EQ(y.value(0), static_cast<double>(0.1F));
  EXPECT_EQ(y.index(1, 1), u64_max - 1);
  EXPECT_EQ(y.sorted_by, x.sorted_by);
  EXPECT_TRUE(y.duplicates_merged);
  EXPECT_EQ(y.labels, x.labels);
  EXPECT_FALSE(same_nonzeros(x, y));
  EXPECT_TRUE(same_nonzeros(copy_as(y, Precision::f64), copy_as(copy_as(y, Precision::f64), Precision::f64)));
  const CooTensor z = clone(x);
  EXPECT_TRUE(same_nonzeros(x, z));
  EXPECT_EQ(z.labels, x.labels);
}

TEST(CopyAs, RefusesWhatF32CannotHold) {
  for (const double bad : {1e39, -1e300, 1e-60}) {
    std::vector<oracle::Nonzero> all(50000, {{0, 0}, 1});
    all[40000] = {{2, 3}, bad};
    all[49999] = {{1, 1}, bad};
    const CooTensor x = oracle::tensor({5, 5}, all, Precision::f64);
    try {
      (void)copy_as(x, Precision::f32, with_threads(3));
      FAIL() << "no error";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::input);
      EXPECT_NE(std::string(e.what()).find("(3, 4)"), std::string::npos) << e.what();
    }
  }
}

TEST(SameNonzeros, SeesEveryDifference) {
  const oracle::Shape shape{{100, 200}, 60000, 0, 0};
  const std::vector<oracle::Nonzero> all = oracle::random_nonzeros(shape, 1);
  const CooTensor x = oracle::tensor(shape.dims, all, Precision::f64);
  EXPECT_TRUE(same_nonzeros(x, clone(x)));
  EXPECT_FALSE(same_nonzeros(x, oracle::tensor({100, 201}, all, Precision::f64)));
  for (const std::size_t at : {std::size_t{0}, std::size_t{30000}, std::size_t{59999}}) {
    std::vector<oracle::Nonzero> other = all;
    other[at].index[1] ^= 1U;
    EXPECT_FALSE(same_nonzeros(x, oracle::tensor(shape.dims, other, Precision::f64)));
    other = all;
    other[at].value += 0.5;
    EXPECT_FALSE(same_nonzeros(x, oracle::tensor(shape.dims, other, Precision::f64)));
  }
  EXPECT_FALSE(same_nonzeros(oracle::tensor({1}, {{{0}, 0.0}}, Precision::f64),
                             oracle::tensor({1}, {{{0}, -0.0}}, Precision::f64)));
  // An index width that the dims do not need.
  CooTensor wide = oracle::tensor({3}, {{{2}, 1}}, Precision::f64);
  CooTensor same = clone(wide);
  wide.indices[0] = Buffer<std::uint64_t>(Context{}, 1, "test");
  std::get<1>(wide.indices[0])[0] = 2;
  EXPECT_TRUE(same_nonzeros(wide, same));
}

TEST(Operations, NeverWriteForeignMemory) {
  const oracle::Shape shape{{40, 30}, 40000, 0, 0};
  const std::vector<oracle::Nonzero> all = oracle::sorted(oracle::random_nonzeros(shape, 2), {0, 1});
  CooTensor foreign = oracle::tensor(shape.dims, all, Precision::f64);
  const auto check = [&](const auto& operation) {
    CooTensor x = view_of(foreign);
    operation(x);
    EXPECT_EQ(oracle::nonzeros(foreign), all);
  };
  check([](CooTensor& x) { EXPECT_GT(merge_duplicates(x), 0U); });
  check([](CooTensor& x) { EXPECT_GT(drop_zeros(x), 0U); });
  check([](CooTensor& x) { transform_values(x, ValueTransform::log1p); });
  check([](CooTensor& x) { (void)drop_empty_slices(x); });
}

}  // namespace
}  // namespace polyad
