// SPDX-License-Identifier: MIT
#include <algorithm>

#include "kernel_options.hpp"
#include "session.hpp"
#include "solver_options.hpp"
#include "verb.hpp"

namespace polyad::cli {

namespace {

struct PlanOptions {
  InputOptions input;
  SolverFlags solver;
  std::string init = "random";
};

Json describe(const MemoryPlan& p) {
  Json json = {{"format", p.format}};
  if (!p.refusal.empty()) {
    json["refused"] = p.refusal;
    return json;
  }
  json["bytes"] = p.tensor;
  json["memory"] = {{"load", p.load}, {"build", p.build}, {"iterate", p.iterate}};
  json["peak_bytes"] = p.peak();
  return json;
}

void run(const PlanOptions& o, Session& session) {
  const Context& context = session.context();
  const ReadResult read = load(o.input, session);
  for (const std::string& note : read.report.notes) session.note(note);
  const CooTensor& x = read.tensor;
  check_order(x, o.input);
  const TensorStatistics s = session.timed("statistics", [&] { return statistics(x, context); });
  CpAlsOptions options = o.solver.options(x.order());
  if (o.init == "rsvd") options.start = CpStart::rsvd;
  const Choice choice = choose_format(x, &s, options.rank, context);

  std::vector<MemoryPlan> plans;
  session.timed("plan", [&] {
    for (const FormatEntry& f : formats()) plans.push_back(plan_memory(x, s, f.name, options, context));
  });
  std::ranges::stable_sort(plans, {}, [](const MemoryPlan& p) { return std::pair(!p.refusal.empty(), p.peak()); });

  session.print("{}, {} nonzeros, {}, rank {}, {} threads\n", readable_dims(x.dims), readable_count(x.nnz()),
                name_of(x.precision()), options.rank, context.thread_count());
  session.print("auto takes {}: {}\n\n", choice.format, choice.why);
  session.print("  {:<10}  {:>10}  {:>10}  {:>10}  {:>10}  {:>10}\n", "format", "tensor", "loading", "building",
                "iterating", "peak");
  Json list = Json::array();
  const std::uint64_t limit = context.memory->limit();
  for (const MemoryPlan& p : plans) {
    list.push_back(describe(p));
    if (!p.refusal.empty()) {
      session.print("  {:<10}  {}\n", p.format, p.refusal);
      continue;
    }
    session.print("  {:<10}  {:>10}  {:>10}  {:>10}  {:>10}  {:>10}{}{}\n", p.format, readable_bytes(p.tensor),
                  readable_bytes(p.load), readable_bytes(p.build), readable_bytes(p.iterate), readable_bytes(p.peak()),
                  p.format == choice.format ? "  <- auto" : "",
                  limit > 0 && std::max({p.load, p.build, p.iterate}) > limit ? "  above --memory" : "");
  }
  session.print("\npeak: the most of the three, and 30 MB and a twentieth for the program itself\n");
  const auto chosen = std::ranges::find(plans, choice.format, &MemoryPlan::format);
  session.json() = {{"dims", x.dims},
                    {"nnz", x.nnz()},
                    {"precision", name_of(x.precision())},
                    {"rank", options.rank},
                    {"choice", {{"format", choice.format}, {"why", choice.why}, {"peak_bytes", chosen->peak()}}},
                    {"formats", std::move(list)}};
}

std::function<void(Session&)> declare(CLI::App& command) {
  auto o = std::make_shared<PlanOptions>();
  declare_input(command, o->input);
  o->solver.declare(command,
                    {"iters", "tol", "max-seconds", "l2", "fix-mode", "format", "checkpoint", "every", "resume"});
  command.add_option("--init", o->init, "start: random, or rsvd, which needs more memory")
      ->check(CLI::IsMember({"random", "rsvd"}))
      ->capture_default_str();
  return [o](Session& session) { run(*o, session); };
}

}  // namespace

const Verb plan_verb = {"plan", "the memory a decomposition will need in each format, without running it",
                        "polyad plan ratings.tns.gz --rank 16", declare};

}  // namespace polyad::cli
