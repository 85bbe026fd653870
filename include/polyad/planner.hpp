// SPDX-License-Identifier: MIT
/// \file Which storage format to take when nobody says.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "polyad/context.hpp"
#include "polyad/coo_tensor.hpp"
#include "polyad/statistics.hpp"

namespace polyad {

/// A format and the reason for it.
struct Choice {
  std::string_view format;  ///< its name in the registry
  std::string why;          ///< a sentence without its full stop
};

/// The format that `--format auto` takes for MTTKRPs in all modes. The rule: csf-all where nonzeros share fibres (their
/// work is done once per fibre), else alto (one copy, any mode); of these the first that is in this build and whose
/// predicted bytes fit what is left of the context's memory; else coo.
/// \param statistics of x when the caller has them; null: they are computed
[[nodiscard]] Choice choose_format(const CooTensor& x, const TensorStatistics* statistics, std::uint64_t rank,
                                   const Context& context = {});

/// What CP-ALS will need, step by step. Each number is the most that is held at once in that step.
struct MemoryPlan {
  std::string_view format;
  std::uint64_t tensor = 0;   ///< bytes of the format, for all modes
  std::uint64_t load = 0;     ///< reading, and merging duplicates
  std::uint64_t build = 0;    ///< coordinates, format and the sort between them
  std::uint64_t iterate = 0;  ///< format, factors, private outputs
  std::uint64_t result = 0;   ///< format, factors and the model made of them
  std::string refusal;        ///< why the format cannot hold the tensor; empty when it can

  /// The most of all, with the process itself.
  [[nodiscard]] std::uint64_t peak() const;
};

/// Predicts the memory of a decomposition in a format, without building anything.
[[nodiscard]] MemoryPlan plan_memory(const CooTensor& x, const TensorStatistics& statistics, std::string_view format,
                                     std::uint64_t rank, const Context& context = {});

}  // namespace polyad
