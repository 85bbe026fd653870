// SPDX-License-Identifier: MIT
/// \file Which storage format to take when nobody says, and what each would cost.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "polyad/context.hpp"
#include "polyad/coo_tensor.hpp"
#include "polyad/registry.hpp"
#include "polyad/statistics.hpp"
#include "polyad/tensor.hpp"

namespace polyad {

/// A format and the reason for it.
struct Choice {
  std::string_view format;                                ///< its name in the registry
  std::string why;                                        ///< a sentence without its full stop
  std::vector<int> leaf_modes = {};                       ///< FormatOptions::leaf_modes, where the format has them
  std::shared_ptr<const ValueCode> value_code = nullptr;  ///< FormatOptions::value_code, if it was looked for
};

/// What to build a chosen format of the same tensor with.
[[nodiscard]] FormatOptions options_for(const Choice& choice, std::uint64_t rank);

/// Formats are compared by what building them and so many sweeps take: what a CP-ALS does at most, unless it is told
/// otherwise.
inline constexpr int expected_sweeps = 50;

/// What a format is expected to take for MTTKRPs in all modes in turn, without building it.
struct FormatEstimate {
  std::string_view format;           ///< its name in the registry
  double seconds = 0;                ///< of one sweep over the modes
  double build_seconds = 0;          ///< from coordinates
  double bytes = 0;                  ///< of its arrays
  double build_bytes = 0;            ///< held at once while it is built, beside the coordinates
  double kept_bytes = 0;             ///< that kernels keep between modes, if the memory allows it
  bool has_kernel = true;            ///< false: only generic kernels work on it, and its bytes are those of coordinates
  bool deterministic = false;        ///< kernels of its own give the same bits for any number of threads
  bool fits = true;                  ///< into what is left of the context's memory, with the factors
  bool repeats = false;              ///< it would be built as another format is: not worth trying beside it
  std::string why;                   ///< what the time is made of
  std::vector<int> leaf_modes = {};  ///< FormatOptions::leaf_modes, where the format has them
  std::shared_ptr<const ValueCode> value_code = nullptr;  ///< FormatOptions::value_code, if it was looked for

  /// Building it, and expected_sweeps.
  [[nodiscard]] double run_seconds() const { return build_seconds + expected_sweeps * seconds; }
};

/// The estimate of one format.
[[nodiscard]] FormatEstimate estimate_format(const CooTensor& x, std::string_view format, std::uint64_t rank,
                                             const Context& context = {});

/// All formats that can be compared, those that fit first, the fastest first (run_seconds). Estimates come from passes
/// over the nonzeros that count nothing exactly (about 1 ns a nonzero each) and from what rows cost on this machine,
/// measured once and kept in Context::cache.
[[nodiscard]] std::vector<FormatEstimate> rank_formats(const CooTensor& x, std::uint64_t rank,
                                                       const Context& context = {});

/// How large a format may be when the planner chooses, as a multiple of coordinates with 32-bit indices.
inline constexpr double usual_size = 1.5;

/// The format that `--format auto` takes: the one that tune_format found for this tensor on this machine, else the one
/// whose run_seconds are estimated to be the fewest; either way one that has kernels of its own, fits the memory, is no
/// larger than `most_size` times the coordinates and, if the context is deterministic, promises the same bits. coo
/// where nothing does. With devices: what tune_format found for them, else the first of hb-csf, b-csf, f-coo and coo
/// that fits the host and stays on the devices, else the first that fits the host (most_size counts when it is below
/// the usual). For a deterministic context the choice depends on neither the threads nor the cache.
[[nodiscard]] Choice choose_format(const CooTensor& x, std::uint64_t rank, const Context& context = {},
                                   double most_size = usual_size);

/// Whether not even coordinates fit what the context allows beside the factors.
[[nodiscard]] bool needs_streaming(const CooTensor& x, std::uint64_t rank, const Context& context);

/// Builds the best few of rank_formats, runs MTTKRPs in all modes on each and takes the fastest; the answer is kept in
/// Context::cache for choose_format, apart for each set of devices. \param candidates how many to build, one after the
/// other
[[nodiscard]] Choice tune_format(const CooTensor& x, std::uint64_t rank, const Context& context = {},
                                 double most_size = usual_size, int candidates = 3);

/// Bytes a format may take with that most_size.
[[nodiscard]] double largest_size(const CooTensor& x, double most_size);

/// Whether an estimate says that a format takes no more, whatever is not known exactly.
[[nodiscard]] bool surely_below(const FormatEstimate& f, double bytes);

/// Bytes of coordinates with 32-bit indices (64-bit where dims need them): what most_size is a multiple of.
[[nodiscard]] double coordinate_bytes(const CooTensor& x);

/// What a format's formulas predict for a tensor in all modes, in bytes; unset when it cannot hold it here.
[[nodiscard]] std::optional<double> predicted_bytes(const CooTensor& x, const TensorStatistics& statistics,
                                                    const FormatEntry& format, std::uint64_t rank,
                                                    const Context& context = {});

/// While a format is built the sort holds a record of key and value, of at most so many bytes, per nonzero.
inline constexpr std::uint64_t sort_bytes_per_nonzero = 24;

}  // namespace polyad
