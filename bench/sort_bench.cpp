// SPDX-License-Identifier: MIT
// How much faster sort_nonzeros is than std::sort of a permutation with a comparison of tuples, and what statistics()
// costs. Only ratios of one run mean anything: both sides run here, one after the other, on the same shuffled nonzeros.
//
//   sort_bench [threads [millions of nonzeros [file.tns]]]
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/radix_sort.hpp"
#include "polyad/operations.hpp"
#include "polyad/statistics.hpp"

namespace {

using namespace polyad;

template <class F>
double seconds(const F& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Indices with a density that falls as index^-skew in every mode (0 is uniform).
CooTensor random_tensor(std::vector<std::uint64_t> dims, std::uint64_t nnz, double skew, const Context& context) {
  CooTensor x = make_coo(std::move(dims), nnz, Precision::f64, context);
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> uniform(0, 1);
  visit(x, [&](const auto& v) {
    using Index = typename std::remove_cvref_t<decltype(v)>::index_type;
    for (std::uint64_t i = 0; i < nnz; ++i) {
      for (std::size_t m = 0; m < v.dims.size(); ++m) {
        const double at = std::pow(uniform(random), 1 / (1 - skew)) * static_cast<double>(v.dims[m]);
        v.indices[m][i] = static_cast<Index>(std::min(static_cast<std::uint64_t>(at), v.dims[m] - 1));
      }
      v.values[i] = uniform(random);
    }
  });
  return x;
}

CooTensor read_order3(const char* path, const Context& context) {
  std::stringstream all;
  all << std::ifstream(path).rdbuf();
  const std::string text = std::move(all).str();
  std::array<std::vector<std::uint32_t>, 3> indices;
  std::vector<double> values;
  const char* p = text.data();
  const char* end = p + text.size();
  while (p < end) {
    for (auto& index : indices) {
      p = std::from_chars(p, end, index.emplace_back()).ptr + 1;
      --index.back();
    }
    p = std::from_chars(p, end, values.emplace_back()).ptr + 1;
  }
  std::vector<std::uint64_t> dims;
  for (const auto& index : indices) dims.push_back(std::uint64_t{*std::ranges::max_element(index)} + 1);
  CooTensor x = make_coo(dims, values.size(), Precision::f64, context);
  std::ranges::copy(values, std::get<1>(x.values).begin());
  for (std::size_t m = 0; m < 3; ++m) std::ranges::copy(indices[m], std::get<0>(x.indices[m]).begin());
  return x;
}

void shuffle(CooTensor& x) {
  std::mt19937_64 random(3);
  visit(x, [&](const auto& v) {
    for (std::uint64_t i = v.nnz; i > 1; --i) {
      const std::uint64_t j = random() % i;
      for (std::size_t m = 0; m < v.dims.size(); ++m) std::swap(v.indices[m][i - 1], v.indices[m][j]);
      std::swap(v.values[i - 1], v.values[j]);
    }
  });
}

std::vector<std::uint64_t> yardstick(const CooTensor& x, const std::vector<int>& order, double& time) {
  std::vector<std::uint64_t> permutation(x.nnz());
  std::iota(permutation.begin(), permutation.end(), 0);
  visit(x, [&](const auto& v) {
    time = seconds([&] {
      std::sort(permutation.begin(), permutation.end(), [&](std::uint64_t a, std::uint64_t b) {
        for (const int m : order) {
          const auto* index = v.indices[static_cast<std::size_t>(m)];
          if (index[a] != index[b]) return index[a] < index[b];
        }
        return false;
      });
    });
  });
  return permutation;
}

void row(const std::string& name, const CooTensor& x, const std::vector<int>& order, const Context& context) {
  double plain = 0;
  const std::vector<std::uint64_t> permutation = yardstick(x, order, plain);
  double ours = 1e9;
  std::uint64_t peak = 0;
  for (int repeat = 0; repeat < 3; ++repeat) {
    Context counted = context;
    counted.memory = std::make_shared<MemoryBudget>();
    CooTensor y = clone(x, counted);
    ours = std::min(ours, seconds([&] { sort_nonzeros(y, order, counted); }));
    peak = counted.memory->peak();
    for (std::uint64_t i = 0; i < x.nnz(); i += 997)
      for (int m = 0; m < x.order(); ++m)
        if (y.index(m, i) != x.index(m, permutation[i])) std::abort();
  }
  CooTensor z = clone(x, context);
  sort_nonzeros(z, order, context);
  z.sorted_by.clear();
  const double again = seconds([&] { sort_nonzeros(z, order, context); });
  z.sorted_by.clear();
  const double described = seconds([&] { (void)statistics(x, context); });
  const double described_sorted = seconds([&] { (void)statistics(z, context); });
  fmt::print("{:24} {:9.2f} {:9.3f} {:7.1f}x {:9.3f} {:11.2f} {:8.3f} {:8.3f}\n", name, plain, ours, plain / ours,
             again, static_cast<double>(peak) / static_cast<double>(x.bytes()), described, described_sorted);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  Context context;
  context.threads = argc > 1 ? std::atoi(argv[1]) : 2;
  const double millions = argc > 2 ? std::atof(argv[2]) : 20;
  const auto nnz = static_cast<std::uint64_t>(millions * 1e6);
  fmt::print("{} threads; times in seconds, peak in tensors, statistics of the shuffled and of the sorted tensor\n",
             context.threads);
  fmt::print("{:24} {:>9} {:>9} {:>8} {:>9} {:>11} {:>8} {:>8}\n", "tensor", "std::sort", "radix", "ratio", "sorted",
             "peak memory", "stats", "sorted");
  if (argc > 3) {
    CooTensor x = read_order3(argv[3], context);
    shuffle(x);
    row("file 1 2 3", x, {0, 1, 2}, context);
    row("file 3 1 2", x, {2, 0, 1}, context);
    return 0;
  }
  const std::vector<std::uint64_t> nell2 = {12092, 9184, 28818};
  row("uniform", random_tensor(nell2, nnz, 0, context), {0, 1, 2}, context);
  row("power law", random_tensor(nell2, nnz, 0.7, context), {0, 1, 2}, context);
  CooTensor giant = random_tensor(nell2, nnz, 0, context);
  for (std::uint64_t i = 0; i < nnz; ++i)
    if (i % 10 != 0) std::get<0>(giant.indices[0])[i] = 5000;
  row("90 % in one slice", giant, {0, 1, 2}, context);
  row("78 bits, power law", random_tensor({532924, 17262471, 2480308, 1443}, nnz / 2, 0.5, context), {0, 1, 2, 3},
      context);
  row("160 bits", random_tensor({4294967295, 4294967295, 4294967295, 4294967295, 4294967295}, nnz / 2, 0, context),
      {0, 1, 2, 3, 4}, context);
}
