// SPDX-License-Identifier: MIT
#include "formats/b_csf/b_csf.hpp"

#include <gtest/gtest.h>

#include <polyad/polyad.hpp>

#include "matrix/cases.hpp"
#include "unit/formats/small_tensors.hpp"

namespace polyad {
namespace {

using Numbers = std::vector<std::uint64_t>;

BCsf built(const CooTensor& x, int mode, std::uint64_t threshold = 128, int threads = 1) {
  FormatOptions options;
  options.mode = mode;
  options.fibre_threshold = threshold;
  Context context;
  context.threads = threads;
  return BCsf::build(x, options, context);
}

TEST(BCsf, SplitsAFibreAtTheThreshold) {
  const BCsf b = built(small::long_fibre(300), 0);
  EXPECT_EQ(small::list(b.tree.ids[1]), (Numbers{1, 1, 1, 0}));
  EXPECT_EQ(small::list(b.tree.pointers[1]), (Numbers{0, 128, 256, 300, 301}));  // 128, 128, 44 and the single one
  EXPECT_EQ(small::list(b.tree.pointers[0]), (Numbers{0, 3, 4}));
  EXPECT_EQ(b.words(), 2U * 2 + 2 * 4 + 301);
}

TEST(BCsf, ThresholdZeroIsThePapers) {
  EXPECT_EQ(small::list(built(small::long_fibre(300), 0, 0).tree.pointers[1]), (Numbers{0, 128, 256, 300, 301}));
}

TEST(BCsf, AFibreAsLongAsTheThresholdStaysWhole) {
  EXPECT_EQ(built(small::long_fibre(128), 0).tree.nodes(1), 2U);
  EXPECT_EQ(built(small::long_fibre(129), 0).tree.nodes(1), 3U);
  EXPECT_EQ(built(small::long_fibre(10), 0, 1).tree.nodes(1), 11U);
}

TEST(BCsf, SplitsAcrossThePartsOfThreads) {
  // The fibre of 50,000 lies in the parts of all three threads; 128 divides none of their borders.
  const CooTensor x = small::long_fibre(50000);
  const BCsf one = built(x, 0, 128, 1);
  const BCsf three = built(x, 0, 128, 3);
  EXPECT_EQ(one.tree.nodes(1), 50000U / 128 + 1 + 1);
  EXPECT_EQ(small::list(one.tree.pointers[1]), small::list(three.tree.pointers[1]));
}

TEST(BCsf, BinsAreBalanced) {
  cases::Case c{"", {50, 60, 4000}, 40000, [](cases::Dice& d, std::uint64_t, auto& at) {
                  at = {cases::skewed(d, 50), cases::skewed(d, 60), d.below(4000)};
                }};
  const CooTensor x = cases::make(c, Precision::f64);
  const BCsf b = built(x, 0);
  ASSERT_EQ(b.bins.count(), (x.nnz() + bin_nonzeros - 1) / bin_nonzeros);
  EXPECT_EQ(b.bins.segments[0], 0U);
  EXPECT_EQ(b.bins.segments[b.bins.count()], b.tree.nodes(1));
  std::uint64_t heaviest = 0;  // slice
  for (std::uint64_t s = 0; s < b.tree.nodes(0); ++s)
    heaviest =
        std::max(heaviest, b.tree.pointer(1, b.tree.pointer(0, s + 1)) - b.tree.pointer(1, b.tree.pointer(0, s)));
  EXPECT_GT(heaviest, 10 * bin_nonzeros);
  for (std::uint64_t i = 0; i < b.bins.count(); ++i) {
    const std::uint64_t begin = b.tree.pointer(1, b.bins.segments[i]);
    const std::uint64_t nonzeros = b.tree.pointer(1, b.bins.segments[i + 1]) - begin;
    EXPECT_LT(nonzeros, bin_nonzeros + 128) << i;
    if (i + 1 < b.bins.count()) {
      EXPECT_GT(nonzeros, bin_nonzeros - 128) << i;
    }
    EXPECT_EQ(b.bins.slices[i], b.tree.path_to(begin)[0]);
  }
}

TEST(BCsf, PredictionIsExact) {
  for (const cases::Case& c : cases::all()) {
    const CooTensor x = cases::make(c, Precision::f64);
    const TensorStatistics s = statistics(x);
    FormatOptions options;
    options.mode = x.order() - 1;
    const BCsf b = BCsf::build(x, options, {});
    const StoragePrediction p = predict_storage(x, s, "b-csf", options);
    EXPECT_EQ(p.words, static_cast<double>(b.words())) << c.name;
    EXPECT_EQ(p.bytes, static_cast<double>(b.bytes())) << c.name;
  }
}

TEST(BCsf, OnlyItsOwnModeIsFast) {
  FormatOptions options;
  options.mode = 1;
  const Tensor x = build(small::full({3, 5, 7}), "b-csf", options);
  EXPECT_EQ(mttkrp_choice(x, 1, 8).name, "mttkrp/b-csf/bins");
  EXPECT_EQ(mttkrp_choice(x, 0, 8).name, "mttkrp/generic");
}

}  // namespace
}  // namespace polyad
