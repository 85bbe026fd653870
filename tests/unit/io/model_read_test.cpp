// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>
#include <polyad/polyad.hpp>

#include "unit/scratch.hpp"

namespace polyad {
namespace {

/// Numbers whose decimals are long, negative, tiny and zero.
CpModel long_model(std::vector<std::uint64_t> dims, std::uint64_t rank) {
  CpModel model;
  double v = -1.0 / 3;
  const auto next = [&] { return v = std::abs(v) > 1e100 ? 1e-200 / 7 : v * -1.37; };
  for (std::uint64_t r = 0; r < rank; ++r) model.weights.push_back(r == 1 ? 0 : next());
  for (const std::uint64_t d : dims) {
    Matrix& a = model.factors.emplace_back(d, rank);
    for (double& x : a.values) x = next();
  }
  return model;
}

void expect_same(const CpModel& a, const CpModel& b) {
  EXPECT_EQ(a.weights, b.weights);
  ASSERT_EQ(a.order(), b.order());
  for (std::size_t m = 0; m < a.factors.size(); ++m) {
    EXPECT_EQ(a.factors[m].rows, b.factors[m].rows);
    EXPECT_EQ(a.factors[m].cols, b.factors[m].cols);
    EXPECT_EQ(a.factors[m].values, b.factors[m].values);
  }
}

std::string message_of(const std::string& path, const Context& context = {}) {
  try {
    (void)read_model(path, context);
  } catch (const Error& e) {
    return e.what();
  }
  return "read";
}

TEST(ModelRead, TheSameBitsFromEveryKindOfFile) {
  const test::Scratch scratch;
  // 40,000 rows are several blocks of text.
  const CpModel model = long_model({40000, 3, 17}, 3);
  write(model, scratch.path("dir"));
  expect_same(read_model(scratch.path("dir")), model);
  expect_same(read_model(scratch.path("dir/model.ktensor")), model);
  std::filesystem::remove(scratch.path("dir/model.ktensor"));
  expect_same(read_model(scratch.path("dir/")), model);
  write(model, scratch.path("model.npz"));
  expect_same(read_model(scratch.path("model.npz")), model);
}

TEST(ModelRead, NpzAppearsWholeOrNotAtAll) {
  const test::Scratch scratch;
  CpModel model = long_model({2, 3}, 2);
  model.weights.pop_back();
  EXPECT_THROW(write(model, scratch.path("model.npz")), Error);
  EXPECT_EQ(scratch.count(), 0U);
}

TEST(ModelRead, SaysWhereAndWhat) {
  const test::Scratch scratch;
  EXPECT_NE(message_of(scratch.file("a", "tensor\n")).find(":1: found 'tensor', expected 'ktensor'"),
            std::string::npos);
  EXPECT_NE(message_of(scratch.file("b", "ktensor\n2\n2 1\n1\n1\nmatrix\n2\n2 1\n1\nx\n")).find(":10: found 'x'"),
            std::string::npos);
  EXPECT_NE(
      message_of(scratch.file("c", "ktensor\n2\n2 1\n1\n1\nmatrix\n2\n2 1\n1\n")).find("found the end of the file"),
      std::string::npos);
  // A header that promises more than memory holds allocates nothing.
  EXPECT_NE(
      message_of(scratch.file("d", "ktensor\n1\n9000000000000000000\n2\n1 1\nmatrix\n2\n9000000000000000000 2\n1"))
          .find("found the end of the file"),
      std::string::npos);
}

TEST(ModelRead, RespectsTheLimit) {
  const test::Scratch scratch;
  write(long_model({20000}, 4), scratch.path("model.npz"));
  write(long_model({20000}, 4), scratch.path("dir"));
  Context context;
  context.memory = std::make_shared<MemoryBudget>(300'000);
  EXPECT_NE(message_of(scratch.path("model.npz"), context).find("the model needs"), std::string::npos)
      << message_of(scratch.path("model.npz"), context);
  EXPECT_NE(message_of(scratch.path("dir"), context).find("the model needs"), std::string::npos);
  EXPECT_EQ(context.memory->used(), 0U);
}

TEST(ModelRead, MatrixText) {
  const test::Scratch scratch;
  Matrix a(2, 2);
  a.values = {1, -0.1, 0, 1e-300};
  write(a, scratch.path("a.mat"));
  EXPECT_EQ(scratch.content("a.mat"),
            "1.0000000000000000e+00 -1.0000000000000001e-01\n0.0000000000000000e+00 1.0000000000000000e-300\n");
}

}  // namespace
}  // namespace polyad
