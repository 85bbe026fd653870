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
  PlannerFlags planner;
  std::string device_model;
};

/// What is known of a format before it is built.
struct Planned {
  FormatEstimate estimate;
  MemoryPlan memory;
};

Json describe(const Planned& p) {
  Json json = {{"format", p.estimate.format}};
  if (!p.memory.refusal.empty()) {
    json["refused"] = p.memory.refusal;
    return json;
  }
  json["seconds"] = p.estimate.seconds;
  json["build_seconds"] = p.estimate.build_seconds;
  json["bytes"] = p.memory.tensor;
  json["kept_bytes"] = static_cast<std::uint64_t>(p.estimate.kept_bytes);
  json["memory"] = {{"load", p.memory.load}, {"build", p.memory.build}, {"iterate", p.memory.iterate}};
  json["peak_bytes"] = p.memory.peak();
  json["fits"] = p.estimate.fits;
  json["why"] = p.estimate.why;
  return json;
}

void print_line(const Planned& p, bool chosen, Session& session) {
  const MemoryPlan& m = p.memory;
  const std::uint64_t limit = session.context().memory->limit();
  if (!m.refusal.empty()) return session.print("  {:<10}  {}\n", p.estimate.format, m.refusal);
  session.print("{} {:<10}  {:>9}  {:>9}  {:>9}  {:>9}  {:>9}  {:>9}  {:>9}  {}{}\n", chosen ? "*" : " ",
                p.estimate.format, readable_seconds(p.estimate.seconds), readable_seconds(p.estimate.build_seconds),
                readable_bytes(m.tensor), readable_bytes(m.load), readable_bytes(m.build), readable_bytes(m.iterate),
                readable_bytes(m.peak()), p.estimate.why,
                limit > 0 && std::max({m.load, m.build, m.iterate}) > limit ? "; above --memory" : "");
}

std::string device_note(const DeviceEstimate& e) {
  if (!e.factors_fit) return "; the factors do not fit the device";
  return e.fits ? "" : "; passes through the device in parts";
}

/// What a device on paper would take; the JSON of it.
Json device_estimates(const std::string& name, const CooTensor& x, std::uint64_t rank, Session& session) {
  const DeviceModel& d = device_model(name);
  const std::vector<DeviceEstimate> all =
      session.timed("device model", [&] { return estimate_on_device(x, rank, d, session.context()); });
  session.print("\n{}: estimate, not measured ({:g} GB/s, {:g} TFLOP/s, {:g} MB of cache, {:g} GB/s to the host)\n\n",
                d.description, d.memory_gbs, x.precision() == Precision::f32 ? d.f32_tflops : d.f64_tflops, d.cache_mb,
                d.copy_gbs);
  session.print("  {:<10}  {:>9}  {:>9}  {:>9}  {:>9}  {}\n", "format", "sweep", "upload", "tensor", "moved",
                "bound by");
  Json list = Json::array();
  for (const DeviceEstimate& e : all) {
    session.print("  {:<10}  {:>9}  {:>9}  {:>9}  {:>9}  {}{}\n", e.format, readable_seconds(e.seconds),
                  readable_seconds(e.upload_seconds), readable_bytes(static_cast<std::uint64_t>(e.tensor_bytes)),
                  readable_bytes(static_cast<std::uint64_t>(e.moved_bytes)), e.bound, device_note(e));
    list.push_back({{"format", e.format},
                    {"seconds", e.seconds},
                    {"upload_seconds", e.upload_seconds},
                    {"tensor_bytes", e.tensor_bytes},
                    {"moved_bytes", e.moved_bytes},
                    {"flops", e.flops},
                    {"fits", e.fits},
                    {"factors_fit", e.factors_fit},
                    {"bound", e.bound}});
  }
  session.print(
      "\nestimated sweep: the larger of bytes / bandwidth and flops / peak; without launches, imbalance and conflicts "
      "of "
      "atomics\n");
  return {{"name", d.name},
          {"description", d.description},
          {"estimated", true},
          {"memory_gbs", d.memory_gbs},
          {"f32_tflops", d.f32_tflops},
          {"f64_tflops", d.f64_tflops},
          {"cache_mb", d.cache_mb},
          {"memory_gb", d.memory_gb},
          {"copy_gbs", d.copy_gbs},
          {"formats", std::move(list)}};
}

/// Formats by their estimates for the devices of the context: those that no device kernel works on are left out.
std::vector<FormatEstimate> for_devices(std::vector<FormatEstimate> here, const std::vector<DeviceEstimate>& there) {
  std::vector<FormatEstimate> all;
  for (const DeviceEstimate& e : there) {
    const auto found = std::ranges::find(here, e.format, &FormatEstimate::format);
    found->seconds = e.seconds;
    found->why = fmt::format("bound by {}{}{}", e.bound, device_note(e), found->fits ? "" : "; " + found->why);
    all.push_back(std::move(*found));
  }
  return all;
}

/// Whether a sorted copy and the records of a sort surely fit the memory.
bool has_room_to_merge(const CooTensor& x, const Context& context) {
  const auto limit = static_cast<double>(context.memory->limit());
  return limit == 0 || static_cast<double>(context.memory->used()) + 3 * coordinate_bytes(x) + 4e6 <= limit;
}

void run(const PlanOptions& o, Session& session) {
  if (!o.device_model.empty()) (void)device_model(o.device_model);
  const Context& context = session.context();
  ReadResult read = load(o.input, session);
  for (const std::string& note : read.report.notes) session.note(note);
  check_order(read.tensor, o.input);
  CpAlsOptions options = o.solver.options(read.tensor.order());
  if (o.init == "rsvd") options.start = CpStart::rsvd;
  const std::optional<Choice> stream = stream_option("auto", read.tensor, options.rank, session);
  // As cpd does before it chooses. Where there is no room for that, what is wanted is how much is missing.
  if (!stream && has_room_to_merge(read.tensor, context)) merge_and_note(read.tensor, session);
  const CooTensor& x = read.tensor;
  const Choice choice = session.timed(
      "choose", [&] { return stream ? *stream : format_option("auto", {}, x, options.rank, session, o.planner); });
  // Only formats that no kernel was written for are counted exactly.
  const std::optional<TensorStatistics> s = session.timed("statistics", [&]() -> std::optional<TensorStatistics> {
    try {
      return statistics(x, context);
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::limit) throw;
      return std::nullopt;
    }
  });

  std::vector<Planned> plans;
  std::optional<DeviceModel> device;
  session.timed("plan", [&] {
    std::vector<FormatEstimate> ranked = rank_formats(x, options.rank, context);
    if (!context.devices.empty()) {
      device = model_of_devices(context);
      ranked = for_devices(std::move(ranked), estimate_on_device(x, options.rank, *device, context));
    }
    for (FormatEstimate& e : ranked) {
      MemoryPlan memory;
      if (e.has_kernel || s) {
        memory = plan_memory(x, s.value_or(TensorStatistics{}), e.format, options, context);
      } else {
        memory.format = e.format;
        memory.refusal = "counting what it takes does not fit the memory";
      }
      plans.push_back({std::move(e), std::move(memory)});
    }
  });
  // clang 14 does not take the ranges of libstdc++ 12 here.
  std::stable_partition(plans.begin(), plans.end(), [](const Planned& p) { return p.memory.refusal.empty(); });

  session.print("{}, {} nonzeros, {}, rank {}, {} threads\n", readable_dims(x.dims), readable_count(x.nnz()),
                name_of(x.precision()), options.rank, context.thread_count());
  session.print("auto takes {}: {}\n\n", choice.format, choice.why);
  session.print("  {:<10}  {:>9}  {:>9}  {:>9}  {:>9}  {:>9}  {:>9}  {:>9}  {}\n", "format", "sweep", "build", "tensor",
                "loading", "building", "iterating", "peak", "why");
  Json list = Json::array();
  for (const Planned& p : plans) {
    list.push_back(describe(p));
    print_line(p, p.estimate.format == choice.format, session);
  }
  session.print(
      "\nsweep: estimated time of MTTKRPs in all modes in turn{}; peak: the most of the three, and 30 MB and a "
      "twentieth "
      "for the program itself\n",
      device ? " on the device" : "");
  if (device)
    session.print(
        "{}: its bandwidths ({:.3g} GB/s, {:.3g} GB/s from the host) were measured, MTTKRPs were not; without "
        "arithmetic, launches,\nimbalance and conflicts of atomics\n",
        session.options().device, device->memory_gbs, device->copy_gbs);
  const auto chosen = std::ranges::find(plans, choice.format, [](const Planned& p) { return p.estimate.format; });
  session.json() = {{"dims", x.dims},
                    {"nnz", x.nnz()},
                    {"precision", name_of(x.precision())},
                    {"rank", options.rank},
                    {"choice",
                     {{"format", choice.format},
                      {"why", choice.why},
                      {"seconds", chosen->estimate.seconds},
                      {"peak_bytes", chosen->memory.peak()}}},
                    {"formats", std::move(list)}};
  if (device)
    session.json()["device_estimate"] = {{"description", device->description}, {"estimated", true},
                                         {"memory_gbs", device->memory_gbs},   {"copy_gbs", device->copy_gbs},
                                         {"cache_mb", device->cache_mb},       {"memory_gb", device->memory_gb}};
  if (!o.device_model.empty())
    session.json()["device_model"] = device_estimates(o.device_model, x, options.rank, session);
}

std::function<void(Session&)> declare_plan(CLI::App& command) {
  auto o = std::make_shared<PlanOptions>();
  declare_input(command, o->input);
  o->solver.declare(
      command, {"iters", "tol", "max-seconds", "l2", "fix-mode", "format", "dense", "checkpoint", "every", "resume"});
  command.add_option("--init", o->init, "start: random, or rsvd, which needs more memory")
      ->check(CLI::IsMember({"random", "rsvd"}))
      ->capture_default_str();
  o->planner.declare(command);
  command.add_option("--device-model", o->device_model,
                     "also estimate, from published figures, the time on a GPU that is not here: p100, a100 or h100");
  return [o](Session& session) { run(*o, session); };
}

}  // namespace

const Verb plan_verb = {"plan", "the time and memory a decomposition will need in each format, without running it",
                        "polyad plan ratings.tns.gz --rank 16", declare_plan, DeviceUse::plans};

}  // namespace polyad::cli
