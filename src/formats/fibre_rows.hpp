// SPDX-License-Identifier: MIT
/// \file Fibres of a mode numbered row-major over the other modes: id = sum of index * stride (Yang et al.,
/// section 5.3: j * K + k), and back.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "polyad/types.hpp"

namespace polyad {

/// All modes but one, ascending.
[[nodiscard]] inline std::vector<int> modes_without(int order, int mode) {
  std::vector<int> others;
  for (int m = 0; m < order; ++m)
    if (m != mode) others.push_back(m);
  return others;
}

/// All modes but one, ascending, then that one: in this order of nonzeros the fibres of the mode are runs.
[[nodiscard]] inline std::vector<int> mode_last(int order, int mode) {
  std::vector<int> modes = modes_without(order, mode);
  modes.push_back(mode);
  return modes;
}

/// Product of all dims but one; unset when it does not fit 64 bits.
[[nodiscard]] inline std::optional<std::uint64_t> rows_without(const std::vector<std::uint64_t>& dims, int mode) {
  std::uint64_t product = 1;
  for (std::size_t m = 0; m < dims.size(); ++m) {
    if (static_cast<int>(m) == mode) continue;
    if (dims[m] != 0 && product > std::numeric_limits<std::uint64_t>::max() / dims[m]) return std::nullopt;
    product *= dims[m];
  }
  return product;
}

/// From fibre ids back to indices. Going up in small steps costs an addition, a large one the divisions.
class RowIndices {
 public:
  RowIndices(const std::vector<std::uint64_t>& dims, int mode) {
    for (std::size_t m = 0; m < dims.size(); ++m)
      if (static_cast<int>(m) != mode) dims_[count_++] = dims[m];
  }

  /// Goes to the row of that id.
  void go(std::uint64_t id) {
    const std::size_t last = count_ - 1;
    const std::uint64_t step = id - id_;
    const bool near = id >= id_ && step < dims_[last] - at_[last];
    id_ = id;
    if (near) {
      at_[last] += step;
      return;
    }
    for (std::size_t m = count_; m-- > 0;) {
      at_[m] = id % dims_[m];
      id /= dims_[m];
    }
  }
  /// Index in the m-th of the other modes.
  [[nodiscard]] std::uint64_t operator[](std::size_t m) const { return at_[m]; }
  /// How many other modes there are.
  [[nodiscard]] std::size_t size() const { return count_; }

 private:
  std::array<std::uint64_t, max_order> dims_ = {};  // [count]
  std::array<std::uint64_t, max_order> at_ = {};    // [count]
  std::size_t count_ = 0;
  std::uint64_t id_ = 0;
};

}  // namespace polyad
