// SPDX-License-Identifier: MIT
#include "formats/f_coo/f_coo.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <polyad/polyad.hpp>

#include "matrix/cases.hpp"

namespace polyad {
namespace {

TEST(FCoo, FlagsTheHandExample) {
  // The tensor of the folder's README, 0-based (i, j, k): value.
  const std::vector<std::array<std::uint32_t, 3>> at = {{0, 0, 1}, {0, 1, 0}, {1, 0, 1},
                                                        {3, 0, 0}, {3, 0, 2}, {3, 3, 0}};
  CooTensor x = make_coo({4, 4, 3}, at.size(), Precision::f64, {});
  visit(x, [&]<class Index, class Value>(const CooView<Index, Value>& v) {
    for (std::size_t k = 0; k < at.size(); ++k) {
      for (std::size_t m = 0; m < 3; ++m) v.indices[m][at.size() - 1 - k] = static_cast<Index>(at[k][m]);
      v.values[at.size() - 1 - k] = static_cast<Value>(k + 1);
    }
  });
  const FCoo f = FCoo::build(x, {.mode = 0}, {});
  EXPECT_EQ(f.bit_flags[0], 0b001101U);  // nonzeros 1, 3 and 4 start a row
  EXPECT_EQ(f.start_flags[0], 1U);
  const auto& rows = std::get<Buffer<std::uint32_t>>(f.rows);
  EXPECT_EQ(std::vector<std::uint32_t>(rows.begin(), rows.end()), (std::vector<std::uint32_t>{0, 1, 3}));
  EXPECT_TRUE(std::get<Buffer<std::uint32_t>>(f.indices[0]).empty());
  const auto& second = std::get<Buffer<std::uint32_t>>(f.indices[1]);
  EXPECT_EQ(std::vector<std::uint32_t>(second.begin(), second.end()), (std::vector<std::uint32_t>{0, 1, 0, 0, 0, 3}));
  const auto& values = std::get<Buffer<double>>(f.values);
  EXPECT_EQ(std::vector<double>(values.begin(), values.end()), (std::vector<double>{1, 2, 3, 4, 5, 6}));
}

TEST(FCoo, FindsTheRowOfEveryNonzero) {
  for (const std::uint64_t dim : {3, 40, 100000}) {  // rows longer than a chunk, within one, and of one nonzero
    const CooTensor x = cases::make({"", {20, dim, 30}, 5000, nullptr, true}, Precision::f32);
    Context context;
    context.threads = 3;
    const FCoo f = FCoo::build(x, {.mode = 1}, context);
    std::vector<std::uint64_t> sorted;
    for (std::uint64_t k = 0; k < x.nnz(); ++k) sorted.push_back(x.index(1, k));
    std::sort(sorted.begin(), sorted.end());
    const auto& rows = std::get<Buffer<std::uint32_t>>(f.rows);
    for (std::uint64_t k = 0; k < x.nnz(); ++k) ASSERT_EQ(rows[f.row_place(k)], sorted[k]) << k;
    for (std::uint64_t c = 0; c * FCoo::chunk_nonzeros < x.nnz(); ++c) {
      const std::uint64_t first = c * FCoo::chunk_nonzeros;
      const bool starts = first == 0 || sorted[first] != sorted[first - 1];
      ASSERT_EQ((f.start_flags[c / 64] >> (c % 64) & 1U) == 1, starts) << c;
      ASSERT_EQ(rows[f.chunk_row[c]], sorted[first]);
    }
    NonzeroBlock<std::uint32_t, float> block(3);
    for (const std::uint64_t first : {0U, 1U, 63U, 500U, 511U, 512U, 4500U}) {
      f.decode(first, 500, block);
      for (std::size_t k = 0; k < 500; ++k) ASSERT_EQ(block.indices[1][k], sorted[first + k]);
    }
  }
}

TEST(FCoo, TakesTheBytesPredicted) {
  const CooTensor x = cases::make({"", {30, 40, 50}, 1300, nullptr, true}, Precision::f64);
  const FormatOptions options{.mode = 2};
  const StoragePrediction p = predict_storage(x, statistics(x), "f-coo", options);
  EXPECT_DOUBLE_EQ(p.words * 32, 1300 * (64 + 1 + 1.0 / 512));
  EXPECT_EQ(p.bytes, static_cast<double>(build(x, "f-coo", options).bytes()));
}

}  // namespace
}  // namespace polyad
