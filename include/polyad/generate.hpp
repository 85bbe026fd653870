// SPDX-License-Identifier: MIT
/// \file Synthetic tensors: seeded, the same on every machine and for every number of threads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "polyad/context.hpp"
#include "polyad/coo_tensor.hpp"
#include "polyad/cp_model.hpp"

namespace polyad {

/// What to generate; the seed is the context's.
struct GenerateOptions {
  std::vector<std::uint64_t> dims;
  std::uint64_t nnz = 0;
  /// Zipf exponent per mode: empty (all 0: uniform), one for all, or one each.
  std::vector<double> skew;
  /// Mean nonzeros per cluster; 1: nonzeros are independent.
  double burst = 1;
  /// Mean number of different indices of each mode inside a cluster; empty (all 1), one for all, or one each.
  std::vector<double> widths;
  /// Type of the values.
  Precision precision = Precision::f64;
};

/// A tensor shaped like one of the field's: exact order and dims, its skew and clustering, any nnz.
struct Preset {
  std::string_view name;
  std::string_view summary;
  std::uint64_t nnz;  ///< of the original
  GenerateOptions options;
};

/// uber, nell2, deli, vast, enron, darpa, random.
[[nodiscard]] const std::vector<Preset>& presets();

/// A sparse tensor without duplicates, sorted, with exactly `nnz` nonzeros (Error if dims cannot hold them) and the
/// last index of every mode present, so that files without dims keep them.
[[nodiscard]] CooTensor generate(const GenerateOptions& options, const Context& context = {});

/// A planted model and the tensor it makes.
struct Planted {
  CooTensor tensor;
  CpModel truth;
};

/// Draws sparse factors of the given rank so that the whole model has about options.nnz nonzeros, and stores all of
/// them. \param noise standard deviation of the noise on each stored value relative to the root mean square of the
/// values;
///        0 gives a tensor of exactly that rank.
[[nodiscard]] Planted generate_planted(const GenerateOptions& options, std::uint64_t rank, double noise,
                                       const Context& context = {});

}  // namespace polyad
