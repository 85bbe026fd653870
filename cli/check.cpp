// SPDX-License-Identifier: MIT
#include <algorithm>
#include <filesystem>

#include "session.hpp"
#include "verb.hpp"

namespace polyad::cli {

namespace {

struct CheckOptions {
  InputOptions input;
  std::string fix;
  std::uint64_t most = 20;
};

/// Where the old index of every new one is written: "NAME.mode-K.old", beside the repaired tensor.
std::string old_index_path(const std::string& output, std::size_t mode) {
  std::filesystem::path p(output);
  if (p.extension() == ".gz" || p.extension() == ".zst") p.replace_extension();
  return (p.parent_path() / fmt::format("{}.mode-{}.old", p.stem().string(), mode + 1)).string();
}

void fix(CooTensor& x, const std::string& output, Session& session) {
  Json fixed;
  fixed["merged"] = merge_duplicates(x, session.context());
  fixed["zeros_dropped"] = drop_zeros(x, session.context());
  if (x.nnz() == 0)
    throw Error(ErrorKind::input, fmt::format("{}: nothing is left without the zeros, so nothing is written", output));
  const std::vector<std::uint64_t> before = x.dims;
  const auto old = drop_empty_slices(x, session.context());
  WriteOptions how;
  Json dropped = Json::array();
  for (std::size_t m = 0; m < old.size(); ++m) {
    dropped.push_back(before[m] - x.dims[m]);
    if (before[m] == x.dims[m]) continue;
    std::string text;
    for (const std::uint64_t index : old[m]) text += fmt::format("{}\n", index + 1);
    how.companions.push_back({old_index_path(output, m), std::move(text)});
  }
  const std::vector<std::string> files = write(x, output, how, session.context());
  fixed["empty_slices_dropped"] = dropped;
  fixed["dims"] = x.dims;
  fixed["nnz"] = x.nnz();
  fixed["files"] = files;
  session.print("wrote {}: {}, {} nonzeros\n", fmt::join(files, ", "), readable_dims(x.dims), readable_count(x.nnz()));
  session.json()["fixed"] = fixed;
}

void run(const CheckOptions& o, Session& session) {
  if (!o.fix.empty() && o.fix == "-")
    throw usage_error("--fix needs the name of a file: the maps back are written beside it");
  CheckReport report = session.timed(
      "load", [&] { return check_file(o.input.file, read_options(o.input, session), o.most, session.context()); });
  Json problems = Json::array();
  for (const Problem& p : report.problems) {
    problems.push_back({{"line", p.line}, {"error", p.is_error}, {"what", p.sentence}});
    session.print("{}{}: {}{}\n", o.input.file, p.line > 0 ? fmt::format(":{}", p.line) : "",
                  p.is_error ? "" : "note: ", p.sentence);
  }
  const std::uint64_t found = report.errors + report.duplicates + report.zeros;
  if (found > report.problems.size())
    session.print("{} more are not listed (--most {} lists all)\n", readable_count(found - report.problems.size()),
                  found);
  std::uint64_t empty = 0;
  for (std::size_t m = 0; m < report.empty_slices.size(); ++m) {
    empty += report.empty_slices[m];
    if (report.empty_slices[m] > 0)
      session.print("{}: note: mode {} has {} empty slices\n", o.input.file, m + 1,
                    readable_count(report.empty_slices[m]));
  }
  for (const std::string& note : report.read.notes) session.print("{}: note: {}\n", o.input.file, note);
  session.print("{}: {} {}, {} duplicates, {} zeros, {} empty slices\n", o.input.file, readable_count(report.errors),
                report.errors == 1 ? "error" : "errors", readable_count(report.duplicates),
                readable_count(report.zeros), readable_count(empty));
  session.json() = {{"dialect", report.read.dialect},      {"errors", report.errors},
                    {"duplicates", report.duplicates},     {"zeros", report.zeros},
                    {"empty_slices", report.empty_slices}, {"problems", problems},
                    {"notes", report.read.notes}};
  if (report.tensor) {
    session.json()["order"] = report.tensor->order();
    session.json()["dims"] = report.tensor->dims;
    session.json()["nnz"] = report.tensor->nnz();
    if (!o.fix.empty()) fix(*report.tensor, o.fix, session);
    return;
  }
  session.finish();
  const auto first = std::ranges::find_if(report.problems, &Problem::is_error);
  throw file_error(o.input.file, first == report.problems.end() ? 0 : first->line,
                   fmt::format("{} of the lines cannot be read{}", report.errors,
                               o.fix.empty() ? ""
                                             : ", so nothing is written: --fix drops duplicates, zeros and empty "
                                               "slices, not lines"));
}

std::function<void(Session&)> declare_check(CLI::App& command) {
  auto o = std::make_shared<CheckOptions>();
  declare_input(command, o->input);
  command.add_option("--fix", o->fix,
                     "write the tensor without duplicates, zeros and empty slices; NAME.mode-K.old keeps the old index "
                     "of each new one");
  command.add_option("--most", o->most, "how many problems to list")->check(a_whole_number())->capture_default_str();
  return [o](Session& session) { run(*o, session); };
}

}  // namespace

const Verb check_verb = {"check", "every problem of a file with its line; --fix repairs",
                         "polyad check ratings.tns --fix clean.tns", declare_check};

}  // namespace polyad::cli
