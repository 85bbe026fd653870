// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <polyad/polyad.hpp>

#include "session.hpp"
#include "signals.hpp"
#include "verb.hpp"

namespace {

using namespace polyad;

constexpr int exit_data = 1;
constexpr int exit_usage = 2;
constexpr int exit_closed_pipe = 128 + SIGPIPE;  // what a shell shows for programs that die of it

const cli::Verb* const verbs[] = {&cli::info_verb,  &cli::check_verb, &cli::convert_verb, &cli::generate_verb,
                                  &cli::cpd_verb,   &cli::plan_verb,  &cli::mttkrp_verb,  &cli::ttv_verb,
                                  &cli::bench_verb, &cli::score_verb, &cli::list_verb};

int fail(int code, std::string_view sentence) {
  cli::say(fmt::format("polyad: {}\n", sentence));
  return code;
}

int exit_code_of(const Error& e) {
  switch (e.kind()) {
    case ErrorKind::usage:
      return exit_usage;
    case ErrorKind::cancelled:
      return 128 + cli::caught_signal();
    case ErrorKind::input:
    case ErrorKind::limit:
      break;
  }
  return exit_data;
}

/// The library begins a sentence about an option with its name; here that is a flag.
Error as_flag(const Error& e, const CLI::App& command) {
  const std::string_view sentence = e.what();
  const std::string flag = fmt::format("--{}", sentence.substr(0, sentence.find(':')));
  const bool names_flag = e.kind() == ErrorKind::usage && command.get_option_no_throw(flag) != nullptr;
  return names_flag ? Error(e.kind(), fmt::format("--{}", sentence)) : e;
}

int run(int argc, char** argv) {
  CLI::App app("polyad: decomposes sparse tensors", "polyad");
  app.set_version_flag("--version", fmt::format("polyad {}", version));
  app.set_help_flag("-h,--help", "this page; 'polyad VERB --help' for one verb");
  app.require_subcommand(1, 1);
  app.footer("Example: polyad info ratings.tns.gz");

  cli::CommonOptions common;
  std::vector<std::pair<const CLI::App*, std::function<void(cli::Session&)>>> actions;
  for (const cli::Verb* verb : verbs) {
    CLI::App* command = app.add_subcommand(std::string(verb->name), std::string(verb->summary));
    command->set_help_flag("-h,--help", "this page");
    command->footer(fmt::format("Example: {}", verb->example));
    actions.emplace_back(command, verb->declare(*command));
    cli::declare_common(*command, common, verb->devices);
  }

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);  // --help, --version
    std::string sentence = e.what();
    if (argc < 2) sentence = "a verb is expected";
    if (argc >= 2 && argv[1][0] != '-' && app.get_subcommands().empty())
      sentence = fmt::format("there is no verb '{}'", argv[1]);
    const std::string verb = app.get_subcommands().empty() ? "" : " " + app.get_subcommands()[0]->get_name();
    return fail(exit_usage, fmt::format("{} ('polyad{} --help' shows how)", sentence, verb));
  }
  for (const auto& [command, action] : actions) {
    if (!command->parsed()) continue;
    cli::Session session(common);
    const PageReuse reuse(session.context().memory->limit() / 4);
    try {
      action(session);
    } catch (const Error& e) {
      throw as_flag(e, *command);
    }
    session.finish();
    if (session.reader_left()) return exit_closed_pipe;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  cli::fill_standard_descriptors();
  cli::install_signal_handlers();
  try {
    return run(argc, argv);
  } catch (const Error& e) {
    // As cat and grep do: who closes a pipe has seen enough, and needs no message.
    if (exit_code_of(e) == exit_data && cli::pipe_was_closed()) return exit_closed_pipe;
    return fail(exit_code_of(e), e.what());
  } catch (const std::bad_alloc&) {
    return fail(exit_data, "this machine has not enough memory for that");
  } catch (const std::exception& e) {
    return fail(exit_data, e.what());
  }
}
