// SPDX-License-Identifier: MIT
#include "formats/alto/alto.hpp"

#include <gtest/gtest.h>

#include <polyad/polyad.hpp>
#include <tuple>

#include "matrix/cases.hpp"

namespace polyad {
namespace {

CooTensor random_tensor(const std::vector<std::uint64_t>& dims, std::uint64_t nnz, Precision precision) {
  return cases::make({"", dims, nnz, nullptr, true}, precision);
}

std::vector<std::uint64_t> largest_of(std::vector<std::uint64_t> dims) {
  for (std::uint64_t& d : dims) --d;
  return dims;
}

/// The key bit by bit, straight from the definition: levels from the lowest up, the longest mode on top of a level.
radix::uint128 key_by_definition(const std::vector<std::uint64_t>& dims, const std::vector<std::uint64_t>& at) {
  std::vector<int> widths;
  for (const std::uint64_t d : dims) widths.push_back(static_cast<int>(std::bit_width(d - 1)));
  std::vector<std::size_t> modes(dims.size());
  for (std::size_t m = 0; m < modes.size(); ++m) modes[m] = modes.size() - 1 - m;
  std::stable_sort(modes.begin(), modes.end(), [&](auto a, auto b) { return widths[a] < widths[b]; });
  radix::uint128 key = 0;
  int position = 0;
  for (int level = 0; level < 64; ++level)
    for (const std::size_t m : modes)
      if (level < widths[m])
        key |= static_cast<radix::uint128>(at[m] >> static_cast<unsigned>(level) & 1U) << position++;
  return key;
}

TEST(BitLayout, KeysAreAsDefinedAndDecodeToTheIndices) {
  const std::vector<std::vector<std::uint64_t>> shapes = {{4, 8, 2},
                                                          {1, 1, 1},
                                                          {1, 7, 1},
                                                          {183, 24, 1140, 1717},
                                                          {3, 5},
                                                          {1, 65537},
                                                          {1ULL << 33U, 3, 9},
                                                          {1ULL << 40U, 1ULL << 39U, 1ULL << 45U},
                                                          {1000003, 999983, 1000033, 17}};
  for (const auto& dims : shapes)
    for (const bool native : {false, true}) {
      const CooTensor x = random_tensor(dims, 700, Precision::f32);
      const BitLayout layout(largest_of(dims), {}, native);
      visit(x, [&]<class Index, class Value>(const CooView<Index, Value>& v) {
        const auto stride = static_cast<std::size_t>(layout.words());
        std::vector<std::uint64_t> keys(v.nnz * stride);
        for (std::uint64_t k = 0; k < v.nnz; ++k) {
          std::vector<std::uint64_t> at;
          for (std::size_t m = 0; m < dims.size(); ++m) at.push_back(v.indices[m][k]);
          const radix::uint128 want = key_by_definition(dims, at);
          for (int w = 0; w < layout.words(); ++w) {
            layout.encode(v.indices, k, 1, w, &keys[k * stride + static_cast<std::size_t>(w)]);
            EXPECT_EQ(keys[k * stride + static_cast<std::size_t>(w)], static_cast<std::uint64_t>(want >> (64 * w)));
          }
        }
        std::vector<std::remove_const_t<Index>> back(v.nnz);
        for (int m = 0; m < v.order; ++m) {
          layout.decode(keys.data(), stride, back.size(), m, back.data());
          EXPECT_TRUE(std::equal(back.begin(), back.end(), v.indices[static_cast<std::size_t>(m)]));
        }
      });
    }
}

TEST(Alto, ExtraBitsOfLongModesAreOnTop) {
  const BitLayout layout = alto_layout(std::vector<std::uint64_t>{4, 8, 2});
  EXPECT_EQ(layout.bits(), 6);
  EXPECT_EQ(layout.field_of(0, 0).mask, 0b001010U);
  EXPECT_EQ(layout.field_of(1, 0).mask, 0b110100U);
  EXPECT_EQ(layout.field_of(2, 0).mask, 0b000001U);
}

TEST(Alto, NonzerosFollowTheLineAndSpansHoldTheirRows) {
  for (const auto& dims : {std::vector<std::uint64_t>{700, 30, 900}, {1ULL << 31U, 1ULL << 30U, 1ULL << 20U}}) {
    const CooTensor x = random_tensor(dims, 20000, Precision::f64);
    const Alto a = Alto::build(x, {}, {});
    EXPECT_EQ(a.key_words, a.layout.bits() <= 64 ? 1U : 2U);
    for (std::uint64_t k = 1; k < x.nnz(); ++k) {
      const auto key = [&](std::uint64_t i) {
        return std::tuple(a.key_words == 2 ? a.keys[2 * i + 1] : 0, a.keys[a.key_words * i]);
      };
      ASSERT_LE(key(k - 1), key(k));
    }
    NonzeroBlock<std::uint32_t, double> block(3);
    for (std::uint64_t s = 0; s < a.segments(); ++s) {
      const std::uint64_t first = s * Alto::segment_nonzeros;
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(x.nnz() - first, block.capacity));
      a.decode(first, count, block);
      for (int m = 0; m < 3; ++m) {
        const Alto::Span span = a.span_of(m, s, s + 1);
        const std::uint32_t* rows = block.indices[static_cast<std::size_t>(m)];
        EXPECT_LE(span.first, *std::min_element(rows, rows + count));
        EXPECT_GE(span.last, *std::max_element(rows, rows + count));
        EXPECT_LT(span.last, dims[static_cast<std::size_t>(m)]);
      }
    }
  }
}

TEST(Alto, TakesWhatThePredictionSays) {
  const std::vector<std::pair<std::vector<std::uint64_t>, double>> cases = {
      {{183, 24, 1140, 1717}, 2}, {{1ULL << 31U, 1ULL << 31U, 4}, 2}, {{1ULL << 31U, 1ULL << 31U, 5}, 4}, {{9, 9}, 2}};
  for (const auto& [dims, words] : cases)
    for (const Precision precision : {Precision::f32, Precision::f64})
      for (const std::uint64_t nnz : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{9000}}) {
        const CooTensor x = random_tensor(dims, nnz, precision);
        const StoragePrediction p = predict_storage(x, {}, "alto");
        EXPECT_EQ(p.words, words * static_cast<double>(nnz));
        EXPECT_EQ(p.bytes, static_cast<double>(build(x, "alto").bytes()));
        EXPECT_TRUE(p.refusal.empty());
      }
}

TEST(Alto, RefusesMoreThan128Bits) {
  const CooTensor x = random_tensor({1ULL << 62U, 1ULL << 60U, 128}, 10, Precision::f32);  // 62 + 60 + 7
  try {
    static_cast<void>(build(x, "alto"));
    FAIL() << "129 bits were held";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::limit);
    EXPECT_NE(std::string(e.what()).find("129 bits"), std::string::npos) << e.what();
  }
  EXPECT_FALSE(predict_storage(x, {}, "alto").refusal.empty());
  EXPECT_NO_THROW(static_cast<void>(build(random_tensor({1ULL << 62U, 1ULL << 60U, 64}, 10, Precision::f32), "alto")));
}

}  // namespace
}  // namespace polyad
