// SPDX-License-Identifier: MIT
/// \file The tensors that every format and kernel is run on. Values are small whole numbers, so that any order of
/// addition gives the same result in f32 and f64.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <polyad/coo_tensor.hpp>
#include <string>
#include <vector>

namespace polyad::cases {

/// A small generator of its own: the cases must not depend on what is tested.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ULL + 1) {}
  std::uint64_t below(std::uint64_t n) {
    state_ ^= state_ << 13U;
    state_ ^= state_ >> 7U;
    state_ ^= state_ << 17U;
    return (state_ * 0x2545F4914F6CDD1DULL >> 11U) % n;
  }
  double unit() { return static_cast<double>(below(std::uint64_t{1} << 30U)) / static_cast<double>(1U << 30U); }

 private:
  std::uint64_t state_;
};

/// A whole number other than 0 from -3 to 3.
inline double small_value(Dice& dice) {
  const auto v = static_cast<double>(dice.below(3) + 1);
  return dice.below(2) == 0 ? v : -v;
}

struct Case {
  std::string name;
  std::vector<std::uint64_t> dims;
  std::uint64_t nnz = 0;
  /// Fills the coordinates of nonzero k.
  std::function<void(Dice&, std::uint64_t k, std::vector<std::uint64_t>& at)> draw = nullptr;
  bool duplicates = false;  ///< coordinates may occur twice
};

inline std::uint64_t skewed(Dice& dice, std::uint64_t n) {
  return std::min<std::uint64_t>(n - 1,
                                 static_cast<std::uint64_t>(static_cast<double>(n) * std::pow(dice.unit(), 4.0)));
}

/// The shared cases of orders 2 to 8.
inline std::vector<Case> every() {
  std::vector<Case> c;
  c.push_back({"empty", {5, 6, 7}, 0});
  c.push_back({"one nonzero", {5, 6, 7}, 1});
  c.push_back({"one cell", {1, 1, 1}, 1});
  c.push_back({"matrix", {40, 50}, 900});
  c.push_back({"order 3", {30, 40, 50}, 1500});
  c.push_back({"dense block", {9, 10, 11}, 990, [](Dice&, std::uint64_t k, auto& at) {
                 at = {k / 110, k / 11 % 10, k % 11};
               }});
  c.push_back({"a mode of length 1", {25, 1, 30, 20}, 1200});
  c.push_back({"one giant slice", {300, 70, 80}, 2500, [](Dice& d, std::uint64_t, auto& at) {
                 at = {d.below(10) < 9 ? 17 : d.below(300), d.below(70), d.below(80)};
               }});
  c.push_back({"one giant fibre", {20, 20, 5000}, 3000, [](Dice& d, std::uint64_t, auto& at) {
                 at = {d.below(10) < 8 ? 3 : d.below(20), d.below(10) < 9 ? 4 : d.below(20), d.below(5000)};
               }});
  c.push_back({"power law", {400, 300, 2000}, 3000, [](Dice& d, std::uint64_t, auto& at) {
                 at = {skewed(d, 400), skewed(d, 300), skewed(d, 2000)};
               }});
  c.push_back({"duplicates", {6, 7, 8}, 1500, nullptr, true});
  c.push_back({"hypersparse", {1000000, 900000, 3}, 700});
  c.push_back({"diagonal", {600, 600, 600}, 600, [](Dice&, std::uint64_t k, auto& at) { at = {k, k, k}; }});
  c.push_back({"order 4", {12, 90, 30, 41}, 2000});
  c.push_back({"order 5", {9, 8, 30, 4, 33}, 1500});
  c.push_back({"order 6", {5, 6, 7, 8, 9, 10}, 1200});
  c.push_back({"order 7", {3, 4, 5, 3, 4, 5, 6}, 1000});
  c.push_back({"order 8", {4, 3, 40, 3, 4, 2, 5, 3}, 1200});
  c.push_back({"larger", {700, 800, 900}, 30000, [](Dice& d, std::uint64_t, auto& at) {
                 at = {skewed(d, 700), d.below(800), d.below(900)};
               }});
  return c;
}

/// Those to run: under a sanitizer every third one, as it looks for mistakes that any case shows.
inline std::vector<Case> all() {
  std::vector<Case> c = every();
#ifdef POLYAD_SANITIZED
  std::vector<Case> some;
  for (std::size_t k = 0; k < c.size(); k += 3) some.push_back(c[k]);
  return some;
#endif
  return c;
}

/// The tensor of a case, its nonzeros in random order.
inline CooTensor make(const Case& c, Precision precision) {
  Dice dice(c.nnz + c.dims.size() * 1000 + c.dims[0]);
  std::vector<std::vector<std::uint64_t>> cells;
  for (std::uint64_t k = 0; k < c.nnz; ++k) {
    std::vector<std::uint64_t> at;
    if (c.draw) {
      c.draw(dice, k, at);
    } else {
      for (const std::uint64_t d : c.dims) at.push_back(dice.below(d));
    }
    cells.push_back(at);
  }
  if (!c.duplicates) {
    std::sort(cells.begin(), cells.end());
    cells.erase(std::unique(cells.begin(), cells.end()), cells.end());
  }
  for (std::size_t k = cells.size(); k > 1; --k) std::swap(cells[k - 1], cells[dice.below(k)]);
  CooTensor x = make_coo(c.dims, cells.size(), precision, {});
  visit(x, [&]<class Index, class Value>(const CooView<Index, Value>& v) {
    for (std::size_t k = 0; k < cells.size(); ++k) {
      for (std::size_t m = 0; m < c.dims.size(); ++m) v.indices[m][k] = static_cast<Index>(cells[k][m]);
      v.values[k] = static_cast<Value>(small_value(dice));
    }
  });
  return x;
}

}  // namespace polyad::cases
