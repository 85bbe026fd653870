// SPDX-License-Identifier: MIT
#include "formats/csf/csf.hpp"

#include <gtest/gtest.h>

#include <polyad/polyad.hpp>

#include "matrix/cases.hpp"
#include "unit/formats/small_tensors.hpp"

namespace polyad {
namespace {

using Numbers = std::vector<std::uint64_t>;

TEST(Csf, TreeOfExampleC) {
  const FibreTree t = build_tree(small::example_c(), std::vector<int>{0, 1, 2}, {});
  EXPECT_EQ(small::list(t.ids[0]), (Numbers{0, 1, 2}));
  EXPECT_EQ(small::list(t.pointers[0]), (Numbers{0, 1, 4, 5}));
  EXPECT_EQ(small::list(t.ids[1]), (Numbers{3, 0, 2, 3, 1}));
  EXPECT_EQ(small::list(t.pointers[1]), (Numbers{0, 1, 2, 3, 4, 8}));
  EXPECT_EQ(small::list(t.ids[2]), (Numbers{2, 3, 0, 1, 0, 1, 2, 4}));
  EXPECT_EQ(small::list(t.values), (Numbers{2, 5, 3, 7, 1, 6, 8, 4}));
  EXPECT_EQ(t.words(), 24U);                    // 2*3 + 2*5 + 8
  EXPECT_EQ(t.bytes(), (24U + 2) * 4 + 8 * 8);  // and a closing pointer per inner level, and the values
  EXPECT_EQ(t.path_to(3)[0], 1U);
  EXPECT_EQ(t.path_to(3)[1], 3U);
  EXPECT_EQ(t.path_to(7)[1], 4U);
}

TEST(Csf, OtherOrderOfModes) {
  const FibreTree t = build_tree(small::example_c(), std::vector<int>{2, 0, 1}, {});
  EXPECT_EQ(small::list(t.ids[0]), (Numbers{0, 1, 2, 3, 4}));
  EXPECT_EQ(small::list(t.pointers[0]), (Numbers{0, 2, 4, 6, 7, 8}));
  EXPECT_EQ(small::list(t.ids[1]), (Numbers{1, 2, 1, 2, 0, 2, 1, 2}));
  EXPECT_EQ(small::list(t.ids[2]), (Numbers{2, 1, 3, 1, 3, 1, 0, 1}));
  EXPECT_EQ(t.words(), 2U * 5 + 2 * 8 + 8);
}

TEST(Csf, EqualCoordinatesAreTwoLeaves) {
  const FibreTree t =
      build_tree(small::of({2, 2, 2}, {{1, 0, 1}, {0, 0, 0}, {1, 0, 1}}), std::vector<int>{0, 1, 2}, {});
  EXPECT_EQ(small::list(t.pointers[1]), (Numbers{0, 1, 3}));
  EXPECT_EQ(small::list(t.ids[2]), (Numbers{0, 1, 1}));
  EXPECT_EQ(small::list(t.values), (Numbers{2, 1, 3}));
}

TEST(Csf, WhichTrees) {
  const Numbers dims = {50, 9, 70, 20};
  using Orders = std::vector<std::vector<int>>;
  EXPECT_EQ(Csf::mode_orders(dims, Csf::Trees::one), (Orders{{1, 3, 0, 2}}));
  EXPECT_EQ(Csf::mode_orders(dims, Csf::Trees::two), (Orders{{1, 3, 0, 2}, {2, 1, 3, 0}}));
  EXPECT_EQ(Csf::mode_orders(dims, Csf::Trees::all), (Orders{{0, 1, 3, 2}, {1, 3, 0, 2}, {2, 1, 3, 0}, {3, 1, 0, 2}}));
}

TEST(Csf, SortedInputIsCopiedNotTaken) {
  CooTensor x = small::example_c();
  sort_nonzeros(x, std::vector<int>{0, 1, 2});
  const FibreTree t = build_tree(x, std::vector<int>{0, 1, 2}, {});
  std::get<Buffer<double>>(x.values)[0] = 99;
  EXPECT_EQ(small::list(t.values)[0], 2U);
}

TEST(Csf, KernelsByLevel) {
  const CooTensor x = small::full({3, 5, 7});
  const Tensor one = build(x, "csf-one");
  EXPECT_EQ(mttkrp_choice(one, 0, 8).name, "mttkrp/csf/root");
  EXPECT_EQ(mttkrp_choice(one, 1, 8).name, "mttkrp/csf/inner");
  EXPECT_EQ(mttkrp_choice(one, 2, 8).name, "mttkrp/csf/leaf");
  EXPECT_EQ(mttkrp_choice(build(x, "csf-two"), 2, 8).name, "mttkrp/csf/root");
  for (int mode = 0; mode < 3; ++mode) EXPECT_EQ(mttkrp_choice(build(x, "csf-all"), mode, 8).name, "mttkrp/csf/root");
}

TEST(Csf, PredictionIsExact) {
  for (const cases::Case& c : cases::all()) {
    const CooTensor x = cases::make(c, Precision::f32);
    const TensorStatistics s = statistics(x);
    for (const auto& [name, which] : {std::pair{"csf-one", Csf::Trees::one}, std::pair{"csf-two", Csf::Trees::two},
                                      std::pair{"csf-all", Csf::Trees::all}}) {
      const Csf built = Csf::build(x, which, {});
      const StoragePrediction p = predict_storage(x, s, name);
      EXPECT_EQ(p.words, static_cast<double>(built.words())) << name << ", " << c.name;
      EXPECT_EQ(p.bytes, static_cast<double>(built.bytes())) << name << ", " << c.name;
    }
  }
}

TEST(Csf, SameTreeForAnyNumberOfThreads) {
  // 70,000 nonzeros are enough for four parts.
  cases::Case c{"", {60, 70, 80}, 70000, nullptr, true};
  const CooTensor x = cases::make(c, Precision::f64);
  Context one;
  one.threads = 1;
  Context four;
  four.threads = 4;
  const std::vector<int> order = {2, 0, 1};
  const FibreTree a = build_tree(x, order, one);
  const FibreTree b = build_tree(x, order, four);
  for (std::size_t l = 0; l < 3; ++l) EXPECT_EQ(small::list(a.ids[l]), small::list(b.ids[l]));
  for (std::size_t l = 0; l < 2; ++l) EXPECT_EQ(small::list(a.pointers[l]), small::list(b.pointers[l]));
  EXPECT_EQ(small::list(a.pointers[1]).back(), 70000U);
}

TEST(Csf, WideIndicesThatNeedNotBe) {
  CooTensor wide = make_coo({3, 4, 5}, 2, Precision::f32, IndexWidth::u64, {});
  std::get<Buffer<std::uint64_t>>(wide.indices[2])[0] = 4;
  const FibreTree t = build_tree(wide, std::vector<int>{0, 1, 2}, {});
  EXPECT_EQ(t.ids[2].index(), 0U);  // 32 bits
  EXPECT_EQ(small::list(t.ids[2]), (Numbers{0, 4}));
  const std::uint64_t above = std::uint64_t{1} << 33U;
  CooTensor needed = make_coo({above, 4}, 1, Precision::f32, {});
  std::get<Buffer<std::uint64_t>>(needed.indices[0])[0] = above - 1;
  const Tensor x = build(needed, "csf-one");
  EXPECT_EQ(mttkrp_choice(x, 1, 4).name, "mttkrp/generic");
  EXPECT_TRUE(same_nonzeros(x.to_coo(), needed));
}

TEST(Csf, MemoryLimitIsHonoured) {
  const CooTensor x = small::full({40, 40, 40});
  Context context;
  context.memory = std::make_shared<MemoryBudget>(x.bytes() / 2);
  EXPECT_THROW(static_cast<void>(build(x, "csf-all", {}, context)), Error);
}

}  // namespace
}  // namespace polyad
