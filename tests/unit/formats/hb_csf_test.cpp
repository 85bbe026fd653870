// SPDX-License-Identifier: MIT
#include "formats/hb_csf/hb_csf.hpp"

#include <gtest/gtest.h>

#include <polyad/polyad.hpp>

#include "matrix/cases.hpp"
#include "unit/formats/small_tensors.hpp"

namespace polyad {
namespace {

using Numbers = std::vector<std::uint64_t>;

HbCsf built(const CooTensor& x, int mode = 0, int threads = 1) {
  FormatOptions options;
  options.mode = mode;
  Context context;
  context.threads = threads;
  return HbCsf::build(x, options, context);
}

double words_per_nonzero(const HbCsf& h) {
  return static_cast<double>(h.words()) / static_cast<double>(h.tensor_shape.nnz);
}

TEST(HbCsf, ExampleC) {
  const HbCsf h = built(small::example_c());
  EXPECT_EQ(small::list(h.coo.indices[0]), (Numbers{0}));
  EXPECT_EQ(small::list(h.coo.indices[1]), (Numbers{3}));
  EXPECT_EQ(small::list(h.coo.indices[2]), (Numbers{2}));
  EXPECT_EQ(small::list(h.coo.values), (Numbers{2}));
  EXPECT_EQ(small::list(h.csl.slice_ids), (Numbers{1}));
  EXPECT_EQ(small::list(h.csl.slice_pointers), (Numbers{0, 3}));
  EXPECT_EQ(small::list(h.csl.indices[0]), (Numbers{0, 2, 3}));
  EXPECT_EQ(small::list(h.csl.indices[1]), (Numbers{3, 0, 1}));
  EXPECT_EQ(small::list(h.csl.values), (Numbers{5, 3, 7}));
  EXPECT_EQ(small::list(h.tree.ids[0]), (Numbers{2}));
  EXPECT_EQ(small::list(h.tree.ids[1]), (Numbers{1}));
  EXPECT_EQ(small::list(h.tree.pointers[1]), (Numbers{0, 4}));
  EXPECT_EQ(small::list(h.tree.ids[2]), (Numbers{0, 1, 2, 4}));
  EXPECT_EQ(small::list(h.tree.values), (Numbers{1, 6, 8, 4}));
  EXPECT_EQ(h.coo_words(), 3U);
  EXPECT_EQ(h.csl.words(), 8U);
  EXPECT_EQ(h.tree.words(), 8U);
  EXPECT_EQ(h.words(), 19U);
}

TEST(HbCsf, EqualCoordinatesMakeAFibreOfTwo) {
  const HbCsf h = built(small::of({2, 2, 2}, {{1, 0, 1}, {1, 0, 1}, {0, 0, 0}}));
  EXPECT_EQ(h.coo.nnz(), 1U);
  EXPECT_EQ(h.csl.nnz(), 0U);
  EXPECT_EQ(h.tree.nnz(), 2U);
}

TEST(HbCsf, SingleNonzerosTakeThreeWords) {
  std::vector<std::vector<std::uint64_t>> cells;
  for (std::uint64_t k = 0; k < 500; ++k) cells.push_back({k, k * 7 % 500, k * 11 % 500});
  const HbCsf h = built(small::of({500, 500, 500}, cells));
  EXPECT_EQ(h.words(), 1500U);
  EXPECT_EQ(h.coo.nnz(), 500U);
}

TEST(HbCsf, LongFibresTakeOneWord) {
  const HbCsf h = built(small::full({2, 3, 4000}));
  EXPECT_GE(words_per_nonzero(h), 1.0);
  EXPECT_LT(words_per_nonzero(h), 1.02);  // 2 words per 128 for the segments of fibres
}

TEST(HbCsf, BetweenOneAndThreeWordsAtOrderThree) {
  for (const cases::Case& c : cases::all()) {
    if (c.dims.size() != 3 || c.nnz == 0) continue;
    const CooTensor x = cases::make(c, Precision::f32);
    for (int mode = 0; mode < 3; ++mode) {
      const HbCsf h = built(x, mode);
      EXPECT_GE(words_per_nonzero(h), 1.0) << c.name << mode;
      EXPECT_LE(words_per_nonzero(h), 3.0) << c.name << mode;
      EXPECT_EQ(h.coo.nnz() + h.csl.nnz() + h.tree.nnz(), x.nnz());
    }
  }
}

TEST(HbCsf, PredictionIsExact) {
  for (const cases::Case& c : cases::all()) {
    const CooTensor x = cases::make(c, Precision::f32);
    const TensorStatistics s = statistics(x);
    for (int mode = 0; mode < x.order(); ++mode) {
      FormatOptions options;
      options.mode = mode;
      const HbCsf h = built(x, mode);
      const StoragePrediction p = predict_storage(x, s, "hb-csf", options);
      EXPECT_EQ(p.words, static_cast<double>(h.words())) << c.name << mode;
      EXPECT_EQ(p.bytes, static_cast<double>(h.bytes())) << c.name << mode;
    }
  }
}

TEST(HbCsf, SameGroupsForAnyNumberOfThreads) {
  cases::Case c{"", {40000, 300, 400}, 70000, [](cases::Dice& d, std::uint64_t, auto& at) {
                  at = {cases::skewed(d, 40000), d.below(300), d.below(400)};
                }};
  const CooTensor x = cases::make(c, Precision::f64);
  const HbCsf a = built(x, 0, 1);
  const HbCsf b = built(x, 0, 4);
  EXPECT_GT(a.coo.nnz(), 0U);
  EXPECT_GT(a.csl.nnz(), 0U);
  EXPECT_GT(a.tree.nnz(), 0U);
  EXPECT_EQ(small::list(a.coo.values), small::list(b.coo.values));
  EXPECT_EQ(small::list(a.csl.slice_pointers), small::list(b.csl.slice_pointers));
  EXPECT_EQ(small::list(a.csl.slice_ids), small::list(b.csl.slice_ids));
  EXPECT_EQ(small::list(a.csl.indices[1]), small::list(b.csl.indices[1]));
  EXPECT_EQ(small::list(a.tree.pointers[1]), small::list(b.tree.pointers[1]));
  EXPECT_EQ(small::list(a.tree.ids[2]), small::list(b.tree.ids[2]));
}

TEST(HbCsf, OnlyItsOwnModeIsFast) {
  FormatOptions options;
  options.mode = 2;
  const Tensor x = build(small::full({3, 5, 7}), "hb-csf", options);
  EXPECT_EQ(mttkrp_choice(x, 2, 8).name, "mttkrp/hb-csf/three");
  EXPECT_EQ(mttkrp_choice(x, 1, 8).name, "mttkrp/generic");
}

}  // namespace
}  // namespace polyad
