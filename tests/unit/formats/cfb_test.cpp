// SPDX-License-Identifier: MIT
#include "formats/cfb/cfb.hpp"

#include <gtest/gtest.h>

#include <polyad/polyad.hpp>

#include "unit/formats/example_a.hpp"

namespace polyad {
namespace {

FormatOptions for_mode(int mode) {
  FormatOptions o;
  o.mode = mode;
  return o;
}

TEST(Cfb, HasTheFibresOfExampleA) {
  const CooTensor x = example_a();
  const Cfb c = Cfb::build(x, for_mode(0), {});
  const std::vector<std::uint64_t> tb = {1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 14, 15, 16, 17, 19, 20};
  const std::vector<std::uint64_t> tn = {1, 2, 1, 1, 1, 1, 1, 1, 1, 2, 2, 1, 2, 1, 1, 1, 1};
  const std::vector<std::pair<unsigned, double>> buckets = {{1, 3}, {1, 1}, {4, 7}, {3, 4}, {4, 8}, {4, 3}, {1, 9},
                                                            {3, 7}, {3, 5}, {1, 7}, {1, 3}, {4, 2}, {3, 2}, {4, 1},
                                                            {3, 1}, {1, 5}, {3, 6}, {1, 8}, {1, 2}, {4, 6}, {4, 5}};
  ASSERT_EQ(c.fibres(), tb.size());
  for (std::size_t f = 0; f < tb.size(); ++f) {
    EXPECT_EQ(std::get<Buffer<std::uint32_t>>(c.ids)[f] + 1, tb[f]);
    EXPECT_EQ(c.begins.count(f), tn[f]) << "fibre " << tb[f];
  }
  for (std::size_t k = 0; k < buckets.size(); ++k) {
    EXPECT_EQ(std::get<Buffer<std::uint32_t>>(c.indices)[k] + 1, buckets[k].first) << "nonzero " << k;
    EXPECT_EQ(std::get<Buffer<double>>(c.values)[k], buckets[k].second) << "nonzero " << k;
  }
  const StoragePrediction p = predict_storage(x, statistics(x), "cfb", for_mode(0));
  EXPECT_EQ(p.words, 76);
  EXPECT_EQ(p.bytes, static_cast<double>(c.bytes()));
}

/// Ids of 32 bits, of 64 bits, and indices where 64 do not suffice give the same nonzeros back.
TEST(Cfb, NamesFibresInEveryWidth) {
  const std::vector<std::vector<std::uint64_t>> shapes = {
      {4, 1000, 1000},
      {4, 1000000, 1000000},
      {4, 4000000000, 4000000000, 4000000000},
      {9, std::uint64_t{1} << 40U, std::uint64_t{1} << 40U},
  };
  const std::vector<std::size_t> kinds = {1, 2, 0, 0};
  for (std::size_t s = 0; s < shapes.size(); ++s) {
    CooTensor x = make_coo(shapes[s], 3000, Precision::f64, {});
    visit(x, [&]<class Index, class Value>(const CooView<Index, Value>& v) {
      for (std::uint64_t k = 0; k < v.nnz; ++k) {
        for (std::size_t m = 0; m < shapes[s].size(); ++m)  // some fibres of several nonzeros
          v.indices[m][k] =
              static_cast<Index>((m == 0 ? k % 4 : (k / 4 + 1) * 0x9E3779B97F4A7C15ULL / (m + 1)) % shapes[s][m]);
        v.values[k] = static_cast<Value>(k);
      }
    });
    Tensor t = build(x, "cfb", for_mode(0));
    const Cfb& c = *get_if<Cfb>(t.body(0));
    EXPECT_EQ(c.ids.index(), kinds[s]);
    EXPECT_EQ(c.coords.size(), kinds[s] == 0 ? shapes[s].size() - 1 : 0);
    EXPECT_EQ(c.fibres(), statistics(x).modes[0].fibres.count);
    EXPECT_LE(c.fibres(), 750U);
    EXPECT_EQ(static_cast<double>(t.bytes()), predict_storage(x, statistics(x), "cfb", for_mode(0)).bytes);
    CooTensor back = t.to_coo();
    std::vector<int> order;
    for (int m = 0; m < x.order(); ++m) order.push_back(m);
    sort_nonzeros(x, order);
    sort_nonzeros(back, order);
    EXPECT_TRUE(same_nonzeros(x, back)) << "shape " << s;
  }
}

}  // namespace
}  // namespace polyad
