// SPDX-License-Identifier: MIT
/// \file What the battery's whole numbers cannot show of the loop over trees.
#include "kernels/mttkrp/tree_loop.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <polyad/polyad.hpp>

#include "matrix/cases.hpp"
#include "unit/formats/small_tensors.hpp"

namespace polyad {
namespace {

/// Fibres of one and two nonzeros in turn: the loop does two leaves at a time and masks the second. Whatever the masked
/// leaf is, nothing of it may reach the row.
TEST(TreeLoop, ANeighboursInfinityStaysWithIt) {
  const std::vector<std::vector<std::uint64_t>> cells = {{0, 0, 1}, {1, 0, 5}, {1, 0, 7}, {2, 1, 5}, {3, 0, 1},
                                                         {4, 1, 5}, {4, 1, 6}, {5, 0, 2}, {5, 1, 2}, {5, 1, 3}};
  CooTensor x = small::of({6, 7, 8}, cells);
  std::get<Buffer<double>>(x.values)[5] = std::numeric_limits<double>::infinity();  // in slice 4
  for (const char* format : {"csf-all", "csf-one", "b-csf", "hb-csf"}) {
    Tensor t = build(x, format);
    std::vector<FactorMatrix<double>> factors;
    for (const std::uint64_t d : x.dims) {
      FactorMatrix<double>& f = factors.emplace_back(Context{}, d, 5);
      for (std::uint64_t i = 0; i < d; ++i)
        for (std::uint64_t r = 0; r < 5; ++r) f(i, r) = 1;
    }
    for (std::uint64_t r = 0; r < 5; ++r) factors[2](5, r) = std::nan("");
    FactorMatrix<double> out(Context{}, 6, 5);
    Workspace workspace;
    static_cast<void>(mttkrp<double>(t, std::span<const FactorMatrix<double>>(factors), 0, out, workspace));
    const std::vector<double> expected = {1, NAN, NAN, 5, NAN, 8 + 9 + 10};
    for (std::uint64_t i = 0; i < 6; ++i) {
      if (std::isnan(expected[i])) {
        EXPECT_TRUE(std::isnan(out(i, 4))) << format << " row " << i;
      } else {
        EXPECT_EQ(out(i, 4), expected[i]) << format << " row " << i;
      }
    }
  }
}

/// The nodes of a chunk at every level, against a walk over all pointers.
TEST(TreeLoop, ChunksTouchTheNodesAboveTheirLeaves) {
  const CooTensor x = cases::make({"", {9, 30, 20, 40}, 3000}, Precision::f64);
  const FibreTree tree = build_tree(x, std::vector<int>{0, 2, 1, 3}, {});
  Tensor t = build(x, "csf-one");
  std::vector<FactorMatrix<double>> factors;
  for (const std::uint64_t d : x.dims) factors.emplace_back(Context{}, d, 4);
  FactorMatrix<double> out(Context{}, 9, 4);
  Workspace workspace;
  const Context context;
  PendingUpdate<double> nothing;
  const MttkrpRequest<double> request{t.body(0), factors, 0, out, workspace, context, nothing};
  const TreePlan<double> plan(request, tree, 0);
  for (const auto& [begin, end] : {std::pair{0U, 1U}, {0U, 3000U}, {17U, 18U}, {500U, 1700U}, {2999U, 3000U}}) {
    if (end > tree.nnz()) continue;
    const TreeLoop<double> loop = plan.over(begin, end);
    for (int h = 0; h < 4; ++h) {
      const auto level = static_cast<std::size_t>(3 - h);
      EXPECT_EQ(loop.levels[static_cast<std::size_t>(h)].begin, tree.path_to(begin)[level]);
      EXPECT_EQ(loop.levels[static_cast<std::size_t>(h)].end, tree.path_to(end - 1)[level] + 1);
    }
  }
}

}  // namespace
}  // namespace polyad
