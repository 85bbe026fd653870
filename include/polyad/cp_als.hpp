// SPDX-License-Identifier: MIT
/// \file CP-ALS: the alternating least squares decomposition of a sparse tensor in any storage format.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "polyad/context.hpp"
#include "polyad/coo_tensor.hpp"
#include "polyad/cp_model.hpp"
#include "polyad/planner.hpp"
#include "polyad/tensor.hpp"

namespace polyad {

/// One iteration: every free mode updated once.
struct CpIteration {
  std::uint64_t iteration = 0;  ///< from 1
  double fit = 0;               ///< 1 - ||X - M|| / ||X||
  double change = 0;            ///< of the fit since the iteration before; of the first one, its fit
  double seconds = 0;           ///< since the start of this decomposition, all runs of a resumed one together
  double objective = 0;         ///< ||X - M||^2 / 2 + l2 / 2 * sum over modes of ||A||^2
};

/// Why a decomposition ended.
enum class CpStop : std::uint8_t {
  converged,   ///< the fit changed by less than the tolerance
  iterations,  ///< as many as were allowed
  seconds,     ///< the time was over
  cancelled,   ///< the caller asked to stop
};
/// "converged", "iterations", "seconds", "cancelled".
[[nodiscard]] std::string_view name_of(CpStop stop);

/// Where a decomposition begins.
enum class CpStart : std::uint8_t {
  random,  ///< uniform in [0, 1), a function of seed, restart, mode, row and component alone
  rsvd,    ///< the leading left singular vectors of a random sketch of each unfolding, made by MTTKRPs
  model,   ///< CpAlsOptions::initial
};

/// What CP-ALS may be told. Modes are 0-based.
struct CpAlsOptions {
  std::uint64_t rank = 16;
  std::uint64_t iterations = 50;
  /// Ends when the fit changes by less; 0: never.
  double tolerance = 1e-5;
  /// Ends after the mode in which the time of this call is over, not counting the building of the format; 0: no limit.
  double max_seconds = 0;
  /// Of the random start; unset: the context's.
  std::optional<std::uint64_t> seed = std::nullopt;
  CpStart start = CpStart::random;
  /// Runs from so many random starts and keeps the best.
  std::uint64_t restarts = 1;
  /// Ridge: the objective has l2/2 times the squared norm of every factor.
  double l2 = 0;
  /// Modes whose factors must not be negative (HALS in place of least squares).
  std::vector<int> nonnegative = {};
  /// Modes whose factors stay those of `initial`.
  std::vector<int> fixed = {};
  /// Start from this model (with CpStart::model); it must live as long as the call. Free modes may have another length
  /// than the tensor's: they begin at random.
  const CpModel* initial = nullptr;
  /// Storage format, or "auto". For cp_als of a CooTensor.
  std::string format = "auto";
  /// Where the rows of a factor are solved when the context has a device: "host", "device" (only with one), or "auto":
  /// both are measured in the first iterations and the cheaper is kept, mode by mode. Where results must not depend on
  /// times (a deterministic context, a checkpoint) auto is the device if that is a GPU, else the host.
  std::string dense = "auto";
  /// File for the state; empty: none. The one before stays as FILE.previous.
  std::string checkpoint = {};
  /// Iterations between two checkpoints.
  std::uint64_t every = 10;
  /// Continue from the checkpoint if there is one.
  bool resume = false;
  /// Called after every iteration.
  std::function<void(const CpIteration&, std::uint64_t restart)> observer = {};
};

/// One of several starts.
struct CpRun {
  std::uint64_t restart = 0;  ///< from 0
  double fit = 0;
  std::uint64_t iterations = 0;
  CpStop stop = CpStop::iterations;
};

/// What came out.
struct CpAlsResult {
  /// Arranged (see arrange()) unless modes are fixed, whose components stay in their order; with the tensor's labels.
  CpModel model;
  double fit = 0;
  CpStop stop = CpStop::iterations;
  std::vector<CpIteration> history;  ///< of the best run
  std::vector<CpRun> runs;           ///< of every start
  std::vector<std::string> notes;    ///< what the user should know: truncated Grams, cancelling components, ...
  Choice format;                     ///< which storage format and why
  std::uint64_t tensor_bytes = 0;    ///< of that format
  double build_seconds = 0;
  double iterate_seconds = 0;    ///< of all runs of this call
  double dense_seconds = 0;      ///< of these, outside the MTTKRPs: Grams, solves, normalisation, fit
  std::uint64_t resumed_at = 0;  ///< iteration that a checkpoint gave; 0: none
  /// Where the rows of each mode were solved in the end: "host", "device", or "fixed".
  std::vector<std::string_view> dense;

  [[nodiscard]] bool converged() const noexcept { return stop == CpStop::converged; }
  [[nodiscard]] std::uint64_t iterations() const noexcept { return history.size(); }
};

/// Decomposes a tensor: merges duplicates, builds the format, iterates.
[[nodiscard]] CpAlsResult cp_als(const CooTensor& x, const CpAlsOptions& options = {}, const Context& context = {});

/// The same for a caller that does not need the coordinates any more: their memory is given back before iterating.
[[nodiscard]] CpAlsResult cp_als(CooTensor&& x, const CpAlsOptions& options = {}, const Context& context = {});

/// Decomposes a tensor without duplicates that is in a storage format already.
/// \param fingerprint of the coordinates, for checkpoints (see fingerprint()); 0: checkpoints cannot be told apart
[[nodiscard]] CpAlsResult cp_als(Tensor& x, const CpAlsOptions& options = {}, const Context& context = {},
                                 std::uint64_t fingerprint = 0);

/// A number that tensors of other coordinates, values or dims do not have; the order of nonzeros does not matter.
[[nodiscard]] std::uint64_t fingerprint(const CooTensor& x, const Context& context = {});

/// What CP-ALS will need, step by step. Each number is the most that is held at once in that step.
struct MemoryPlan {
  std::string_view format;
  std::uint64_t tensor = 0;   ///< bytes of the format, for all modes
  std::uint64_t load = 0;     ///< reading, and merging duplicates
  std::uint64_t build = 0;    ///< coordinates, format and the sort between them
  std::uint64_t iterate = 0;  ///< format, factors, the model to come, private outputs, the best of several starts
  std::string refusal;        ///< why the format cannot hold the tensor; empty when it can

  /// The most of all, with the process itself.
  [[nodiscard]] std::uint64_t peak() const;
};

/// Predicts the memory of a decomposition in a format, without building anything. `options.format` is not read.
[[nodiscard]] MemoryPlan plan_memory(const CooTensor& x, const TensorStatistics& statistics, std::string_view format,
                                     const CpAlsOptions& options, const Context& context = {});

/// One option of CP-ALS, described once: the command line's flags, its help and the report come from this table.
struct CpAlsOption {
  using Member = std::variant<std::uint64_t CpAlsOptions::*, double CpAlsOptions::*, bool CpAlsOptions::*,
                              std::string CpAlsOptions::*, std::vector<int> CpAlsOptions::*>;
  std::string_view name;  ///< without dashes, e.g. "max-seconds"
  Member member;
  double lowest = 0;
  double highest = 0;
  std::string_view help;
};
/// All options that are a number, a name, a switch or modes.
[[nodiscard]] std::span<const CpAlsOption> cp_als_options();

}  // namespace polyad
