// SPDX-License-Identifier: MIT
/// \file Which storage format to take when nobody says.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "polyad/context.hpp"
#include "polyad/coo_tensor.hpp"
#include "polyad/registry.hpp"
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

/// What a format's formulas predict for a tensor in all modes, in bytes; unset when it cannot hold it here.
[[nodiscard]] std::optional<double> predicted_bytes(const CooTensor& x, const TensorStatistics& statistics,
                                                    const FormatEntry& format, std::uint64_t rank,
                                                    const Context& context = {});

/// While a format is built the sort holds a record of key and value, of at most so many bytes, per nonzero.
inline constexpr std::uint64_t sort_bytes_per_nonzero = 24;

}  // namespace polyad
