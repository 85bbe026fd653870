// SPDX-License-Identifier: MIT
#include "core/estimate.hpp"

#include <gtest/gtest.h>

#include <polyad/polyad.hpp>

namespace polyad {
namespace {

CooTensor anywhere(const std::vector<std::uint64_t>& dims, std::uint64_t nnz) {
  GenerateOptions options;
  options.dims = dims;
  options.nnz = nnz;
  options.precision = Precision::f32;
  return generate(options);
}

TEST(Estimate, RowsBetweenTwoUsesOfARow) {
  const CooTensor x = anywhere({10, 1000, 600}, 2000);
  const TensorSample sample(x, {});
  const EstimateRequest q{sample, 16, RowCost{}};
  EXPECT_EQ(q.row_bytes(), 64);
  EXPECT_EQ(q.bytes_between_uses(0, -1), 3 * 10 * 64);
  EXPECT_EQ(q.bytes_between_uses(1, -1), (10 + 1000 + 600) * 64);
  EXPECT_EQ(q.bytes_between_uses(1, 2), (10 + 1000) * 64);
  EXPECT_EQ(q.bytes_between_uses(2, 0), (600 + 600) * 64);
}

TEST(Estimate, RowsBetweenTwoUsesAlongALine) {
  // A box of side s has nnz (s/1000)^3 nonzeros: as many as rows of a mode at s = 100, so at the power of 2 above it.
  const CooTensor cube = anywhere({1000, 1000, 1000}, 100000);
  const TensorSample of_cube(cube, {});
  EXPECT_EQ((EstimateRequest{of_cube, 16, RowCost{}}).bytes_between_uses_along_line(), 3 * 128 * 64);
  // So few nonzeros that no box uses a row twice: everything lies between.
  const CooTensor empty_box = anywhere({1000, 500, 1000}, 20);
  const TensorSample of_empty(empty_box, {});
  EXPECT_EQ((EstimateRequest{of_empty, 16, RowCost{}}).bytes_between_uses_along_line(), 2500 * 64);
}

TEST(Estimate, BoxesMakeLoopsOverManyRowsCheaper) {
  const CooTensor x = anywhere({30000, 40000, 50000}, 1000000);
  const TensorSample sample(x, {});
  const RowCost cost;
  const EstimateRequest q{sample, 16, cost};
  EXPECT_LT(nonzero_loops_ns(q, {.along_line = true}), 0.9 * nonzero_loops_ns(q, {}));
  EXPECT_LT(nonzero_loops_ns(q, {}), nonzero_loops_ns(q, {.outputs = 4}));
}

}  // namespace
}  // namespace polyad
