// SPDX-License-Identifier: MIT
#include "core/radix_sort.hpp"
#include "core/cache_sort.hpp"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <numeric>
#include <random>

#include "core/sorted_nonzeros.hpp"
#include "oracle/coo_oracle.hpp"
#include "polyad/error.hpp"
#include "polyad/operations.hpp"

namespace polyad {
namespace {

using radix::SortPath;
using radix::uint128;

constexpr std::uint64_t u64_max = std::numeric_limits<std::uint64_t>::max();

Context with_threads(int threads) {
  Context context;
  context.threads = threads;
  return context;
}

// ---- in the cache ----

template <class Key>
void check_cache_sort(std::size_t n, Key mask, std::uint64_t seed, int floor) {
  using Rec = radix::Record<Key, std::uint32_t>;
  std::mt19937_64 random(seed);
  std::vector<Rec> a(n);
  for (std::size_t i = 0; i < n; ++i) {
    auto key = static_cast<Key>(random());
    if constexpr (sizeof(Key) == 16) key = (key << 64) | random();
    a[i] = {std::bit_cast<decltype(Rec::words)>(static_cast<Key>(key & mask)), static_cast<std::uint32_t>(i)};
  }
  std::vector<Rec> expected = a;
  std::stable_sort(expected.begin(), expected.end(),
                   [&](const Rec& p, const Rec& q) { return key_of(p) >> floor < key_of(q) >> floor; });
  std::vector<Rec> other(n);
  const Rec* sorted = radix::sort_in_cache(a.data(), other.data(), n, floor);
  for (std::size_t i = 0; i < n; ++i) {
    ASSERT_TRUE(key_of(sorted[i]) == key_of(expected[i])) << n << " at " << i;
    ASSERT_EQ(sorted[i].payload, expected[i].payload) << n << " at " << i;
  }
}

TEST(SortInCache, IsAStableSort) {
  for (const std::size_t n : {0, 1, 2, 24, 25, 100, 511, 512, 4095, 4096, 20000}) {
    for (const std::uint64_t mask : {u64_max, std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{7} << 61U,
                                     std::uint64_t{0xff00ff0000000fff}, std::uint64_t{0xffff}}) {
      for (const int floor : {0, 5, 31}) {
        check_cache_sort<std::uint64_t>(n, mask, n + 1, floor);
        check_cache_sort<std::uint32_t>(n, static_cast<std::uint32_t>(mask), n + 2, floor);
        check_cache_sort<uint128>(n, (static_cast<uint128>(mask) << 64) | (mask >> 7U), n + 3, 2 * floor);
      }
    }
  }
}

// ---- keys ----

TEST(KeyLayout, PacksAndUnpacksEveryWidth) {
  const std::vector<std::uint64_t> largest = {0, 1, 1000, 0, (std::uint64_t{1} << 40U) - 1, 0};
  const std::vector<int> modes = {3, 4, 0, 2, 1, 5};
  const radix::KeyLayout layout(largest, modes);
  EXPECT_EQ(layout.bits, 40 + 10 + 1);
  ASSERT_EQ(layout.fields.size(), 3U);  // modes of one index have no field
  std::vector<std::uint64_t> zero = {0, 0};
  std::vector<std::uint64_t> one = {1, 0};
  std::vector<std::uint64_t> two = {999, 1000};
  std::vector<std::uint64_t> four = {largest[4], 5};
  const std::array<std::uint64_t*, max_order> indices = {zero.data(), one.data(),  two.data(),
                                                         zero.data(), four.data(), zero.data()};
  std::array<std::uint64_t, 2> keys = {};
  layout.pack(indices, 0, 2, keys.data());
  EXPECT_EQ(keys[0], (four[0] << 11U) | (999U << 1U) | 1U);
  EXPECT_EQ(keys[1], (std::uint64_t{5} << 11U) | (1000U << 1U));
  EXPECT_EQ(radix::KeyLayout::unpack<std::uint64_t>(keys[0], layout.fields[0]), four[0]);
  EXPECT_EQ(radix::KeyLayout::unpack<std::uint32_t>(keys[0], layout.fields[1]), 999U);
  EXPECT_EQ(radix::KeyLayout::unpack<std::uint32_t>(keys[1], layout.fields[2]), 0U);
}

TEST(KeyLayout, HoldsA64BitIndexNextToModesOfOneIndex) {
  const std::vector<std::uint64_t> largest = {0, u64_max - 1};
  const std::vector<int> modes = {0, 1};
  const radix::KeyLayout layout(largest, modes);
  EXPECT_EQ(layout.bits, 64);
  std::vector<std::uint64_t> zero = {0};
  std::vector<std::uint64_t> big = {u64_max - 1};
  const std::array<std::uint64_t*, max_order> indices = {zero.data(), big.data()};
  uint128 key = 0;
  layout.pack(indices, 0, 1, &key);
  EXPECT_EQ(radix::KeyLayout::unpack<std::uint64_t>(key, layout.fields[0]), u64_max - 1);
}

// ---- whole tensors ----

#ifdef POLYAD_SANITIZED  // the expected order and comparing take most of the time there
constexpr std::array some_threads = {7};
constexpr std::array few_threads = {3};
constexpr std::uint64_t share_of_cases = 8;  // one of eight
#else
constexpr std::array some_threads = {1, 2, 3, 7, 16};
constexpr std::array few_threads = {1, 3};
constexpr std::uint64_t share_of_cases = 1;
#endif

struct SortCase {
  const char* name;
  oracle::Shape shape;
};

/// \param part 0 or 1: under sanitizers every second case, so that two tests of one function share them
std::vector<SortCase> sort_cases(std::size_t part) {
  const std::uint64_t big = std::uint64_t{1} << 40U;
  const std::uint64_t u32_max = std::numeric_limits<std::uint32_t>::max();
  const std::vector<SortCase> all = {
      {"one nonzero", {{5, 6}, 1, 0, 0}},
      {"order 1", {{1000}, 5000, 0, 0}},
      {"order 1, 64 bits", {{u64_max}, 40000, 0, 0}},
      {"matrix with duplicates", {{30, 40}, 5000, 0, 0}},
      {"all dims 1", {{1, 1, 1}, 50000, 0, 0}},
      {"order 3", {{1209, 918, 2881}, 60000, 0, 0}},
      {"modes of length 1", {{1, 50, 1, 60, 1}, 30000, 0, 0}},
      {"one giant slice", {{1000, 2000, 3000}, 120000, 95, 0}},
      {"everything in one slice", {{u32_max, 2000, 3000}, 90000, 100, 0}},
      {"one giant coordinate", {{1000, 1, 1}, 120000, 90, 0}},
      {"the ends of big modes", {{big, big, big}, 60000, 0, 3}},
      {"65 to 128 bits", {{u32_max, u32_max, u32_max}, 60000, 0, 0}},
      {"65 to 128 bits, giant slice", {{u32_max, u32_max, u32_max}, 90000, 90, 2}},
      {"order 5 of 64 bits", {{u64_max, u64_max, u64_max, u64_max, u64_max}, 50000, 0, 0}},
      {"order 5 of 64 bits, giant slice", {{u64_max, u64_max, u64_max, u64_max, u64_max}, 90000, 97, 1}},
      {"order 32", {std::vector<std::uint64_t>(32, 1000), 30000, 0, 0}},
      {"order 32 with ties", {std::vector<std::uint64_t>(32, 1000), 50000, 50, 1}},
      {"order 32 of 2", {std::vector<std::uint64_t>(32, 2), 50000, 0, 0}},
  };
  std::vector<SortCase> some;
  for (std::size_t c = 0; c < all.size(); ++c)
    if (share_of_cases == 1 || c % 2 == part) some.push_back(all[c]);
  return some;
}

std::vector<int> random_order(std::size_t order, std::uint64_t seed) {
  std::vector<int> modes(order);
  std::iota(modes.begin(), modes.end(), 0);
  std::shuffle(modes.begin(), modes.end(), std::mt19937_64(seed));
  return modes;
}

// The values are the positions, so that a sort that is not stable shows.
std::vector<oracle::Nonzero> numbered(const oracle::Shape& shape, std::uint64_t seed) {
  std::vector<oracle::Nonzero> all = oracle::random_nonzeros(shape, seed);
  for (std::size_t k = 0; k < all.size(); ++k) all[k].value = static_cast<double>(k);
  return all;
}

TEST(SortNonzeros, IsTheStableSortForAnyNumberOfThreads) {
  std::uint64_t seed = 0;
  for (const SortCase& c : sort_cases(0)) {
    const std::vector<oracle::Nonzero> all = numbered(c.shape, ++seed);
    const std::vector<int> order = random_order(c.shape.dims.size(), seed);
    const Precision precision = seed % 2 == 0 ? Precision::f32 : Precision::f64;
    const CooTensor expected = oracle::tensor(c.shape.dims, oracle::sorted(all, order), precision);
    for (const int threads : some_threads) {
      CooTensor x = oracle::tensor(c.shape.dims, all, precision);
      sort_nonzeros(x, order, with_threads(threads));
      EXPECT_TRUE(same_nonzeros(x, expected)) << c.name << ", " << threads << " threads";
      EXPECT_EQ(x.sorted_by, order);
    }
  }
}

TEST(SortNonzeros, EveryPathGivesTheSame) {
  std::uint64_t seed = 100;
  for (const SortCase& c : sort_cases(1)) {
    const std::vector<oracle::Nonzero> all = numbered(c.shape, ++seed);
    const std::vector<int> order = random_order(c.shape.dims.size(), seed);
    const CooTensor expected = oracle::tensor(c.shape.dims, oracle::sorted(all, order), Precision::f64);
    std::vector<SortPath> paths = {SortPath::permutation32, SortPath::permutation64};
    double bits = 0;
    for (const std::uint64_t d : c.shape.dims) bits += std::ceil(std::log2(static_cast<double>(d)));
    if (bits <= 128) paths.push_back(SortPath::key128);
    if (bits <= 64) paths.push_back(SortPath::key64);
    for (const SortPath path : paths) {
      for (const int threads : few_threads) {
        CooTensor x = oracle::tensor(c.shape.dims, all, Precision::f64);
        radix::sort_by_path(x, order, path, with_threads(threads));
        EXPECT_TRUE(same_nonzeros(x, expected)) << c.name << ", path " << static_cast<int>(path);
      }
    }
  }
}

TEST(SortNonzeros, AcceptsAnEmptyTensor) {
  CooTensor x = make_coo({3, 4}, 0, Precision::f64, Context{});
  sort_nonzeros(x, std::vector<int>{1, 0});
  EXPECT_EQ(x.nnz(), 0U);
  EXPECT_EQ(x.sorted_by, (std::vector<int>{1, 0}));
}

TEST(SortNonzeros, RefusesWhatIsNoOrderOfTheModes) {
  CooTensor x = oracle::tensor({3, 4}, {{{0, 0}, 1}}, Precision::f64);
  for (const std::vector<int>& order : {std::vector<int>{0}, {0, 0}, {0, 2}, {-1, 0}, {0, 1, 1}}) {
    try {
      sort_nonzeros(x, order);
      FAIL() << "no error";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::usage);
    }
  }
}

TEST(SortNonzeros, NoticesThatTheInputIsSorted) {
  const oracle::Shape shape{{100, 200, 300}, 50000, 0, 0};
  Context context = with_threads(2);
  CooTensor x = oracle::tensor(shape.dims, oracle::sorted(numbered(shape, 5), {2, 0, 1}), Precision::f64, context);
  const std::uint64_t before = context.memory->peak();
  sort_nonzeros(x, std::vector<int>{2, 0, 1}, context);
  EXPECT_EQ(context.memory->peak(), before);  // no scratch
  EXPECT_TRUE(radix::is_sorted_by(x, std::vector<int>{2, 0, 1}, context));
  EXPECT_FALSE(radix::is_sorted_by(x, std::vector<int>{0, 1, 2}, context));
  ensure_sorted(x, context);  // some order is known: that is enough
  EXPECT_EQ(x.sorted_by, (std::vector<int>{2, 0, 1}));
}

TEST(SortNonzeros, FindsTheOneNonzeroOutOfOrder) {
  for (const std::size_t at : {std::size_t{1}, std::size_t{25000}, std::size_t{49999}}) {
    const oracle::Shape shape{{100, 200, 300}, 50000, 0, 0};
    std::vector<oracle::Nonzero> all = oracle::sorted(numbered(shape, 5), {0, 1, 2});
    all[at].index = {0, 0, 0};
    all[at - 1].index = {99, 199, 299};
    CooTensor x = oracle::tensor(shape.dims, all, Precision::f64);
    EXPECT_FALSE(radix::is_sorted_by(x, std::vector<int>{0, 1, 2}, with_threads(3)));
    ensure_sorted(x, with_threads(3));
    EXPECT_EQ(oracle::nonzeros(x), oracle::sorted(all, {0, 1, 2}));
  }
}

TEST(SortNonzeros, NeedsOneRecordPerNonzero) {
  for (const int giant : {0, 99}) {
    const oracle::Shape shape{{1000, 2000, 3000}, 300000, giant, 0};
    Context context = with_threads(2);
    CooTensor x = oracle::tensor(shape.dims, numbered(shape, 6), Precision::f64, context);
    sort_nonzeros(x, std::vector<int>{0, 1, 2}, context);
    const std::uint64_t leaves = 2 * (std::uint64_t{256} << 10U);
    EXPECT_LE(context.memory->peak(), x.bytes() + 16 * x.nnz() + leaves);
    EXPECT_EQ(context.memory->used(), x.bytes());
  }
}

TEST(SortNonzeros, LeavesTheTensorAloneWhenStoppedOrOutOfMemory) {
  const std::uint64_t u32_max = std::numeric_limits<std::uint32_t>::max();
  for (const std::vector<std::uint64_t>& dims :
       {std::vector<std::uint64_t>{1000, 2000, 3000}, std::vector<std::uint64_t>(5, u32_max)}) {
    const std::vector<oracle::Nonzero> all = numbered({dims, 50000, 0, 0}, 8);
    std::vector<int> order(dims.size());
    std::iota(order.begin(), order.end(), 0);
    for (int calls = 0; calls < 4; ++calls) {
      CooTensor x = oracle::tensor(dims, all, Precision::f64);
      Context context = with_threads(2);
      int asked = 0;
      context.cancelled = [&] { return asked++ == calls; };
      try {
        sort_nonzeros(x, order, context);
      } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::cancelled);
      }
      const std::vector<oracle::Nonzero> now = oracle::nonzeros(x);
      EXPECT_TRUE(x.sorted_by.empty() ? now == all : now == oracle::sorted(all, order)) << calls;
    }
    CooTensor x = oracle::tensor(dims, all, Precision::f64);
    Context context = with_threads(2);
    context.memory = std::make_shared<MemoryBudget>(300000);
    try {
      sort_nonzeros(x, order, context);
      FAIL() << "no error";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::limit);
    }
    EXPECT_EQ(oracle::nonzeros(x), all);
    EXPECT_EQ(context.memory->used(), 0U);
  }
}

TEST(SortNonzeros, NeverWritesForeignMemory) {
  const oracle::Shape shape{{100, 200}, 60000, 0, 0};
  const std::vector<oracle::Nonzero> all = numbered(shape, 9);
  CooTensor foreign = oracle::tensor(shape.dims, all, Precision::f64);
  const auto owner = std::make_shared<int>(0);
  CooTensor x;
  x.dims = shape.dims;
  for (IndexBuffer& index : foreign.indices) {
    auto& b = std::get<0>(index);
    x.indices.emplace_back(Buffer<std::uint32_t>::view(owner, b.data(), b.size()));
  }
  auto& values = std::get<1>(foreign.values);
  x.values = Buffer<double>::view(owner, values.data(), values.size());
  ensure_sorted(x, with_threads(2));
  EXPECT_EQ(oracle::nonzeros(x), oracle::sorted(all, {0, 1}));
  EXPECT_EQ(oracle::nonzeros(foreign), all);
}

// ---- in the form that the sort leaves ----

/// What SortedNonzeros says against nonzeros in the order that is wanted.
void expect_sorted(const SortedNonzeros& sorted, const std::vector<oracle::Nonzero>& expected, const char* name) {
  const std::span<const int> order = sorted.mode_order();
  ASSERT_EQ(sorted.nnz(), expected.size()) << name;
  sorted.visit([&](const auto& nonzeros) {
    std::vector<std::uint8_t> levels(expected.size());
    const auto below = static_cast<std::uint8_t>(order.size() - 1);
    if (expected.size() > 1) nonzeros.new_levels(1, expected.size() - 1, below, levels.data() + 1);
    for (std::size_t z = 0; z < expected.size(); ++z) {
      bool same = static_cast<double>(nonzeros.value(z)) == expected[z].value;
      std::uint8_t level = below;
      for (std::size_t l = order.size(); l-- > 0;) {
        const auto m = static_cast<std::size_t>(order[l]);
        same &= nonzeros.template index<std::uint64_t>(l, z) == expected[z].index[m];
        if (z > 0 && expected[z].index[m] != expected[z - 1].index[m]) level = static_cast<std::uint8_t>(l);
      }
      same &= z == 0 || levels[z] == std::min(level, below);
      if (!same) FAIL() << name << " at " << z;
    }
    std::vector<std::uint64_t> indices(expected.size());
    std::vector<std::uint8_t> is_new(expected.size());
    for (std::size_t l = 0; l < order.size(); ++l) {
      const auto m = static_cast<std::size_t>(order[l]);
      nonzeros.copy_indices(l, 0, expected.size(), indices.data());
      if (expected.size() > 1) nonzeros.new_tuples(1, expected.size() - 1, l + 1, is_new.data() + 1);
      for (std::size_t z = 0; z < expected.size(); ++z) {
        bool differs = false;
        for (std::size_t k = 0; k <= l && z > 0; ++k) {
          const auto mode = static_cast<std::size_t>(order[k]);
          differs |= expected[z].index[mode] != expected[z - 1].index[mode];
        }
        if (indices[z] != expected[z].index[m] || (z > 0 && is_new[z] != (differs ? 1 : 0)))
          FAIL() << name << ", level " << l << " at " << z;
      }
    }
  });
}

TEST(SortedNonzeros, ByOneDigitOfManyBuckets) {
  // 2,048 buckets, which are written through batches where the memory allows it, and one by one where it does not.
  const oracle::Shape shape{{50, 1500, 60}, 800000, 0, 0};
  const std::vector<oracle::Nonzero> all = oracle::sorted(numbered(shape, 17), {0, 1, 2});
  const std::vector<int> order = {1, 0, 2};
  const std::vector<oracle::Nonzero> expected = oracle::sorted(all, order);
  for (const Precision precision : {Precision::f32, Precision::f64}) {
    const CooTensor x = oracle::tensor(shape.dims, all, precision);
    for (const int threads : {1, 3}) {
      if (share_of_cases > 1 && (threads == 1) != (precision == Precision::f32)) continue;
      Context context = with_threads(threads);
      radix::Scratch scratch;
      expect_sorted(SortedNonzeros(x, order, 2, context, scratch), expected, "batches");
      const std::uint64_t records = (precision == Precision::f32 ? 12 : 16) * x.nnz();
      const std::uint64_t leaves = (std::uint64_t{256} << 10U) * static_cast<std::uint64_t>(threads);
      EXPECT_GT(context.memory->peak(), records + leaves);  // batches are larger than that
      EXPECT_LE(context.memory->peak(), records + records / 8 + leaves);
      radix::Scratch small;
      context.memory = std::make_shared<MemoryBudget>(records + leaves);
      expect_sorted(SortedNonzeros(x, order, 2, context, small), expected, "little memory");
    }
  }
}

TEST(SortedNonzeros, AreTheStableSortByTheFirstModes) {
  std::uint64_t seed = 200;
  for (const SortCase& c : sort_cases(0)) {
    const std::vector<oracle::Nonzero> all = numbered(c.shape, ++seed);
    const std::vector<int> order = random_order(c.shape.dims.size(), seed);
    const CooTensor x = oracle::tensor(c.shape.dims, all, seed % 2 == 0 ? Precision::f32 : Precision::f64);
    for (const std::size_t sorted_modes : {order.size(), (order.size() + 1) / 2}) {
      // Beyond 128 bits all modes are sorted by.
      double bits = 0;
      for (const std::uint64_t d : c.shape.dims) bits += std::ceil(std::log2(static_cast<double>(d)));
      if (bits > 128 && sorted_modes < order.size()) continue;
      const std::vector<int> first(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(sorted_modes));
      radix::Scratch scratch;
      expect_sorted(SortedNonzeros(x, order, sorted_modes, with_threads(seed % 3 == 0 ? 1 : 3), scratch),
                    oracle::sorted(all, first), c.name);
    }
  }
}

TEST(SortedNonzeros, FromCoordinatesThatAreSortedBySomeOfTheModes) {
  // Sorted by modes 0, 1, 2, 3: what is wanted has their first modes in front, or at its end, or in between.
  const std::vector<std::vector<int>> orders = {{0, 1, 3, 2}, {0, 2, 3, 1}, {3, 0, 1, 2}, {2, 0, 1, 3}, {0, 3, 1, 2}};
  const std::vector<oracle::Shape> shapes = {
      {{40, 30, 50, 60}, 120000, 0, 0},     // pieces of a few groups
      {{2, 3, 5000, 900}, 200000, 0, 0},    // each group is larger than the cache
      {{5, 1, 7, 1}, 60000, 0, 0},          // modes of one index; duplicates
      {{300, 200, 100, 50}, 150000, 90, 0}  // one group has most of the nonzeros
  };
  std::uint64_t seed = 400;
  for (const oracle::Shape& shape : shapes) {
    std::vector<oracle::Nonzero> all = oracle::sorted(numbered(shape, ++seed), {0, 1, 2, 3});
    for (std::size_t k = 0; k < all.size(); ++k) all[k].value = static_cast<double>(k);
    const Precision precision = seed % 2 == 0 ? Precision::f32 : Precision::f64;
    const CooTensor found_out = oracle::tensor(shape.dims, all, precision);
    CooTensor known = oracle::tensor(shape.dims, all, precision);
    known.sorted_by = {0, 1, 2, 3};
    std::uint64_t number = seed;
    for (const std::vector<int>& order : orders) {
      for (const std::ptrdiff_t sorted_modes : {2, 3, 4}) {
        if (++number % share_of_cases != 0) continue;
        const std::vector<oracle::Nonzero> expected =
            oracle::sorted(all, {order.begin(), order.begin() + sorted_modes});
        const auto modes = static_cast<std::size_t>(sorted_modes);
        radix::Scratch scratch;
        radix::Scratch other_scratch;
        expect_sorted(SortedNonzeros(found_out, order, modes, with_threads(3), scratch), expected, "found out");
        expect_sorted(SortedNonzeros(known, order, modes, with_threads(1), other_scratch), expected, "known");
      }
    }
  }
}

TEST(SortedNonzeros, AreSortedOnceMoreByAnotherRoot) {
  std::uint64_t seed = 300;
  for (const SortCase& c : sort_cases(1)) {
    const std::vector<oracle::Nonzero> all = numbered(c.shape, ++seed);
    const std::vector<int> order = random_order(c.shape.dims.size(), seed);
    std::vector<std::pair<int, std::vector<oracle::Nonzero>>> roots;  // and what is expected
    for (const int root : {order[order.size() / 2], order.back()}) {
      std::vector<int> wanted = order;
      std::erase(wanted, root);
      wanted.insert(wanted.begin(), root);
      roots.emplace_back(root, oracle::sorted(all, wanted));
    }
    for (const bool sorted_before : {false, true}) {
      if (share_of_cases > 1 && sorted_before == (seed % 2 == 0)) continue;
      const CooTensor x = oracle::tensor(c.shape.dims, sorted_before ? oracle::sorted(all, order) : all,
                                         seed % 2 == 0 ? Precision::f32 : Precision::f64);
      radix::Scratch scratch;
      radix::Scratch other_scratch;
      const SortedNonzeros first(x, order, order.size(), with_threads(3), scratch);
      for (const auto& [root, expected] : roots)
        expect_sorted(SortedNonzeros(first, root, with_threads(2), other_scratch), expected, c.name);
    }
  }
}

}  // namespace
}  // namespace polyad
