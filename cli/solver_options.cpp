// SPDX-License-Identifier: MIT
#include "solver_options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernel_options.hpp"

namespace polyad::cli {

namespace {

constexpr const char* group = "Decomposition";

/// A number in the option's range; else a sentence.
CLI::Validator in_range(const CpAlsOption& option) {
  return {[option](const std::string& text) {
            double value = 0;
            if (CLI::detail::lexical_cast(text, value) && value >= option.lowest && value <= option.highest)
              return std::string();
            return option.highest > 1e300
                       ? fmt::format("found '{}', expected a number of at least {:g}", text, option.lowest)
                       : fmt::format("found '{}', expected {:g} to {:g}", text, option.lowest, option.highest);
          },
          ""};
}

}  // namespace

void SolverFlags::declare(CLI::App& command, const std::vector<std::string_view>& without) {
  command_ = &command;
  for (const CpAlsOption& option : cp_als_options()) {
    if (std::ranges::count(without, option.name) > 0) continue;
    const std::string flag = fmt::format("--{}", option.name);
    const std::string help(option.help);
    std::visit(
        [&]<class Member>(Member member) {
          using Type = std::remove_reference_t<decltype(values_.*member)>;
          if constexpr (std::is_same_v<Type, bool>) {
            command.add_flag(flag, values_.*member, help)->group(group);
          } else if constexpr (std::is_same_v<Type, std::vector<int>>) {
            std::string& text = modes_[flag];
            command
                .add_option_function<std::vector<std::string>>(
                    flag,
                    [&text](const std::vector<std::string>& given) {
                      text = given.empty() || given[0].empty() ? "all" : given[0];
                    },
                    help)
                ->expected(option.name == "nonnegative" ? 0 : 1, 1)
                ->check(CLI::Validator(
                    [](const std::string& given) {
                      const bool modes = given == "all" || given.find_first_not_of("0123456789,") == std::string::npos;
                      return modes ? std::string()
                                   : fmt::format("found '{}', expected modes such as 1,3 (FILE goes before it)", given);
                    },
                    ""))
                ->group(group);
          } else if constexpr (std::is_same_v<Type, std::string>) {
            command.add_option(flag, values_.*member, help)->group(group)->capture_default_str();
          } else {
            command.add_option(flag, values_.*member, help)
                ->check(in_range(option))
                ->group(group)
                ->capture_default_str();
          }
        },
        option.member);
  }
}

bool SolverFlags::was_given(std::string_view name) const {
  return command_->get_option(fmt::format("--{}", name))->count() > 0;
}

CpAlsOptions SolverFlags::options(int order) const {
  CpAlsOptions o = values_;
  for (const CpAlsOption& option : cp_als_options()) {
    const auto* member = std::get_if<std::vector<int> CpAlsOptions::*>(&option.member);
    if (member == nullptr) continue;
    const auto found = modes_.find(fmt::format("--{}", option.name));
    if (found != modes_.end() && !found->second.empty()) o.** member = modes_option(found->first, found->second, order);
  }
  return o;
}

nlohmann::ordered_json describe(const CpAlsOptions& options) {
  nlohmann::ordered_json all;
  for (const CpAlsOption& option : cp_als_options())
    std::visit(
        [&]<class Member>(Member member) {
          using Type = std::remove_cvref_t<decltype(options.*member)>;
          if constexpr (std::is_same_v<Type, std::vector<int>>) {
            auto modes = nlohmann::ordered_json::array();
            for (const int m : options.*member) modes.push_back(m + 1);
            all[std::string(option.name)] = std::move(modes);
          } else {
            all[std::string(option.name)] = options.*member;
          }
        },
        option.member);
  return all;
}

}  // namespace polyad::cli
