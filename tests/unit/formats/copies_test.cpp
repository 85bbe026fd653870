// SPDX-License-Identifier: MIT
#include "formats/copies/copies.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <polyad/polyad.hpp>

#include "matrix/cases.hpp"
#include "oracle/coo_oracle.hpp"

namespace polyad {
namespace {

TEST(Copies, HoldTheHandExample) {
  // The tensor of the folder's README, 0-based (i, j, k): value.
  const std::vector<std::array<std::uint32_t, 3>> at = {{0, 0, 1}, {0, 1, 0}, {1, 0, 1},
                                                        {3, 0, 0}, {3, 0, 2}, {3, 3, 0}};
  CooTensor x = make_coo({4, 4, 3}, at.size(), Precision::f64, {});
  visit(x, [&]<class Index, class Value>(const CooView<Index, Value>& v) {
    for (std::size_t k = 0; k < at.size(); ++k) {
      for (std::size_t m = 0; m < 3; ++m) v.indices[m][k] = static_cast<Index>(at[k][m]);
      v.values[k] = static_cast<Value>(k + 1);
    }
  });
  const SortedCopy second = SortedCopy::build(x, {.mode = 1}, {});
  const auto begins = [](const SortedCopy& copy) {
    std::vector<std::uint64_t> begin;
    for (std::uint64_t i = 0; i < copy.begin.size(); ++i) begin.push_back(copy.begin[i]);
    return begin;
  };
  EXPECT_TRUE(std::get<Buffer<std::uint32_t>>(second.rows).empty());
  // The row of no nonzero comes before that of one; the first and the last of the chunk stay where they are.
  EXPECT_EQ(begins(second), (std::vector<std::uint64_t>{0, 4, 4, 5, 6}));
  EXPECT_EQ(std::vector<int>(second.by_length.begin(), second.by_length.end()), (std::vector<int>{0, 2, 1, 3}));
  x.dims[1] = 7;  // fewer than half of them occur: they are listed
  const SortedCopy listed = SortedCopy::build(x, {.mode = 1}, {});
  const auto& rows = std::get<Buffer<std::uint32_t>>(listed.rows);
  EXPECT_EQ(std::vector<std::uint32_t>(rows.begin(), rows.end()), (std::vector<std::uint32_t>{0, 1, 3}));
  EXPECT_EQ(begins(listed), (std::vector<std::uint64_t>{0, 4, 5, 6}));
  // Nonzeros of a row stay in the order they came in.
  const auto& i = std::get<Buffer<std::uint16_t>>(second.indices[0]);
  EXPECT_EQ(std::vector<std::uint16_t>(i.begin(), i.begin() + 6), (std::vector<std::uint16_t>{0, 1, 3, 3, 0, 3}));
  const auto& k = std::get<Buffer<std::uint16_t>>(second.indices[2]);
  EXPECT_EQ(std::vector<std::uint16_t>(k.begin(), k.begin() + 6), (std::vector<std::uint16_t>{1, 1, 0, 2, 0, 0}));
  EXPECT_EQ(second.values.code(), (ValueCode{1, 1}));  // whole numbers
  std::array<double, 6> values = {};
  EXPECT_EQ(second.values.get(0, 6, values.data()), values.data());
  EXPECT_EQ(values, (std::array<double, 6>{1, 3, 4, 5, 2, 6}));
}

TEST(Copies, ValuesAreNarrowOnlyWhereNothingIsLost) {
  CooTensor x = cases::make({"", {30, 40, 50}, 20000, nullptr, true}, Precision::f64);
  auto& values = std::get<Buffer<double>>(x.values);
  for (std::uint64_t k = 0; k < x.nnz(); ++k) values[k] = static_cast<double>(k % 1000) / 4;
  const SortedCopy narrow = SortedCopy::build(x, {.mode = 2}, {});
  EXPECT_EQ(narrow.values.code(), (ValueCode{2, 100}));  // 249.75 is 24,975 / 100
  values[x.nnz() - 1] = 1.0 / 3;
  const SortedCopy wide = SortedCopy::build(x, {.mode = 2}, {});
  EXPECT_EQ(wide.values.code(), (ValueCode{8, 1}));
  EXPECT_EQ(wide.bytes() - narrow.bytes(), 6 * x.nnz());
  NonzeroBlock<std::uint32_t, double> a(3);
  NonzeroBlock<std::uint32_t, double> b(3);
  narrow.decode(7000, 500, a);
  wide.decode(7000, 500, b);
  EXPECT_TRUE(std::equal(a.values, a.values + 500, b.values));
}

TEST(Copies, IndicesAreAsNarrowAsTheOtherModesAllow) {
  const std::vector<std::uint64_t> dims = {65536, 65537, 10};
  EXPECT_EQ(SortedCopy::index_bytes(dims, 1), 2U);
  EXPECT_EQ(SortedCopy::index_bytes(dims, 0), 3U);
  EXPECT_EQ(SortedCopy::index_bytes({10, (1U << 24U) + 1}, 0), 4U);
  EXPECT_EQ(SortedCopy::index_bytes({std::uint64_t{1} << 33U, 10}, 1), 8U);
  EXPECT_EQ(SortedCopy::index_bytes({std::uint64_t{1} << 33U, 10}, 0), 2U);
  const CooTensor x = cases::make({"", dims, 5000, nullptr, true}, Precision::f32);
  for (const int mode : {0, 1, 2}) {
    const SortedCopy copy = SortedCopy::build(x, {.mode = mode}, {});
    EXPECT_EQ(copy.indices[mode == 2 ? 0 : 2].index(), mode == 1 ? 0U : 1U);  // 16 and 24 bits
    const auto rows = static_cast<double>(copy.begin.groups());
    EXPECT_EQ(static_cast<double>(copy.bytes()), SortedCopy::predicted_bytes(x, mode, rows, copy.values.code()));
  }
}

/// The nonzeros that a copy holds, one after the other. Index as in the tensor.
template <class Index>
std::vector<oracle::Nonzero> nonzeros_of(const SortedCopy& copy) {
  std::vector<oracle::Nonzero> all;
  NonzeroBlock<Index, double> block(copy.tensor_shape.order());
  for (std::uint64_t first = 0; first < copy.tensor_shape.nnz; first += block.capacity) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(block.capacity, copy.tensor_shape.nnz - first));
    copy.decode(first, count, block);
    for (std::size_t k = 0; k < count; ++k) {
      oracle::Nonzero& z = all.emplace_back();
      for (std::size_t m = 0; m < copy.tensor_shape.dims.size(); ++m) z.index.push_back(block.indices[m][k]);
      z.value = block.values[k];
    }
  }
  return all;
}

#ifdef POLYAD_SANITIZED  // the expected order and comparing take most of the time there
constexpr std::array some_threads = {3};
constexpr bool every_mode = false;
#else
constexpr std::array some_threads = {1, 3};
constexpr bool every_mode = true;
#endif

/// What a copy orders by length, put in the order of rows again; every row must be in one piece.
std::vector<oracle::Nonzero> with_rows_ascending(const SortedCopy& copy, const std::vector<oracle::Nonzero>& stored) {
  if (copy.by_length.empty()) return stored;
  std::vector<oracle::Nonzero> all;
  std::vector<std::uint64_t> row_at(copy.begin.groups());
  for (std::uint64_t i = 0; i < row_at.size(); ++i) row_at[copy.index_of(i)] = i;
  for (const std::uint64_t i : row_at)
    for (std::uint64_t z = copy.begin[i]; z < copy.begin[i + 1]; ++z) all.push_back(stored[z]);
  return all;
}

TEST(Copies, ShortRowsLieByTheirLengthWithinBlocksAndChunks) {
  const CooTensor x = cases::make({"", {9000, 300, 200}, 100000, nullptr, true}, Precision::f32);
  const SortedCopy copy = SortedCopy::build(x, {.mode = 0}, {});
  ASSERT_EQ(copy.by_length.size(), 9000U);
  // Whether a row has the first or the last nonzero of a chunk.
  const auto at_end = [&](std::uint64_t i) {
    const std::uint64_t first = copy.begin[i];
    const std::uint64_t end = copy.begin[i + 1];
    const auto next_chunk = [](std::uint64_t z) {
      return (z + SortedCopy::chunk_nonzeros - 1) / SortedCopy::chunk_nonzeros * SortedCopy::chunk_nonzeros;
    };
    return end > first && (next_chunk(first) < end || next_chunk(end) == end || end == x.nnz());
  };
  std::uint64_t ordered = 0;
  for (std::uint64_t i = 1; i < 9000; ++i) {
    if (at_end(i - 1) || at_end(i) || i % SortedCopy::block_rows == 0) continue;
    EXPECT_LE(copy.begin.count(i - 1), copy.begin.count(i)) << "row " << i;
    ++ordered;
  }
  EXPECT_GT(ordered, 8800U);
  // Long rows, and those whose inputs are far away, stay as they are.
  EXPECT_TRUE(SortedCopy::build(x, {.mode = 2}, {}).by_length.empty());
  const CooTensor far = cases::make({"", {9000, 300000, 20}, 50000, nullptr, true}, Precision::f32);
  EXPECT_TRUE(SortedCopy::build(far, {.mode = 0}, {}).by_length.empty());
  EXPECT_TRUE(SortedCopy::build(far, {.mode = 1}, {}).by_length.empty()) << "fewer than half occur";
}

TEST(Copies, KnowTheRowsOfTheirChunks) {
  const CooTensor x = cases::make({"", {9000, 300, 130000}, 80000, nullptr, true}, Precision::f32);
  for (const int mode : {0, 1, 2}) {  // rows by their length, long ones, listed ones
    const SortedCopy copy = SortedCopy::build(x, {.mode = mode}, {});
    ASSERT_EQ(copy.ends.size(), copy.chunks());
    ASSERT_EQ(copy.by_length.empty(), mode != 0);
    ASSERT_EQ(bytes_in(copy.rows) > 0, mode == 2);
    for (std::uint64_t c = 0; c < copy.chunks(); ++c) {
      const std::uint64_t begin = c * SortedCopy::chunk_nonzeros;
      const std::uint64_t last = std::min(x.nnz(), begin + SortedCopy::chunk_nonzeros) - 1;
      EXPECT_EQ(copy.ends[c].first_row, copy.begin.group_of(begin)) << "mode " << mode + 1 << ", chunk " << c;
      EXPECT_EQ(copy.ends[c].last_row, copy.begin.group_of(last)) << "mode " << mode + 1 << ", chunk " << c;
    }
  }
  EXPECT_EQ(SortedCopy::build(cases::make({"", {9, 8, 7}, 0, nullptr, true}, Precision::f32), {}, {}).ends.size(), 0U);
}

TEST(Copies, AreTheStableSortByTheirMode) {
  struct Case {
    const char* name;
    oracle::Shape shape;
  };
  const std::vector<Case> copy_cases = {
      {"few rows of many nonzeros", {{5, 200, 300}, 300000, 0, 0}},
      {"rows of a few nonzeros", {{70000, 40000, 30}, 300000, 0, 0}},
      {"rows that share granules", {{900000, 40000, 30}, 300000, 0, 0}},
      {"a row that has most nonzeros", {{900000, 40000, 30}, 200000, 90, 0}},
      {"the ends of long modes", {{900000, 800000, 30}, 200000, 0, 3}},
      {"far more rows than nonzeros", {{std::uint64_t{1} << 40U, 4000, 30}, 50000, 0, 0}},
      {"indices of four bytes", {{4000, 20000000, 30}, 50000, 0, 0}},
      {"four inputs", {{100, 20, 3000, 40, 10}, 100000, 0, 0}},
      {"a matrix", {{300, 200}, 70000, 0, 0}},
      {"one nonzero", {{300, 200, 100}, 1, 0, 0}},
  };
  std::uint64_t seed = 0;
  for (const Case& c : copy_cases) {
    std::vector<oracle::Nonzero> all = oracle::random_nonzeros(c.shape, ++seed);
    // In turn values that only doubles hold, and codes of one to four bytes.
    constexpr double divisors[] = {3, 1, 1, 100, 1};
    constexpr std::size_t ranges[] = {1U << 30U, 101, 30001, 800001, 1000};
    constexpr std::uint32_t bytes[] = {8, 1, 2, 3, 4};
    const std::size_t kind = seed % 5;
    for (std::size_t k = 0; k < all.size(); ++k)
      all[k].value = (static_cast<double>(k % ranges[kind]) - 50 + (kind == 4 ? 0x1p-10 : 0)) / divisors[kind];
    const CooTensor x = oracle::tensor(c.shape.dims, all, Precision::f64);
    for (int mode = 0; mode < x.order(); ++mode) {
      if (!every_mode && mode != 0) continue;  // the cases are about the first
      const std::vector<oracle::Nonzero> expected = oracle::sorted(all, {mode});
      for (const int threads : some_threads) {
        Context context;
        context.threads = threads;
        const SortedCopy copy = SortedCopy::build(x, {.mode = mode}, context);
        if (all.size() > 40000) {
          EXPECT_EQ(copy.values.code().bytes, bytes[kind]) << c.name;
        }
        const bool wide = x.index_width() == IndexWidth::u64;
        const std::vector<oracle::Nonzero> stored =
            wide ? nonzeros_of<std::uint64_t>(copy) : nonzeros_of<std::uint32_t>(copy);
        EXPECT_TRUE(with_rows_ascending(copy, stored) == expected)
            << c.name << ", mode " << mode + 1 << ", " << threads << " threads";
      }
    }
  }
}

/// MTTKRPs of whole numbers, exact in any order, by this kernel and by the one for coordinates.
void expect_same_as_coo(const CooTensor& x, std::uint64_t rank) {
  std::vector<FactorMatrix<float>> factors;
  for (std::size_t m = 0; m < x.dims.size(); ++m) {
    factors.emplace_back(Context{}, x.dims[m], rank);
    for (std::uint64_t i = 0; i < x.dims[m]; ++i)
      for (std::uint64_t r = 0; r < rank; ++r) factors[m](i, r) = static_cast<float>((i * 31 + r * 17 + m) % 3) - 1;
  }
  Tensor coo = build(x, "coo");
  for (const int threads : {1, 3}) {
    Context context;
    context.threads = threads;
    Tensor copies = build(x, "copies", {}, context);
    Workspace workspace;
    for (int mode = 0; mode < x.order(); ++mode) {
      FactorMatrix<float> found(context, x.dims[static_cast<std::size_t>(mode)], rank);
      FactorMatrix<float> wanted(context, found.rows(), rank);
      std::fill_n(found.data(), found.rows() * found.stride(), 9.0F);  // what was there must not matter
      (void)mttkrp<float>(copies, factors, mode, found, workspace, context, "mttkrp/copies/rows");
      (void)mttkrp<float>(coo, factors, mode, wanted, workspace, {});
      ASSERT_TRUE(std::equal(found.data(), found.data() + found.rows() * found.stride(), wanted.data()))
          << "mode " << mode + 1 << ", " << threads << " threads";
    }
  }
}

CooTensor whole_numbers(const std::vector<std::uint64_t>& dims, std::uint64_t nnz) {
  CooTensor x = cases::make({"", dims, nnz, nullptr, true}, Precision::f32);
  auto& values = std::get<Buffer<float>>(x.values);
  for (std::uint64_t k = 0; k < x.nnz(); ++k) values[k] = static_cast<float>(k % 5) - 2;
  return x;
}

TEST(Copies, RowsOverSeveralChunksAndChunksWithoutRowsBetween) {
  expect_same_as_coo(whole_numbers({3, 400, 500}, 60000), 16);         // rows of 20,000 nonzeros
  expect_same_as_coo(whole_numbers({1, 300, 200000}, 40000), 8);       // one row; most rows empty
  expect_same_as_coo(whole_numbers({20, 17000, 30, 40}, 40000), 32);   // three factors
  expect_same_as_coo(whole_numbers({70000, 30, 9, 8, 7}, 40000), 20);  // four, and 24-bit indices
  expect_same_as_coo(whole_numbers({50, 60}, 2000), 16);
  // Factors of 7 and more MB with indices of 16 bits, whose rows are requested where 2.5 second-level caches are less.
  expect_same_as_coo(whole_numbers({700, 60000, 50000}, 60000), 16);
  expect_same_as_coo(whole_numbers({700, 40000, 30000, 9}, 60000), 32);
  expect_same_as_coo(whole_numbers({3, 40000, 30000}, 60000), 64);  // rows of 20,000 nonzeros that are one sum
  expect_same_as_coo(whole_numbers({30, 4000, 3000}, 60000), 24);   // blocks of columns
  expect_same_as_coo(whole_numbers({17000000, 40, 50}, 20000), 4);  // 32-bit ones
}

TEST(Copies, OutputsLargerThanTheCaches) {
  expect_same_as_coo(whole_numbers({1'100'000, 30, 20}, 20000), 16);  // 70 MB of output, written past the caches
#ifndef POLYAD_SANITIZED
  const CooTensor short_rows = whole_numbers({1'100'000, 30, 20}, 1'200'000);
  ASSERT_FALSE(SortedCopy::build(short_rows, {.mode = 0}, {}).by_length.empty()) << "rows by their length too";
  expect_same_as_coo(short_rows, 16);
#endif
}

}  // namespace
}  // namespace polyad
