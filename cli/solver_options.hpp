// SPDX-License-Identifier: MIT
/// \file The options of CP-ALS as flags: made of the solver's own table, so that no flag is described twice.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <polyad/polyad.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace polyad::cli {

/// The flags of a verb that runs CP-ALS.
class SolverFlags {
 public:
  /// Adds every option of the table except those named.
  void declare(CLI::App& command, const std::vector<std::string_view>& without = {});
  /// The options with their modes resolved for a tensor of that order; Error (usage) that names the flag.
  [[nodiscard]] CpAlsOptions options(int order) const;
  /// Whether the user gave the option.
  [[nodiscard]] bool was_given(std::string_view name) const;
  /// What was given so far, before the tensor is known.
  [[nodiscard]] const CpAlsOptions& values() const noexcept { return values_; }

 private:
  CpAlsOptions values_;
  const CLI::App* command_ = nullptr;
  std::map<std::string, std::string> modes_;  // by flag: "all", "1,3"
};

/// Every option of the table with its value, for JSON and reports. Modes are numbered from 1.
[[nodiscard]] nlohmann::ordered_json describe(const CpAlsOptions& options);

}  // namespace polyad::cli
