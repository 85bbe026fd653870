// SPDX-License-Identifier: MIT
/// \file What the verbs that run kernels share: formats, modes and factors as the command line names them.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <polyad/polyad.hpp>
#include <string>
#include <vector>

#include "session.hpp"

namespace polyad::cli {

/// Error (input) unless a tensor has the two modes that kernels and formats need.
void check_order(const CooTensor& x, const InputOptions& input);

/// Sums the values of nonzeros that have one coordinate, and says how many there were.
void merge_and_note(CooTensor& x, Session& session);

/// A mode of x, counted from 1 in `text`, from 0 in the result; Error (usage) that names the flag.
[[nodiscard]] int mode_option(std::string_view flag, const std::string& text, int order);

/// "all" or "1,3": modes of a tensor of that order, from 0; Error (usage) that names the flag.
[[nodiscard]] std::vector<int> modes_option(std::string_view flag, const std::string& text, int order);

/// What the user asks of the planner.
struct PlannerFlags {
  bool tune = false;
  bool lean = false;
  /// Choose without what the cache has: a run that is resumed later has to choose the same.
  bool same_again = false;

  void declare(CLI::App& command);
};

/// The format a user named, or the one that is chosen for "auto": one that the wanted kernel works on, if one is
/// wanted.
[[nodiscard]] Choice format_option(const std::string& name, const std::string& kernel, const CooTensor& x,
                                   std::uint64_t rank, const Session& session, const PlannerFlags& flags = {});

/// "stream" when the user wants it, or when `auto` has no other way, for a tensor that is as it lies in its file; else
/// unset.
[[nodiscard]] std::optional<Choice> stream_option(const std::string& name, const CooTensor& x, std::uint64_t rank,
                                                  const Session& session);

/// A tensor whose arrays are those of x, which must live longer.
[[nodiscard]] CooTensor view_of(CooTensor& x);

/// A kernel of the operation by its name, if one is given; Error (usage) that names those there are.
void check_kernel(std::string_view flag, const std::string& name, std::string_view operation);

/// Error (usage) when a file to be written is one that is read (`inputs` besides the tensor; may be empty names or
/// folders whose files are read) or the file of --json.
void keep_inputs(std::string_view flag, const std::string& output, const InputOptions& input, const Session& session,
                 const std::vector<std::string>& inputs = {});

/// Error (input) when a file of that name cannot appear later: its folder is missing or closed. To be asked before
/// hours of work. `is_folder`: the path itself becomes a folder, and so may those above it.
void check_place(const std::string& path, bool is_folder = false);

/// Help of --transform.
inline constexpr const char* transform_help =
    "change the values: log1p, binary, deviance (counts: what independent modes do not explain) or deviance:K (what "
    "mode "
    "K, independent of the others, does not)";

/// Applies --transform; Error (usage) that names what there is.
void apply_transform(const std::string& text, CooTensor& x, const Context& context);

}  // namespace polyad::cli
