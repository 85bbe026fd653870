// SPDX-License-Identifier: MIT
/// \file Times an operation on formats. Sweeps over the modes in turn, as CP-ALS does: what one mode leaves in the
/// caches is what the next one finds.
#include <algorithm>
#include <chrono>
#include <functional>

#include <polyad/factor_stays.hpp>

#include "bench_pipeline.hpp"
#include "bench_report.hpp"
#include "kernel_options.hpp"
#include "session.hpp"
#include "verb.hpp"

namespace polyad::cli {

namespace {

using Clock = std::chrono::steady_clock;

struct BenchOptions {
  InputOptions input;
  std::string operation = "mttkrp";
  std::uint64_t rank = 16;
  std::string formats = "all";
  std::string modes = "all";
  std::string kernels;
  int repeat = 5;
  std::string plot;
  bool pipeline = false;
  PlannerFlags planner;
};

/// Runs the operation once on a mode, with the kernel of that name unless it is empty.
using Operation = std::function<KernelChoice(Tensor& x, int mode, std::string_view kernel)>;

template <class T>
Operation mttkrp_operation(const CooTensor& x, const std::vector<int>& modes, std::uint64_t rank,
                           const Context& context) {
  struct State {
    std::vector<FactorMatrix<T>> factors;
    std::vector<FactorMatrix<T>> out;  // one per mode, empty when not wanted
    Workspace workspace;
  };
  auto state = std::make_shared<State>();
  state->factors = random_factors<T>(x.dims, rank, context);
  state->workspace.keep_products();
  for (int m = 0; m < x.order(); ++m)
    state->out.push_back(std::ranges::count(modes, m) > 0
                             ? FactorMatrix<T>(context, x.dims[static_cast<std::size_t>(m)], rank, "the result")
                             : FactorMatrix<T>());
  return [state, modes, context](Tensor& tensor, int mode, std::string_view kernel) {
    const auto at = static_cast<std::size_t>(mode);
    auto next = std::ranges::find(modes, mode) + 1;
    if (next == modes.end()) next = modes.begin();
    FactorStays<T> stays(state->factors[at], *next);
    KernelChoice choice =
        mttkrp<T>(tensor, state->factors, mode, state->out[at], state->workspace, context, kernel, &stays);
    state->workspace.changed(mode);  // as in CP-ALS, where the result becomes the factor of its mode
    return choice;
  };
}

Operation ttv_operation(const CooTensor& x, const std::vector<int>& modes, const Context& context) {
  auto vectors = std::make_shared<std::vector<Buffer<double>>>(x.dims.size());  // one per mode, empty when not wanted
  for (const int m : modes) {
    const auto at = static_cast<std::size_t>(m);
    (*vectors)[at] = Buffer<double>(context, x.dims[at], "the vector of ttv");
    for (std::uint64_t i = 0; i < x.dims[at]; ++i) (*vectors)[at][i] = static_cast<double>(i % 1009) / 1009;
  }
  return [vectors, context](Tensor& tensor, int mode, std::string_view kernel) {
    KernelChoice choice;
    (void)ttv(tensor, mode, (*vectors)[static_cast<std::size_t>(mode)].span(), context, kernel, &choice);
    return choice;
  };
}

/// Whether the operation has a kernel here for a tensor that stays in its file.
bool stays_in_file(std::string_view operation) { return operation != "ttv"; }

/// The formats wanted, each once. With devices, "all" are those that a kernel of theirs works on.
std::vector<Choice> formats_option(const std::string& text, std::string_view operation, const CooTensor& x,
                                   std::uint64_t rank, const PlannerFlags& planner, Session& session) {
  std::vector<Choice> wanted;
  const auto add = [&](Choice choice) {
    if (std::ranges::count(wanted, choice.format, &Choice::format) == 0) wanted.push_back(std::move(choice));
  };
  for (const std::string& part : split(text)) {
    if (part == "all") {
      for (const FormatEntry& f : formats())
        if (session.context().devices.empty() || runs_on_devices(f.name, operation == "cpd" ? "mttkrp" : operation))
          add({f.name, {}});
      continue;
    }
    const std::optional<Choice> stream =
        stays_in_file(operation) ? stream_option(part, x, rank, session) : std::nullopt;
    Choice choice =
        stream ? *stream : format_option(part, {}, x, rank, session, part == "auto" ? planner : PlannerFlags());
    if (part == "auto") session.note(fmt::format("auto is {}: {}", choice.format, choice.why));
    add(std::move(choice));
  }
  if (wanted.empty()) throw usage_error("--formats: found nothing, expected all, auto or names such as coo,csf-all");
  return wanted;
}

/// Error (usage) for what can be seen before the tensor is read.
void check_names(const BenchOptions& o) {
  if (o.operation != "mttkrp" && o.operation != "ttv" && o.operation != "cpd")
    throw usage_error(fmt::format("--kernel {}: there is no such operation; expected mttkrp, ttv or cpd", o.operation));
  if (o.operation == "cpd" && (o.modes != "all" || !o.kernels.empty()))
    throw usage_error(
        "--kernel cpd: an iteration is of all modes, with the cheapest kernels; --modes and --kernels do not go with "
        "it");
  if (o.pipeline && (o.operation == "cpd" || !o.plot.empty() || split(o.kernels).size() > 1))
    throw usage_error("--pipeline: goes with --kernel mttkrp or ttv, at most one of --kernels, and no --plot");
  for (const std::string& part : split(o.formats))
    if (part != "all" && part != "auto") (void)format_named(part);
  for (const std::string& name : split(o.kernels)) check_kernel("--kernels", name, o.operation);
}

bool works_on(std::string_view kernel, std::string_view format) {
  for (const KernelEntry& k : kernels())
    if (k.name == kernel)
      return k.formats == "any" ||
             fmt::format(",{},", k.formats).find(fmt::format(",{},", format)) != std::string::npos;
  return false;
}

/// Measures formats one after the other; each is freed before the next is built.
class Measurement {
 public:
  Measurement(CooTensor& x, const BenchOptions& o, const BenchReport& report, Operation operation,
              const Context& context)
      : x_(x), options_(o), report_(report), operation_(std::move(operation)), context_(context) {}

  /// The format with the kernel of its own choice, or with each of --kernels that works on it.
  std::vector<FormatResult> measure(const Choice& choice) const {
    const std::string format(choice.format);
    std::vector<std::string> forced;
    for (const std::string& name : split(options_.kernels))
      if (works_on(name, format)) forced.push_back(name);
    if (forced.empty() && !options_.kernels.empty()) return {};
    if (forced.empty()) forced.emplace_back();

    std::vector<FormatResult> results;
    for (const std::string& kernel : forced) {
      FormatResult& r = results.emplace_back();
      r.format = format;
      r.kernel = kernel;
    }
    try {
      const Built built = build_format(choice);
      for (FormatResult& r : results) {
        r.build_seconds = built.seconds;
        r.bytes = built.bytes;
        try {
          sweep(built, r);
        } catch (const Error& e) {
          refuse(r, e);
        }
      }
    } catch (const Error& e) {
      for (FormatResult& r : results)
        if (r.refused.empty()) refuse(r, e);
    }
    return results;
  }

 private:
  /// A format that is built for one mode as one tensor per wanted mode, unless all are wanted; else one tensor for all.
  struct Built {
    std::vector<std::unique_ptr<Tensor>> tensors;
    double seconds = 0;
    std::uint64_t bytes = 0;

    [[nodiscard]] Tensor& of(std::size_t k) const { return *tensors[tensors.size() == 1 ? 0 : k]; }
  };

  Built build_format(const Choice& choice) const {
    Built built;
    FormatOptions options = options_for(choice, report_.rank);
    const bool per_mode = format_named(choice.format).mode_specific && options_.operation != "cpd" &&
                          report_.modes.size() < x_.dims.size();
    const bool streams =
        choice.format == "stream" && stays_in_file(options_.operation) && x_.duplicates_merged && can_stream(x_);
    const std::string phase = fmt::format("building {}", choice.format);
    const std::size_t count = per_mode ? report_.modes.size() : 1;
    for (std::size_t k = 0; k < count; ++k) {
      context_.report({phase, k, count, "structures"});
      if (per_mode) options.mode = report_.modes[k];
      const auto begin = Clock::now();
      built.tensors.push_back(std::make_unique<Tensor>(streams ? stream_of(view_of(x_), context_)
                                                               : build(x_, choice.format, options, context_)));
      built.seconds += std::chrono::duration<double>(Clock::now() - begin).count();
      built.bytes += built.tensors.back()->bytes();
    }
    return built;
  }

  /// Iterations of CP-ALS; the first warms up.
  void decompose(const Built& built, FormatResult& r) const {
    CpAlsOptions options;
    options.rank = report_.rank;
    options.iterations = static_cast<std::uint64_t>(options_.repeat) + 1;
    options.tolerance = 0;
    std::vector<double> seconds;
    auto begin = Clock::now();
    options.observer = [&](const CpIteration& i, std::uint64_t) {
      context_.report({"measuring " + r.label(), i.iteration, options.iterations, "iterations"});
      if (i.iteration > 1) seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
      begin = Clock::now();
    };
    if (cp_als(built.of(0), options, context_).stop == CpStop::cancelled)
      throw Error(ErrorKind::cancelled, "stopped while measuring");
    r.sweep = times_of(std::move(seconds));
  }

  void sweep(const Built& built, FormatResult& r) const {
    if (options_.operation == "cpd") return decompose(built, r);
    const std::size_t modes = report_.modes.size();
    const std::string phase = "measuring " + r.label();
    const std::uint64_t total = static_cast<std::uint64_t>(options_.repeat + 1) * modes;
    std::vector<std::vector<double>> seconds(modes);
    std::vector<double> sweeps;
    r.modes.resize(modes);
    for (int round = 0; round <= options_.repeat; ++round) {  // round 0 warms up
      double sum = 0;
      for (std::size_t k = 0; k < modes; ++k) {
        context_.report({phase, static_cast<std::uint64_t>(round) * modes + k, total, "runs"});
        const auto begin = Clock::now();
        const KernelChoice choice = operation_(built.of(k), report_.modes[k], r.kernel);
        const double t = std::chrono::duration<double>(Clock::now() - begin).count();
        sum += t;
        if (round == 0) {
          r.modes[k] = {report_.modes[k], std::string(choice.name), choice.why, {}};
          if (!context_.devices.empty() && options_.operation == "mttkrp")
            r.modes[k].balance = mttkrp_balance(built.of(k), report_.modes[k], choice.name);
        } else {
          seconds[k].push_back(t);
        }
      }
      if (round > 0) sweeps.push_back(sum);
    }
    for (std::size_t k = 0; k < modes; ++k) r.modes[k].seconds = times_of(std::move(seconds[k]));
    r.sweep = times_of(std::move(sweeps));
  }

  /// A format that cannot hold the tensor, or a kernel that cannot do it, is a line of the result.
  static void refuse(FormatResult& r, const Error& e) {
    const bool kernel_cannot = e.kind() == ErrorKind::usage && !r.kernel.empty();
    if (e.kind() != ErrorKind::limit && !kernel_cannot) throw;
    r.refused = e.what();
  }

  CooTensor& x_;
  const BenchOptions& options_;
  const BenchReport& report_;
  Operation operation_;
  const Context& context_;
};

/// What one mode costs by the models that the help names.
void set_work(BenchReport& report, const CooTensor& x) {
  const auto nnz = static_cast<double>(x.nnz());
  const auto order = static_cast<double>(x.order());
  const auto value = static_cast<double>(bytes_of(x.precision()));
  const auto index = static_cast<double>(bytes_of(width_for(x.dims)));
  if (report.operation != "ttv") {  // of an iteration of CP-ALS its MTTKRPs count
    const auto rank = static_cast<double>(report.rank);
    report.flops = nnz * rank * order;
    report.traffic = nnz * ((order * rank + 3) * value + order * index);  // GenTen, section on the bandwidth model
  } else {
    report.flops = nnz * 2;
    report.traffic = nnz * (2 * value + order * index);
  }
}

void run(const BenchOptions& o, Session& session) {
  check_names(o);
  keep_inputs("--plot", o.plot, o.input, session);
  if (o.plot == "-") throw usage_error("--plot: found -, expected the name of a file such as bench.svg");
  check_place(o.plot);
  const Context& context = session.context();
  ReadResult read = load(o.input, session);
  CooTensor& x = read.tensor;
  for (const std::string& note : read.report.notes) session.note(note);
  check_order(x, o.input);

  BenchReport report;
  report.file = o.input.file == "-" ? "standard input" : o.input.file;
  report.dims = x.dims;
  report.nnz = x.nnz();
  report.operation = o.operation;
  report.rank = o.operation == "ttv" ? 1 : o.rank;
  report.precision = name_of(x.precision());
  report.threads = context.thread_count();
  if (o.operation != "cpd") report.modes = modes_option("--modes", o.modes, x.order());
  set_work(report, x);
  const std::vector<Choice> wanted = formats_option(o.formats, o.operation, x, report.rank, o.planner, session);
  if (o.pipeline) {
    if (context.devices.empty()) throw usage_error("--pipeline: is that of a device; name one with --device");
    std::vector<std::string> names;
    for (const Choice& choice : wanted) names.emplace_back(choice.format);
    Json list = session.timed("measure", [&] {
      return bench_pipeline(x, {o.operation, report.rank, names, report.modes, o.kernels}, session);
    });
    session.json() = describe(report);
    session.json().erase("results");
    session.json().erase("stream_gbs");
    session.json()["device"] = session.options().device;
    session.json()["pipeline"] = std::move(list);
    return;
  }
  try {
    report.stream_gbs = session.timed("stream", [&] { return stream_triad_gbs(context); });
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::limit) throw;
    session.note(fmt::format("the memory bandwidth was not measured: {}", e.what()));
  }
  session.timed("measure", [&] {
    Operation operation = o.operation == "cpd"   ? Operation()
                          : o.operation == "ttv" ? ttv_operation(x, report.modes, context)
                          : x.precision() == Precision::f32
                              ? mttkrp_operation<float>(x, report.modes, o.rank, context)
                              : mttkrp_operation<double>(x, report.modes, o.rank, context);
    const Measurement measurement(x, o, report, std::move(operation), context);
    for (const Choice& choice : wanted)
      for (FormatResult& r : measurement.measure(choice)) report.results.push_back(std::move(r));
  });
  if (report.results.empty())
    throw usage_error(
        fmt::format("--kernels {}: none of them works on the formats of --formats {}", o.kernels, o.formats));
  print_table(report, session);
  if (!o.plot.empty()) {
    write_text(plot(report), o.plot);
    session.print("{}\n", o.plot);
  }
  session.json() = describe(report);
}

std::function<void(Session&)> declare(CLI::App& command) {
  auto o = std::make_shared<BenchOptions>();
  declare_input(command, o->input);
  command
      .add_option("--kernel", o->operation,
                  "what to time: mttkrp (nnz*R*N flops), ttv (2*nnz flops) or cpd (an iteration of CP-ALS)")
      ->capture_default_str();
  command.add_option("--rank", o->rank, "columns R of the random factors (by --seed)")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 20U))
      ->capture_default_str();
  command.add_option("--formats", o->formats, "all, auto or names such as coo,csf-all ('polyad list formats')")
      ->capture_default_str();
  command.add_option("--modes", o->modes, "all, or modes from 1 such as 1,3")->capture_default_str();
  command.add_option("--kernels", o->kernels,
                     "time these kernels ('polyad list kernels'; default: the cheapest that can)");
  command.add_option("--repeat", o->repeat, "timed sweeps over the modes, after one to warm up")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  o->planner.declare(command);
  command.add_option("--plot", o->plot, "also draw the result as an SVG file");
  command.add_flag("--pipeline", o->pipeline,
                   "send the tensor through --device in collections: measured Ts and Tp beside the model's");
  return [o](Session& session) { run(*o, session); };
}

}  // namespace

const Verb bench_verb = {"bench", "times an operation on storage formats",
                         "polyad bench ratings.ptn --rank 16 --formats coo,csf --plot bench.svg", declare,
                         DeviceUse::runs};

}  // namespace polyad::cli
