// SPDX-License-Identifier: MIT
#include "formats/hocfs/hocfs.hpp"

#include <gtest/gtest.h>

#include <polyad/polyad.hpp>
#include <set>

#include "unit/formats/example_a.hpp"

namespace polyad {
namespace {

FormatOptions for_mode(int mode) {
  FormatOptions o;
  o.mode = mode;
  return o;
}

using Numbers = std::vector<std::uint64_t>;

Numbers from_one(const IndexBuffer& b, std::uint64_t begin, std::uint64_t end) {
  Numbers all;
  for (std::uint64_t i = begin; i < end; ++i) all.push_back(std::get<Buffer<std::uint32_t>>(b)[i] + 1);
  return all;
}

TEST(Hocfs, SlicesRunOverTheNextMode) {
  EXPECT_EQ(hocfs_modes(3, 0), (std::vector<int>{1, 2, 0}));
  EXPECT_EQ(hocfs_modes(3, 1), (std::vector<int>{2, 0, 1}));
  EXPECT_EQ(hocfs_modes(3, 2), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(hocfs_modes(5, 3), (std::vector<int>{4, 0, 1, 2, 3}));
  EXPECT_EQ(hocfs_modes(2, 0), (std::vector<int>{1, 0}));
}

/// Table 1 of the paper.
TEST(HocfsCsr, HasTheSlicesOfExampleA) {
  const CooTensor x = example_a();
  const HocfsCsr h = HocfsCsr::build(x, for_mode(2), {});
  const SlicesOfSlices& tree = h.parts.tree;
  ASSERT_EQ(tree.levels(), 1U);
  EXPECT_EQ(from_one(tree.slice_ids[0], 0, tree.inner_slices()), (Numbers{1, 3, 4}));
  const std::vector<Numbers> fibres = {{1, 2, 3, 4, 5}, {1, 2, 3, 4}, {1, 2, 3, 5}};
  const std::vector<Numbers> ap = {{0, 2, 3, 5, 7, 8}, {0, 1, 2, 4, 6}, {0, 2, 3, 5, 7}};
  const std::vector<Numbers> aj = {{1, 2, 2, 2, 3, 3, 4, 1}, {3, 4, 1, 4, 2, 3}, {2, 4, 1, 3, 4, 3, 4}};
  const std::vector<Numbers> av = {{3, 1, 9, 7, 3, 5, 8, 2}, {4, 7, 5, 2, 1, 6}, {7, 8, 3, 2, 1, 6, 5}};
  ASSERT_EQ(tree.inner_slices(), 3U);
  for (std::size_t s = 0; s < 3; ++s) {
    const std::uint64_t begin = tree.first_fibre(s);
    const std::uint64_t end = tree.first_fibre(s + 1);
    EXPECT_EQ(from_one(tree.fibre_ids, begin, end), fibres[s]);
    Numbers pointers;
    for (std::uint64_t f = begin; f <= end; ++f) pointers.push_back(h.parts.begins[f] - h.parts.begins[begin]);
    EXPECT_EQ(pointers, ap[s]);
    EXPECT_EQ(from_one(h.parts.indices, h.parts.begins[begin], h.parts.begins[end]), aj[s]);
    for (std::size_t k = 0; k < av[s].size(); ++k)
      EXPECT_EQ(std::get<Buffer<double>>(h.parts.values)[h.parts.begins[begin] + k], static_cast<double>(av[s][k]));
  }
  const StoragePrediction p = predict_storage(x, statistics(x), "hocfs-csr", for_mode(2));
  EXPECT_EQ(p.words, 74);
  EXPECT_EQ(p.bytes, static_cast<double>(h.bytes()));
}

/// Rows of a slice side by side, element by element; x is padding.
TEST(HocfsEll, PadsTheSlicesOfExampleA) {
  const CooTensor x = example_a(Precision::f32);
  const HocfsEll h = HocfsEll::build(x, for_mode(2), {});
  const std::uint32_t pad = ~0U;
  const std::vector<std::uint32_t> aj = {0, 1, 1, 2, 0,   1,   pad, 2, 3, pad,  // slice 1: 5 rows of 2
                                         2, 3, 0, 1, pad, pad, 3,   2,          // slice 3: 4 rows of 2
                                         1, 0, 2, 2, 3,   pad, 3,   3};         // slice 4: 4 rows of 2
  const std::vector<float> av = {3, 9, 7, 5, 2, 1, 0, 3, 8, 0, 4, 7, 5, 1, 0, 0, 2, 6, 7, 3, 2, 6, 8, 0, 1, 5};
  ASSERT_EQ(h.elements(), aj.size());
  EXPECT_EQ(h.slice_elements[1], 10U);
  EXPECT_EQ(h.slice_elements[2], 18U);
  for (std::size_t e = 0; e < aj.size(); ++e) {
    EXPECT_EQ(std::get<Buffer<std::uint32_t>>(h.indices)[e], aj[e]) << "element " << e;
    EXPECT_EQ(std::get<Buffer<float>>(h.values)[e], av[e]) << "element " << e;
  }
  const StoragePrediction p = predict_storage(x, statistics(x), "hocfs-ell", for_mode(2));
  EXPECT_EQ(p.words, 2 * 3 + 3 + 13 + 2 * 26);
  EXPECT_EQ(p.bytes, static_cast<double>(h.bytes()));
}

/// A row of 100,000 makes a slice of as many short rows ten thousand million elements.
TEST(HocfsEll, RefusesWhatPaddingWouldExplode) {
  const std::uint64_t n = 100000;
  CooTensor x = make_coo({1, n, n}, 2 * n, Precision::f64, {});
  visit(x, [&]<class Index, class Value>(const CooView<Index, Value>& v) {
    for (std::uint64_t k = 0; k < n; ++k) {
      v.indices[2][k] = static_cast<Index>(k);
      v.indices[1][n + k] = static_cast<Index>(k);
    }
  });
  try {
    static_cast<void>(build(x, "hocfs-ell", for_mode(2)));
    FAIL() << "10^10 elements were built";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::limit);
    EXPECT_NE(std::string(e.what()).find("10,000,100,000 elements for 200,000 nonzeros"), std::string::npos)
        << e.what();
    EXPECT_EQ(predict_storage(x, statistics(x), "hocfs-ell", for_mode(2)).refusal, e.what());
  }
  EXPECT_EQ(build(x, "hocfs-csr", for_mode(2)).nnz(), 2 * n);
}

/// Algorithm 2: slices of slices until order 3 remains.
TEST(HocfsCsr, TakesSlicesOfSlicesForHigherOrders) {
  CooTensor x = make_coo({3, 4, 5, 6, 7}, 400, Precision::f64, {});
  visit(x, [&]<class Index, class Value>(const CooView<Index, Value>& v) {
    for (std::uint64_t k = 0; k < v.nnz; ++k)
      for (std::size_t m = 0; m < 5; ++m)
        v.indices[m][k] = static_cast<Index>((k + 1) * 0x9E3779B97F4A7C15ULL / (m + 3) % x.dims[m]);
  });
  for (int mode = 0; mode < 5; ++mode) {
    const HocfsCsr h = HocfsCsr::build(x, for_mode(mode), {});
    ASSERT_EQ(h.parts.tree.levels(), 3U);
    std::vector<std::uint64_t> found;
    for (const Offsets& o : h.parts.tree.slice_begins) found.push_back(o.groups());
    found.push_back(h.parts.tree.fibres());
    for (std::size_t prefix = 1; prefix <= 4; ++prefix) {
      std::set<Numbers> different;
      for (std::uint64_t k = 0; k < x.nnz(); ++k) {
        Numbers at;
        for (std::size_t m = 0; m < prefix; ++m) at.push_back(x.index(hocfs_modes(5, mode)[m], k));
        different.insert(at);
      }
      EXPECT_EQ(found[prefix - 1], different.size()) << "mode " << mode + 1 << ", level " << prefix;
    }
    const StoragePrediction p = predict_storage(x, statistics(x), "hocfs-csr", for_mode(mode));
    EXPECT_EQ(p.bytes, static_cast<double>(h.bytes()));
    EXPECT_EQ(p.words, 2.0 * static_cast<double>(h.parts.tree.slices() + h.parts.tree.fibres() + x.nnz()));
    const HocfsEll ell = HocfsEll::build(x, for_mode(mode), {});
    EXPECT_EQ(predict_storage(x, statistics(x), "hocfs-ell", for_mode(mode)).bytes, static_cast<double>(ell.bytes()));
  }
}

/// MovieLens-1M, tables 4 to 6 of the paper: its words from its numbers of slices and fibres.
TEST(Hocfs, WordsOfMovieLens) {
  const CooTensor x = make_coo({6040, 3952, 31}, 1000209, Precision::f64, {});
  TensorStatistics s;
  s.modes.resize(3);
  s.modes[0].slices.count = 6040;
  s.modes[1].slices.count = 3706;
  s.modes[2].slices.count = 31;
  s.modes[0].fibres.count = 89427;
  s.modes[1].fibres.count = 17723;
  s.modes[2].fibres.count = 1000209;
  const auto words = [&](std::string_view format, int mode) {
    return predict_storage(x, s, format, for_mode(mode)).words;
  };
  EXPECT_EQ(words("hocoo", 0), 4000836);
  EXPECT_EQ(words("hocsr", 0), 2122930);
  EXPECT_EQ(words("cfb", 0), 2179272);
  EXPECT_EQ(words("hocfs-csr", 0), 2186684);
  EXPECT_EQ(words("hocsr", 1), 2187658);
  EXPECT_EQ(words("cfb", 1), 2035864);
  EXPECT_EQ(words("hocfs-csr", 1), 2035926);
  EXPECT_EQ(words("hocsr", 2), 25870498);
  EXPECT_EQ(words("cfb", 2), 4000836);
}

}  // namespace
}  // namespace polyad
