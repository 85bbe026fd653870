// SPDX-License-Identifier: MIT
#include "formats/hicoo/hicoo.hpp"

#include <gtest/gtest.h>

#include <map>
#include <polyad/polyad.hpp>
#include <set>

#include "matrix/cases.hpp"

namespace polyad {
namespace {

/// Figure 3 of the paper, 4 x 4 x 3, indices from 0.
CooTensor figure_3() {
  const std::vector<std::array<std::uint32_t, 3>> cells = {{0, 0, 0}, {0, 1, 0}, {1, 0, 0}, {1, 0, 2},
                                                           {2, 1, 0}, {2, 2, 2}, {3, 0, 1}, {3, 3, 2}};
  CooTensor x = make_coo({4, 4, 3}, cells.size(), Precision::f64, {});
  for (std::size_t k = 0; k < cells.size(); ++k) {
    for (std::size_t m = 0; m < 3; ++m) typed<std::uint32_t>(x.indices[m])[k] = cells[k][m];
    typed<double>(x.values)[k] = static_cast<double>(k + 1);
  }
  return x;
}

template <class T>
std::vector<T> list(const Buffer<T>& b, std::size_t begin, std::size_t count) {
  return {b.begin() + begin, b.begin() + begin + count};
}

TEST(Hicoo, Figure3NumberByNumber) {
  FormatOptions options;
  options.block_bits = 1;
  const CooTensor x = figure_3();
  const Hicoo h = Hicoo::build(x, options, {});
  ASSERT_EQ(h.blocks(), 4U);
  EXPECT_EQ(list(h.bptr, 0, 5), (std::vector<std::uint64_t>{0, 3, 4, 6, 8}));
  EXPECT_EQ(list(std::get<Buffer<std::uint32_t>>(h.binds), 0, 12),
            (std::vector<std::uint32_t>{0, 0, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1}));
  EXPECT_EQ(list(std::get<Buffer<double>>(h.values), 0, 8), (std::vector<double>{1, 2, 3, 4, 5, 7, 6, 8}));
  EXPECT_EQ(list(h.einds, 0, 8), (std::vector<std::uint8_t>{0, 0, 1, 1, 0, 1, 0, 1}));
  EXPECT_EQ(list(h.einds, 8, 8), (std::vector<std::uint8_t>{0, 1, 0, 0, 1, 0, 0, 1}));
  EXPECT_EQ(list(h.einds, 16, 8), (std::vector<std::uint8_t>{0, 0, 0, 0, 0, 1, 0, 0}));
  // The value 7 is the second of block (1,0,0), at offset (1,0,1).
  EXPECT_EQ(typed<double>(h.values)[5], 7);
  EXPECT_EQ((std::array{h.einds[5], h.einds[8 + 5], h.einds[16 + 5]}), (std::array<std::uint8_t, 3>{1, 0, 1}));

  const HicooFacts facts = hicoo_facts(x, {}, options);
  EXPECT_EQ(facts.block_bits, 1);
  EXPECT_EQ(facts.blocks, 4U);
  EXPECT_EQ(facts.alpha_b, 0.5);
  EXPECT_NEAR(facts.mean_nonzeros, std::pow(3.0 * 1 * 2 * 2, 0.25), 1e-9);
  EXPECT_NEAR(facts.mean_nonzeros, 1.86, 0.005);
  EXPECT_NEAR(facts.c_b, 0.93, 0.005);
  EXPECT_EQ(predict_storage(x, {}, "hicoo", options).words, (4.0 * (64 + 32 * 3) + 8.0 * 3 * 8) / 32);
}

/// n blocks of side 128 with `each` nonzeros.
CooTensor blocks_of(std::uint64_t n, std::uint64_t each) {
  const std::uint64_t side = 128 * n;
  return cases::make({"",
                      {side, side, side},
                      n * each,
                      [&](cases::Dice&, std::uint64_t k, auto& at) {
                        const std::uint64_t corner = 128 * (k / each);
                        at = {corner + k % each % 128, corner + k % each / 128, corner};
                      }},
                     Precision::f32);
}

TEST(Hicoo, IsSmallerThanCooBelowTheLimitOfAlpha) {
  // 2 nonzeros in a block: alpha 0.5, above 24 / (32 + 64/3) = 0.45; 3: 0.33.
  for (const std::uint64_t each : {1U, 2U, 3U, 10U, 1000U}) {
    const CooTensor x = blocks_of(400, each);
    const HicooFacts facts = hicoo_facts(x);
    EXPECT_DOUBLE_EQ(facts.alpha_b, 1.0 / static_cast<double>(each));
    EXPECT_NEAR(facts.mean_nonzeros, static_cast<double>(each), 1e-6 * static_cast<double>(each));
    EXPECT_DOUBLE_EQ(facts.alpha_limit, 0.45);
    const bool smaller = predict_storage(x, {}, "hicoo").words < predict_storage(x, {}, "coo").words;
    EXPECT_EQ(smaller, facts.alpha_b < facts.alpha_limit) << each;
    FormatOptions one_superblock;
    one_superblock.superblock_bits = 40;
    EXPECT_EQ(build(x, "hicoo", one_superblock).bytes() < build(x, "coo").bytes(), smaller) << each;
  }
}

TEST(Hicoo, TakesWhatThePredictionSays) {
  const std::vector<std::vector<std::uint64_t>> shapes = {{4, 4, 3},
                                                          {700, 30, 900},
                                                          {100000, 90000, 80000},
                                                          {1ULL << 34U, 3, 1ULL << 30U},
                                                          {1ULL << 40U, 1ULL << 41U, 1ULL << 42U, 9},
                                                          std::vector<std::uint64_t>(9, 1ULL << 31U)};
  for (const auto& dims : shapes)
    for (const std::uint64_t nnz : {0U, 1U, 20000U}) {
      const CooTensor x = cases::make({"", dims, nnz, nullptr, true}, Precision::f32);
      for (const int threads : {1, 3})
        for (const auto& [block, superblock] : {std::pair{0, 0}, {3, 30}, {8, 0}, {1, 62}}) {
          Context context;
          context.threads = threads;
          FormatOptions options;
          options.block_bits = block;
          options.superblock_bits = superblock;
          const auto measured = static_cast<double>(build(x, "hicoo", options, context).bytes());
          EXPECT_EQ(predict_storage(x, {}, "hicoo", options, context).bytes, measured)
              << dims.size() << " modes, " << dims[0] << ", " << block << " " << superblock;
        }
    }
}

/// The nonzeros in the order of a format, as a sorted list of coordinates and values.
std::multiset<std::vector<double>> nonzeros_of(const CooTensor& x) {
  std::multiset<std::vector<double>> all;
  for (std::uint64_t k = 0; k < x.nnz(); ++k) {
    std::vector<double> one;
    for (int m = 0; m < x.order(); ++m) one.push_back(static_cast<double>(x.index(m, k)));
    one.push_back(x.value(k));
    all.insert(one);
  }
  return all;
}

TEST(Hicoo, KeysOfAnyLengthGiveTheNonzerosBack) {
  const std::vector<std::vector<std::uint64_t>> shapes = {{1000, 1000, 1000},
                                                          std::vector<std::uint64_t>(3, 1ULL << 31U),
                                                          std::vector<std::uint64_t>(5, 1ULL << 31U),
                                                          std::vector<std::uint64_t>(5, 1ULL << 45U)};
  for (const auto& dims : shapes)
    for (const int bits : {1, 5, 8}) {
      FormatOptions options;
      options.block_bits = bits;
      const CooTensor x = cases::make({"", dims, 3000, nullptr, true}, Precision::f64);
      EXPECT_EQ(nonzeros_of(build(x, "hicoo", options).to_coo()), nonzeros_of(x));
    }
}

TEST(Hicoo, SuperblocksThatRunInParallelShareNoRows) {
  for (const cases::Case& c : cases::all())
    for (const int superblock_bits : {0, 2, 5}) {
      FormatOptions options;
      options.block_bits = 2;
      options.superblock_bits = superblock_bits;
      const CooTensor x = cases::make(c, Precision::f32);
      const Hicoo h = Hicoo::build(x, options, {});
      NonzeroBlock<std::uint32_t, float> block(x.order());
      for (std::size_t m = 0; m < x.dims.size(); ++m) {
        const HicooSchedule& schedule = h.schedules[m];
        std::map<std::uint32_t, std::uint64_t> owner;  // row -> range
        std::set<std::uint64_t> seen;
        std::uint64_t nonzeros = 0;
        for (std::uint64_t r = 0; r < schedule.ranges(); ++r) {
          std::uint64_t in_range = 0;
          for (const std::uint64_t s : schedule.of_range(r)) {
            EXPECT_TRUE(seen.insert(s).second) << "superblock " << s << " twice";
            const std::uint64_t end = h.bptr[h.lptr[s + 1]];
            for (std::uint64_t k = h.bptr[h.lptr[s]]; k < end; ++k, ++in_range) {
              h.decode(k, 1, block);
              EXPECT_EQ(owner.emplace(block.indices[m][0], r).first->second, r) << c.name;
            }
          }
          EXPECT_EQ(schedule.nonzeros[r], in_range);
          EXPECT_LE(in_range, schedule.heaviest);
          EXPECT_LE(schedule.of_range(r).size(), schedule.iterations);
          nonzeros += in_range;
        }
        EXPECT_EQ(seen.size(), h.superblocks());
        EXPECT_EQ(nonzeros, x.nnz());
      }
    }
}

TEST(Hicoo, TheNumberOfTasksFollowsTheThreads) {
  Context context;
  context.threads = 2;
  const auto sides = [&](std::vector<std::uint64_t> dims, std::uint64_t nnz) {
    return hicoo::sides_for(make_coo(std::move(dims), nnz, Precision::f32, {}), {}, context);
  };
  const hicoo::Sides sparse = sides({1000000, 2000000, 500000}, 1000);
  EXPECT_EQ(sparse.block_bits, 7);
  EXPECT_GE(sparse.ranges(500000), 8U);
  EXPECT_LE(sparse.ranges(2000000), 200U);
  EXPECT_EQ(sides({300, 200, 100}, 1000).superblock_bits, 7);  // too short for 4 P: blocks themselves
  context.deterministic = true;
  const int bits = sides({1000000, 2000000, 500000}, 1000).superblock_bits;
  context.threads = 7;
  EXPECT_EQ(sides({1000000, 2000000, 500000}, 1000).superblock_bits, bits);
}

TEST(Hicoo, SidesAreChecked) {
  const CooTensor x = figure_3();
  const auto kind_of = [&](int block, int superblock, const CooTensor& t) {
    FormatOptions options;
    options.block_bits = block;
    options.superblock_bits = superblock;
    try {
      static_cast<void>(build(t, "hicoo", options));
    } catch (const Error& e) {
      return std::optional(e.kind());
    }
    return std::optional<ErrorKind>();
  };
  EXPECT_EQ(kind_of(9, 0, x), ErrorKind::usage);
  EXPECT_EQ(kind_of(-1, 0, x), ErrorKind::usage);
  EXPECT_EQ(kind_of(4, 3, x), ErrorKind::usage);
  EXPECT_EQ(kind_of(8, 8, x), std::nullopt);
  EXPECT_EQ(kind_of(1, 1, make_coo({std::uint64_t{1} << 40U, 3}, 1, Precision::f32, {})), ErrorKind::limit);
  FormatOptions large_rank;
  large_rank.rank = 1024;  // 3 * 128 * 1024 * 8 bytes would be 3 MiB
  EXPECT_EQ(hicoo::sides_for(x, large_rank, {}).block_bits, 5);
}

}  // namespace
}  // namespace polyad
