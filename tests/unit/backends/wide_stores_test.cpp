// SPDX-License-Identifier: MIT
#include "backends/cpu/wide_stores.hpp"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cstdint>
#include <polyad/polyad.hpp>
#include <utility>
#include <vector>

namespace polyad {
namespace {

/// All MTTKRPs of a tensor, number by number.
template <class T>
std::vector<T> all_rows(Tensor& tensor, const std::vector<FactorMatrix<T>>& factors) {
  std::vector<T> numbers;
  for (int mode = 0; mode < tensor.order(); ++mode) {
    FactorMatrix<T> out(Context{}, tensor.dims()[static_cast<std::size_t>(mode)], factors[0].cols());
    Workspace workspace;
    (void)mttkrp<T>(tensor, factors, mode, out, workspace, {});
    for (std::uint64_t i = 0; i < out.rows(); ++i) numbers.insert(numbers.end(), out.row(i), out.row(i) + out.cols());
  }
  return numbers;
}

template <class T>
void expect_the_same_sums(Precision precision) {
  GenerateOptions options;
  options.dims = {200, 20, 30, 300};
  options.nnz = 20000;
  options.burst = 6;
  options.precision = precision;
  CooTensor x = generate(options);
  // Whole numbers: compilers may make a product and an addition one operation where they see both.
  auto& values = std::get<Buffer<T>>(x.values);
  for (std::uint64_t k = 0; k < x.nnz(); ++k) values[k] = static_cast<T>(k % 7) - 3;
  for (const std::uint64_t rank : {std::uint64_t{16}, std::uint64_t{64}})  // rows of one and of several vectors
    for (const char* format : {"sweep", "coo", "csf-one"}) {
      Tensor tensor = build(x, format);
      std::vector<FactorMatrix<T>> factors;
      for (const std::uint64_t dim : x.dims) {
        FactorMatrix<T>& factor = factors.emplace_back(Context{}, dim, rank);
        for (std::uint64_t i = 0; i < dim; ++i)
          for (std::uint64_t r = 0; r < rank; ++r) factor(i, r) = static_cast<T>((i * 31 + r * 17 + dim) % 5) - 2;
      }
      cpu::halve_wide_stores = false;
      const std::vector<T> whole = all_rows(tensor, factors);
      cpu::halve_wide_stores = true;
      EXPECT_EQ(all_rows(tensor, factors), whole) << format << ", rank " << rank;
    }
}

/// Puts the choice back whatever happens.
struct AsItWas {
  bool value = cpu::halve_wide_stores;
  AsItWas() = default;
  AsItWas(const AsItWas&) = delete;
  AsItWas& operator=(const AsItWas&) = delete;
  ~AsItWas() { cpu::halve_wide_stores = value; }
};

TEST(WideStores, HalvesGiveTheSameSums) {
#ifdef POLYAD_SANITIZED
  GTEST_SKIP() << "kernels are compiled for narrow vectors there";
#endif
  if ((hwy::SupportedTargets() & HWY_AVX3) == 0) GTEST_SKIP() << "no vectors of 64 bytes here";
  const AsItWas as_it_was;
  expect_the_same_sums<float>(Precision::f32);
  expect_the_same_sums<double>(Precision::f64);
}

}  // namespace
}  // namespace polyad
