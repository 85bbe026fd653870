// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <polyad/polyad.hpp>

namespace polyad {
namespace {

/// X(:,:,1) = [1 4 7 10; 2 5 8 11; 3 6 9 12], X(:,:,2) = 12 more (Kolda and Bader 2009; the HOCFS paper prints the 10
/// as 0).
CooTensor kolda_and_bader(Precision precision) {
  CooTensor x = make_coo({3, 4, 2}, 24, precision, {});
  visit(x, [&]<class Index, class Value>(const CooView<Index, Value>& v) {
    for (std::uint64_t k = 0; k < 24; ++k) {
      v.indices[0][k] = static_cast<Index>(k % 3);
      v.indices[1][k] = static_cast<Index>(k / 3 % 4);
      v.indices[2][k] = static_cast<Index>(k / 12);
      v.values[k] = static_cast<Value>(k + 1);
    }
  });
  return x;
}

Matrix u() {
  Matrix m(2, 3);
  m.values = {1, 3, 5, 2, 4, 6};
  return m;
}

TEST(Ttm, OfKoldaAndBader) {
  const double expected[2][2][4] = {{{22, 49, 76, 103}, {28, 64, 100, 136}},
                                    {{130, 157, 184, 211}, {172, 208, 244, 280}}};
  for (const char* format : {"coo", "cfb", "hocoo", "hocfs-csr"})
    for (const Precision precision : {Precision::f32, Precision::f64}) {
      const SemiSparseTensor y = ttm(build(kolda_and_bader(precision), format), 0, u());
      EXPECT_EQ(y.dense_mode, 0);
      EXPECT_EQ(y.fibres.dims, (std::vector<std::uint64_t>{4, 2}));
      ASSERT_EQ(y.rows.rows(), 8U);
      ASSERT_EQ(y.rows.cols(), 2U);
      for (std::uint64_t f = 0; f < 8; ++f) {
        EXPECT_EQ(y.fibres.index(0, f), f / 2);
        EXPECT_EQ(y.fibres.index(1, f), f % 2);
        EXPECT_EQ(y.fibres.value(f), 1);
        for (std::uint64_t j = 0; j < 2; ++j) EXPECT_EQ(y.rows(f, j), expected[f % 2][j][f / 2]) << format;
      }
    }
}

/// One fibre over many chunks beside short ones: chunks share rows. With one column of the matrix it is TTV.
TEST(Ttm, LongFibresAreTheSameBitsForAnyNumberOfThreads) {
  CooTensor x = make_coo({30, 30, 50000}, 40000, Precision::f64, {});
  visit(x, [&]<class Index, class Value>(const CooView<Index, Value>& v) {
    std::uint64_t state = 1;
    for (std::uint64_t k = 0; k < v.nnz; ++k) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      v.indices[0][k] = k < 25000 ? 3 : static_cast<Index>((state >> 33U) % 30);
      v.indices[1][k] = k < 25000 ? 4 : static_cast<Index>((state >> 40U) % 30);
      v.indices[2][k] = static_cast<Index>((state >> 45U) % 50000);
      v.values[k] = static_cast<Value>(state >> 60U) / 7;
    }
  });
  Matrix m(3, 50000);
  for (std::size_t i = 0; i < m.values.size(); ++i) m.values[i] = static_cast<double>(i % 17) / 3;
  std::vector<double> row(m.values.begin(), m.values.begin() + 50000);
  const CooTensor sums = ttv(build(x, "coo"), 2, row);
  for (const char* format : {"cfb", "coo"}) {
    std::vector<double> first;
    for (const int threads : {1, 2, 7}) {
      Context context;
      context.threads = threads;
      const SemiSparseTensor y = ttm(build(x, format, {}, context), 2, m, context);
      const std::vector<double> all(y.rows.data(), y.rows.data() + y.rows.rows() * y.rows.stride());
      if (first.empty()) first = all;
      EXPECT_EQ(all, first) << format << ", " << threads << " threads";
      ASSERT_EQ(y.fibres.nnz(), sums.nnz());
      for (std::uint64_t f = 0; f < sums.nnz(); ++f)
        EXPECT_NEAR(y.rows(f, 0), sums.value(f), 1e-9 * (1 + std::abs(sums.value(f))));
    }
  }
}

TEST(Ttm, SaysWhatIsWrong) {
  const Tensor t = build(kolda_and_bader(Precision::f64), "coo");
  const auto message = [&](int mode, const Matrix& m) -> std::string {
    try {
      static_cast<void>(ttm(t, mode, m));
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::usage);
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(message(1, u()), "ttm: a matrix of 2 x 3 for mode 2, whose length is 4; expected 4 columns");
  EXPECT_EQ(message(5, u()), "ttm: mode 6 of a tensor with 3 modes");
  EXPECT_NE(message(0, Matrix(0, 3)), "");
}

}  // namespace
}  // namespace polyad
