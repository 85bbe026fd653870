// SPDX-License-Identifier: MIT
/// \file What a tensor looks like: the numbers that `info` prints and the planner reads.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "polyad/context.hpp"
#include "polyad/coo_tensor.hpp"

namespace polyad {

/// How nonzeros are spread over the non-empty groups (slices or fibres) of a mode.
struct GroupStatistics {
  std::uint64_t count = 0;  ///< non-empty groups
  double mean = 0;          ///< nonzeros per non-empty group
  std::uint64_t max = 0;
  double stdev = 0;  ///< population standard deviation over the non-empty groups
  /// Groups whose number of nonzeros has b+1 binary digits: histogram[b] counts sizes 2^b .. 2^(b+1)-1.
  std::array<std::uint64_t, 64> histogram = {};
};

/// One mode of a tensor.
struct ModeStatistics {
  std::uint64_t dim = 0;
  GroupStatistics slices;  ///< nonzeros that share the index of this mode
  GroupStatistics fibres;  ///< nonzeros that share all indices but this mode's
};

/// A whole tensor.
struct TensorStatistics {
  double density = 0;  ///< nnz / product of dims
  double norm = 0;     ///< Frobenius norm of the stored values, duplicates not merged
  double sum = 0;      ///< of the values
  double min = 0;      ///< of the stored values
  double max = 0;
  std::uint64_t zeros = 0;       ///< stored values that are 0
  std::uint64_t duplicates = 0;  ///< nonzeros whose coordinate occurred before
  std::vector<ModeStatistics> modes;
};

/// Computes all of it. Never allocates by dims, only by nnz. The same bits for any number of threads.
[[nodiscard]] TensorStatistics statistics(const CooTensor& x, const Context& context = {});

}  // namespace polyad
