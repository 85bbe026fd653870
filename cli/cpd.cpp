// SPDX-License-Identifier: MIT
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "components.hpp"
#include "kernel_options.hpp"
#include "session.hpp"
#include "solver_options.hpp"
#include "verb.hpp"

namespace polyad::cli {

namespace {

using Clock = std::chrono::steady_clock;

struct CpdOptions {
  InputOptions input;
  SolverFlags solver;
  std::string init = "random";
  std::string transform;
  PlannerFlags planner;
  std::string output;
  std::string report;
  std::uint64_t top = 5;
};

/// A line per iteration on standard error, and the bar of the session below it. Long runs of short iterations show some
/// of them only: all are in the JSON.
class IterationLines {
 public:
  IterationLines(Session& session, const CpAlsOptions& options) : session_(session), options_(options) {}

  void show(const CpIteration& i, std::uint64_t restart) {
    const double now = i.seconds;
    const bool due = shown_ < 100 || now - last_ > 1;
    if (due && !session_.options().quiet) {
      const std::string start = options_.restarts > 1 ? fmt::format("start {}, ", restart + 1) : "";
      session_.progress_text(fmt::format("{}iteration {:>3}: fit {:.6f}, change {:+.1e}, {:.2f} s\n", start,
                                         i.iteration, i.fit, i.change, now));
      last_ = now;
      ++shown_;
    }
    if (session_.context().observer)
      session_.context().observer({"decomposing", restart * options_.iterations + i.iteration,
                                   options_.restarts * options_.iterations, "iterations"});
  }

 private:
  Session& session_;
  const CpAlsOptions& options_;
  double last_ = 0;
  int shown_ = 0;
};

/// A model of that name is one file, compressed or not, and not a folder.
bool is_file(std::string_view name) {
  for (const std::string_view compression : {".gz", ".zst"})
    if (name.ends_with(compression)) name.remove_suffix(compression.size());
  return name.ends_with(".npz") || name.ends_with(".json") || name.ends_with(".ktensor");
}

/// Options that make no sense, and places that cannot be written, before hours of work.
void check_before(const CpdOptions& o, Session& session) {
  const CpAlsOptions& wanted = o.solver.values();
  if (wanted.format != "auto") (void)format_named(wanted.format);
  for (const auto& [flag, path] :
       {std::pair{"--out", o.output}, {"--report", o.report}, {"--checkpoint", wanted.checkpoint}}) {
    if (path == "-") throw usage_error(fmt::format("{}: found -, expected the name of a file", flag));
    keep_inputs(flag, path, o.input, session,
                o.init == "random" || o.init == "rsvd" ? std::vector<std::string>{} : std::vector{o.init});
  }
  // Two outputs of one name: the later would take the place of the earlier.
  std::vector<std::pair<std::string, std::filesystem::path>> places;
  const std::string previous = wanted.checkpoint.empty() ? "" : wanted.checkpoint + ".previous";
  for (const auto& [flag, path] : {std::pair<std::string, std::string>{"the tensor", o.input.file},
                                   {"--out", o.output},
                                   {"--report", o.report},
                                   {"--checkpoint", wanted.checkpoint},
                                   {"--checkpoint's .previous", previous},
                                   {"--json", session.options().json}}) {
    if (path.empty() || path == "-") continue;
    std::error_code ignored;
    const std::filesystem::path place = std::filesystem::weakly_canonical(path, ignored).lexically_normal();
    for (const auto& [other, taken] : places)
      if (place == taken) throw usage_error(fmt::format("{} and {} are the same file", other, flag));
    places.emplace_back(flag, place);
  }
  if (wanted.resume && wanted.checkpoint.empty()) throw usage_error("--resume needs --checkpoint FILE");
  check_place(o.report);
  check_place(wanted.checkpoint);
  check_place(session.options().json);
  check_place(o.output, !is_file(o.output));
}

Json describe_result(const CpAlsResult& r, const CpAlsOptions& options) {
  Json json;
  json["fit"] = r.fit;
  json["iterations"] = r.iterations();
  json["converged"] = r.converged();
  json["stop"] = name_of(r.stop);
  json["rank"] = options.rank;
  json["format"] = r.format.format;
  json["format_why"] = r.format.why;
  json["tensor_bytes"] = r.tensor_bytes;
  json["weights"] = r.model.weights;
  std::uint64_t iterations = 0;  // of all starts, of this call
  for (const CpRun& run : r.runs) iterations += run.iterations;
  iterations -= std::min(iterations, r.resumed_at);
  json["seconds_per_iteration"] = iterations > 0 ? r.iterate_seconds / static_cast<double>(iterations) : 0.0;
  json["dense_seconds"] = r.dense_seconds;
  json["dense"] = r.dense;
  json["options"] = cli::describe(options);
  json["notes"] = r.notes;
  if (r.resumed_at > 0) json["resumed_at"] = r.resumed_at;
  json["runs"] = Json::array();
  for (const CpRun& run : r.runs)
    json["runs"].push_back(
        {{"start", run.restart + 1}, {"fit", run.fit}, {"iterations", run.iterations}, {"stop", name_of(run.stop)}});
  json["history"] = Json::array();
  for (const CpIteration& i : r.history)
    json["history"].push_back({{"iteration", i.iteration},
                               {"fit", i.fit},
                               {"change", i.change},
                               {"seconds", i.seconds},
                               {"objective", i.objective}});
  return json;
}

std::string ending(const CpAlsResult& r) {
  switch (r.stop) {
    case CpStop::converged:
      return fmt::format("converged after {} iterations", r.iterations());
    case CpStop::iterations:
      return fmt::format("after {} iterations, not converged", r.iterations());
    case CpStop::seconds:
      return fmt::format("the time was over after {} iterations", r.iterations());
    case CpStop::cancelled:
      break;
  }
  return fmt::format("stopped after {} iterations", r.iterations());
}

/// "device", or mode by mode where they differ.
std::string dense_text(const std::vector<std::string_view>& places) {
  std::string text;
  for (std::size_t m = 0; m < places.size(); ++m)
    text += fmt::format("{}{} (mode {})", m == 0 ? "" : ", ", places[m], m + 1);
  const bool same = std::ranges::all_of(places, [&](std::string_view p) { return p == places[0]; });
  return same ? std::string(places[0]) : text;
}

/// The table of the run in the report.
ReportOptions report_options(const CpdOptions& o, const CpAlsOptions& options, const CpAlsResult& r, const Tensor& x,
                             Session& session) {
  ReportOptions report;
  std::filesystem::path file = std::filesystem::path(o.input.file).filename();
  if (file.extension() == ".gz" || file.extension() == ".zst") file.replace_extension();
  report.title = o.input.file == "-" ? "standard input" : file.stem().string();
  report.notes = r.notes;
  if (r.stop != CpStop::converged && !r.history.empty())
    report.notes.push_back(
        fmt::format("Not converged: the fit still changed by {:.1e} in the last iteration.", r.history.back().change));
  auto& facts = report.facts;
  facts.emplace_back("tensor", fmt::format("{}, {} nonzeros", readable_dims(x.dims()), readable_count(x.nnz())));
  facts.emplace_back("fit", fmt::format("{:.6f}, {}", r.fit, ending(r)));
  facts.emplace_back("format",
                     fmt::format("{} ({}), {}", r.format.format, r.format.why, readable_bytes(r.tensor_bytes)));
  facts.emplace_back("precision", std::string(name_of(x.precision())));
  const Json described = cli::describe(options);
  for (const auto& [name, value] : described.items()) {
    if (name == "format" || name == "checkpoint" || name == "every" || name == "resume") continue;
    if (value.is_array() && value.empty()) continue;
    facts.emplace_back(name, value.is_array() ? fmt::format("modes {}", fmt::join(value.get<std::vector<int>>(), ", "))
                                              : value.dump());
  }
  if (!o.transform.empty()) facts.emplace_back("transform", o.transform);
  facts.emplace_back("start", o.init);
  facts.emplace_back("seed", fmt::to_string(session.options().seed));
  facts.emplace_back("device", session.options().device);
  facts.emplace_back("threads", fmt::to_string(session.context().thread_count()));
  facts.emplace_back("seconds", fmt::format("{:.2f} building, {:.2f} iterating", r.build_seconds, r.iterate_seconds));
  facts.emplace_back("memory", readable_bytes(session.peak_rss()));
  facts.emplace_back("polyad", version);
  return report;
}

/// Writes all that was asked for. A signal that ended the iterations must not end this.
void write_results(const CpdOptions& o, const CpAlsOptions& options, const CpAlsResult& r, const Tensor& x,
                   Session& session) {
  Context context = session.context();
  context.cancelled = {};
  session.timed("write", [&] {
    if (!o.output.empty()) write(r.model, o.output, context);
    if (!o.report.empty())
      write_text(html_report(r.model, r.history, report_options(o, options, r, x, session)), o.report);
  });
}

void run(const CpdOptions& o, Session& session) {
  check_before(o, session);
  const Context& context = session.context();
  ReadResult read = load(o.input, session);
  for (const std::string& note : read.report.notes) session.note(note);
  CooTensor x = std::move(read.tensor);
  check_order(x, o.input);
  CpAlsOptions options = o.solver.options(x.order());
  options.seed = session.options().seed;
  CpModel initial;
  if (o.init == "rsvd") {
    options.start = CpStart::rsvd;
  } else if (o.init != "random") {
    initial = read_model(o.init, context);
    std::uint64_t missing = 0;
    for (int m = 0; m < static_cast<int>(x.labels.size()); ++m)  // a free mode may have other rows altogether
      if (options.fixed.empty() || std::ranges::count(options.fixed, m) > 0)
        missing += align(initial, m, x.labels[static_cast<std::size_t>(m)]);
    if (missing > 0)
      session.note(fmt::format("{} labels of the tensor are not in {}: their rows begin at 0", missing, o.init));
    options.start = CpStart::model;
    options.initial = &initial;
    if (!o.solver.was_given("rank")) options.rank = initial.rank();
  }
  const std::optional<Choice> stream =
      o.transform.empty() ? stream_option(options.format, x, options.rank, session) : std::nullopt;
  merge_and_note(x, session);

  if (!o.transform.empty()) {
    session.timed("transform", [&] {
      apply_transform(o.transform, x, context);
      const std::uint64_t dropped = drop_zeros(x, context);
      if (dropped > 0) session.note(fmt::format("{} nonzeros became 0 and were dropped", dropped));
    });
  }

  const Choice choice = session.timed(o.planner.tune ? "tune" : "plan", [&] {
    PlannerFlags flags = o.planner;
    flags.same_again = !options.checkpoint.empty();
    return stream ? *stream : format_option(options.format, {}, x, options.rank, session, flags);
  });
  const FormatOptions format = options_for(choice, options.rank);
  const std::uint64_t print = options.checkpoint.empty() ? 0 : fingerprint(x, context);
  std::vector<ModeLabels> labels = std::move(x.labels);
  const auto build_begin = Clock::now();
  Tensor tensor = session.timed(
      "build", [&] { return stream ? stream_of(std::move(x), context) : build(x, choice.format, format, context); });
  const double build_seconds = std::chrono::duration<double>(Clock::now() - build_begin).count();
  x = {};

  session.print("{}: {}, {} nonzeros, {}\n", o.input.file == "-" ? "standard input" : o.input.file,
                readable_dims(tensor.dims()), readable_count(tensor.nnz()), name_of(tensor.precision()));
  session.print("rank {}, {} threads{}, format {} ({})\n", options.rank, context.thread_count(),
                context.devices.empty() ? "" : fmt::format(", device {}", session.options().device), choice.format,
                choice.why);
  double rows = 0;
  for (const std::uint64_t d : tensor.dims()) rows += static_cast<double>(d);
  const double factors = rows * static_cast<double>(padded_columns(options.rank) * bytes_of(tensor.precision()));
  session.print("memory: tensor {}, factors {}, limit {}\n", readable_bytes(tensor.bytes()),
                readable_bytes(static_cast<std::uint64_t>(factors)),
                context.memory->limit() > 0 ? readable_bytes(context.memory->limit()) : "none");
  session.flush();
  IterationLines lines(session, options);
  options.observer = [&](const CpIteration& i, std::uint64_t restart) { lines.show(i, restart); };
  CpAlsResult result = session.timed("iterate", [&] { return cp_als(tensor, options, context, print); });
  result.format = choice;
  result.build_seconds = build_seconds;
  result.model.labels = std::move(labels);

  if (result.converged() && result.fit < 100 * options.tolerance)
    result.notes.push_back(
        fmt::format("the fit is not much above the tolerance of {:g}: a smaller tol may find more", options.tolerance));
  write_results(o, options, result, tensor, session);
  for (const std::string& note : result.notes) session.note(note);
  if (session.prints_for_people()) session.print("{}", components_text(result.model, o.top, context));
  session.print("\nfit {:.6f}, {}", result.fit, ending(result));
  if (result.runs.size() > 1) {
    const auto [worst, best] = std::ranges::minmax(result.runs, {}, &CpRun::fit);
    session.print("; the best of {} starts (fits {:.6f} to {:.6f})", result.runs.size(), worst.fit, best.fit);
  }
  session.print("\n");
  if (!context.devices.empty()) session.print("rows solved on: {}\n", dense_text(result.dense));
  if (!o.output.empty()) session.print("model: {}\n", o.output);
  if (!o.report.empty()) session.print("report: {}\n", o.report);
  if (result.resumed_at > 0) session.print("resumed at iteration {}\n", result.resumed_at);
  session.json() = describe_result(result, options);
  session.json()["tensor"] = {{"file", o.input.file},
                              {"dims", tensor.dims()},
                              {"nnz", tensor.nnz()},
                              {"precision", name_of(tensor.precision())}};
  session.json()["options"]["init"] = o.init;
  session.json()["options"]["transform"] = o.transform;
  if (result.stop != CpStop::cancelled) return;
  session.finish();
  throw Error(ErrorKind::cancelled,
              fmt::format("stopped after {} iterations; what was asked to be kept is written", result.iterations()));
}

std::function<void(Session&)> declare_cpd(CLI::App& command) {
  auto o = std::make_shared<CpdOptions>();
  declare_input(command, o->input);
  o->solver.declare(command);
  o->planner.declare(command);
  command.add_option("--transform", o->transform, transform_help);
  command.add_option("--init", o->init, "start: random, rsvd (a sketch of the tensor), or a model to go on from")
      ->capture_default_str();
  command.add_option("--out", o->output, "folder for the model (or FILE.npz, FILE.json, FILE.ktensor)");
  command.add_option("--report", o->report, "one HTML page with charts of every component");
  command.add_option("--top", o->top, "entries shown per mode of a component")->capture_default_str();
  return [o](Session& session) { run(*o, session); };
}

}  // namespace

const Verb cpd_verb = {"cpd", "decomposes a tensor into components (CP-ALS)",
                       "polyad cpd ratings.tns.gz --rank 16 --out model --report out.html", declare_cpd,
                       DeviceUse::runs};

}  // namespace polyad::cli
