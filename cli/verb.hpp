// SPDX-License-Identifier: MIT
/// \file What a verb is. One file per verb; main.cpp is a table of them.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string_view>

namespace polyad::cli {

class Session;

/// Declares the verb's own options on its sub-command and returns what to do when it is called.
using Declare = std::function<void(Session&)> (*)(CLI::App& command);

/// What a verb does with devices, and so which options about them it has.
enum class DeviceUse : std::uint8_t {
  none,   ///< it runs on the processor: no device but cpu is taken
  plans,  ///< they change what it says
  runs,   ///< its work runs on them
};

/// A verb of the command line.
struct Verb {
  std::string_view name;
  std::string_view summary;
  std::string_view example;  ///< shown at the end of its help
  Declare declare;
  DeviceUse devices = DeviceUse::none;
};

extern const Verb info_verb;
extern const Verb check_verb;
extern const Verb convert_verb;
extern const Verb generate_verb;
extern const Verb cpd_verb;
extern const Verb plan_verb;
extern const Verb mttkrp_verb;
extern const Verb bench_verb;
extern const Verb ttv_verb;
extern const Verb score_verb;
extern const Verb list_verb;

}  // namespace polyad::cli
