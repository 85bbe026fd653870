// SPDX-License-Identifier: MIT
/// \file Plain definitions of what operations and statistics of a CooTensor mean: slow, obviously right, and without
/// any helper of the library.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "polyad/coo_tensor.hpp"

namespace polyad::oracle {

using Coordinate = std::vector<std::uint64_t>;

struct Nonzero {
  Coordinate index;  // [order]
  double value = 0;

  friend bool operator==(const Nonzero&, const Nonzero&) = default;
};

/// The nonzeros of a tensor in their order.
inline std::vector<Nonzero> nonzeros(const CooTensor& x) {
  std::vector<Nonzero> all(x.nnz());
  for (std::uint64_t k = 0; k < x.nnz(); ++k) {
    for (int m = 0; m < x.order(); ++m) all[k].index.push_back(x.index(m, k));
    all[k].value = x.value(k);
  }
  return all;
}

/// A tensor of the given nonzeros.
inline CooTensor tensor(std::vector<std::uint64_t> dims, const std::vector<Nonzero>& all, Precision precision,
                        const Context& context = {}) {
  CooTensor x = make_coo(std::move(dims), all.size(), precision, context);
  for (std::size_t k = 0; k < all.size(); ++k) {
    for (std::size_t m = 0; m < x.dims.size(); ++m) {
      if (x.index_width() == IndexWidth::u32) {
        std::get<0>(x.indices[m])[k] = static_cast<std::uint32_t>(all[k].index[m]);
      } else {
        std::get<1>(x.indices[m])[k] = all[k].index[m];
      }
    }
    if (precision == Precision::f32) {
      std::get<0>(x.values)[k] = static_cast<float>(all[k].value);
    } else {
      std::get<1>(x.values)[k] = all[k].value;
    }
  }
  return x;
}

/// Stably sorted by modes, most significant first.
inline std::vector<Nonzero> sorted(std::vector<Nonzero> all, const std::vector<int>& mode_order) {
  std::stable_sort(all.begin(), all.end(), [&](const Nonzero& a, const Nonzero& b) {
    for (const int m : mode_order) {
      const auto i = static_cast<std::size_t>(m);
      if (a.index[i] != b.index[i]) return a.index[i] < b.index[i];
    }
    return false;
  });
  return all;
}

/// Neighbours with equal coordinates added up from left to right in double.
inline std::vector<Nonzero> merged(const std::vector<Nonzero>& all) {
  std::vector<Nonzero> out;
  for (const Nonzero& z : all) {
    if (!out.empty() && out.back().index == z.index) {
      out.back().value += z.value;
    } else {
      out.push_back(z);
    }
  }
  return out;
}

/// Number of nonzeros per group that shares the indices of the given modes.
inline std::map<Coordinate, std::uint64_t> groups(const std::vector<Nonzero>& all, const std::vector<int>& modes) {
  std::map<Coordinate, std::uint64_t> sizes;
  for (const Nonzero& z : all) {
    Coordinate key;
    for (const int m : modes) key.push_back(z.index[static_cast<std::size_t>(m)]);
    ++sizes[key];
  }
  return sizes;
}

/// Mean and population standard deviation of the sizes, in two passes.
struct Spread {
  double mean = 0;
  double stdev = 0;
  std::uint64_t max = 0;
};
inline Spread spread(const std::map<Coordinate, std::uint64_t>& sizes) {
  Spread s;
  if (sizes.empty()) return s;
  for (const auto& [key, size] : sizes) {
    s.mean += static_cast<double>(size);
    s.max = std::max(s.max, size);
  }
  s.mean /= static_cast<double>(sizes.size());
  for (const auto& [key, size] : sizes) s.stdev += std::pow(static_cast<double>(size) - s.mean, 2);
  s.stdev = std::sqrt(s.stdev / static_cast<double>(sizes.size()));
  return s;
}

/// How random nonzeros are spread.
struct Shape {
  std::vector<std::uint64_t> dims;
  std::uint64_t nnz = 0;
  int giant_slice_percent = 0;  ///< of the nonzeros are in the middle slice of mode 0
  std::uint64_t few = 0;        ///< indices are among the first (and last) few of each mode: duplicates; 0: all
};

/// Random nonzeros with small whole values: any order of addition gives the same sum.
inline std::vector<Nonzero> random_nonzeros(const Shape& shape, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Nonzero> all(shape.nnz);
  for (Nonzero& z : all) {
    for (const std::uint64_t dim : shape.dims) {
      std::uint64_t i = random() % dim;
      if (shape.few > 0 && shape.few < dim) i = random() % 2 == 0 ? i % shape.few : dim - 1 - i % shape.few;
      z.index.push_back(i);
    }
    if (static_cast<int>(random() % 100) < shape.giant_slice_percent) z.index[0] = shape.dims[0] / 2;
    z.value = static_cast<double>(random() % 19) - 9;
  }
  return all;
}

}  // namespace polyad::oracle
