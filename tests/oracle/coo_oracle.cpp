// SPDX-License-Identifier: MIT
#include "oracle/coo_oracle.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

namespace polyad::oracle {

std::vector<Nonzero> nonzeros(const CooTensor& x) {
  std::vector<Nonzero> all(x.nnz());
  for (std::uint64_t k = 0; k < x.nnz(); ++k) {
    for (int m = 0; m < x.order(); ++m) all[k].index.push_back(x.index(m, k));
    all[k].value = x.value(k);
  }
  return all;
}

CooTensor tensor(std::vector<std::uint64_t> dims, const std::vector<Nonzero>& all, Precision precision,
                 const Context& context) {
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

std::vector<Nonzero> sorted(std::vector<Nonzero> all, const std::vector<int>& mode_order) {
  std::stable_sort(all.begin(), all.end(), [&](const Nonzero& a, const Nonzero& b) {
    for (const int m : mode_order) {
      const auto i = static_cast<std::size_t>(m);
      if (a.index[i] != b.index[i]) return a.index[i] < b.index[i];
    }
    return false;
  });
  return all;
}

std::vector<Nonzero> merged(const std::vector<Nonzero>& all) {
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

std::map<Coordinate, std::uint64_t> groups(const std::vector<Nonzero>& all, const std::vector<int>& modes) {
  std::map<Coordinate, std::uint64_t> sizes;
  for (const Nonzero& z : all) {
    Coordinate key;
    for (const int m : modes) key.push_back(z.index[static_cast<std::size_t>(m)]);
    ++sizes[key];
  }
  return sizes;
}

Spread spread(const std::map<Coordinate, std::uint64_t>& sizes) {
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

std::vector<Nonzero> random_nonzeros(const Shape& shape, std::uint64_t seed) {
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
