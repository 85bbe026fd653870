// SPDX-License-Identifier: MIT
#include <cmath>

#include "kernel_options.hpp"
#include "session.hpp"
#include "verb.hpp"

namespace polyad::cli {

namespace {

struct MttkrpOptions {
  InputOptions input;
  std::string mode;
  std::string model;
  std::uint64_t rank = 0;
  std::string output;
  std::string format = "auto";
  std::string kernel;
  PlannerFlags planner;
};

/// Error unless the model has a row for every index of the tensor.
void check_shape(const CpModel& model, const std::string& path, const CooTensor& x) {
  if (model.order() != x.order())
    throw file_error(path, 0,
                     fmt::format("found a model of {} modes, expected {} as the tensor has", model.order(), x.order()));
  for (int m = 0; m < x.order(); ++m) {
    const std::uint64_t rows = model.factors[static_cast<std::size_t>(m)].rows;
    if (rows != x.dims[static_cast<std::size_t>(m)])
      throw file_error(path, 0,
                       fmt::format("found {} rows for mode {}, expected {} as the tensor has", rows, m + 1,
                                   x.dims[static_cast<std::size_t>(m)]));
  }
}

template <class T>
std::vector<FactorMatrix<T>> make_factors(const MttkrpOptions& o, const CooTensor& x, Session& session) {
  return session.timed("factors", [&] {
    if (o.model.empty()) return random_factors<T>(x.dims, o.rank, session.context());
    const CpModel model = read_model(o.model, session.context());
    check_shape(model, o.model, x);
    return factors_of<T>(model, session.context());
  });
}

template <class T>
void compute(const MttkrpOptions& o, CooTensor x, Session& session) {
  const Context& context = session.context();
  const int mode = mode_option("--mode", o.mode, x.order());
  const std::vector<FactorMatrix<T>> factors = make_factors<T>(o, x, session);
  const std::uint64_t rank = factors[0].cols();
  std::optional<Choice> stream = o.kernel.empty() ? stream_option(o.format, x, rank, session) : std::nullopt;
  const Choice choice = stream ? *stream : format_option(o.format, o.kernel, x, rank, session, o.planner);
  if (choice.format == "stream") stream = stream_option("stream", x, rank, session);  // a kernel may have asked for it
  FormatOptions options = options_for(choice, rank);
  options.mode = mode;
  Tensor tensor = session.timed(
      "build", [&] { return stream ? stream_of(std::move(x), context) : build(x, choice.format, options, context); });
  x = {};  // the coordinates are not needed any more

  FactorMatrix<T> out(context, tensor.dims()[static_cast<std::size_t>(mode)], rank, "the result");
  Workspace workspace;
  const KernelChoice kernel =
      session.timed("compute", [&] { return mttkrp<T>(tensor, factors, mode, out, workspace, context, o.kernel); });
  const double size = norm(out);
  if (!std::isfinite(size))
    throw file_error(o.input.file, 0,
                     fmt::format("the result has numbers larger than {} can hold", name_of(tensor.precision())));
  if (!o.output.empty()) session.timed("write", [&] { write(matrix_of(out), o.output, context); });

  session.print("mode {} of {}, rank {}: {} x {}, norm {:.6g}\n", mode + 1, readable_dims(tensor.dims()), rank,
                readable_count(out.rows()), rank, size);
  session.print("format {} ({}), {}\n", choice.format, choice.why, readable_bytes(tensor.bytes()));
  session.print("kernel {} ({})\n", kernel.name, kernel.why);
  if (!o.output.empty()) session.print("{}\n", o.output == "-" ? "standard output" : o.output);
  session.json() = {{"mode", mode + 1},
                    {"rank", rank},
                    {"dims", tensor.dims()},
                    {"nnz", tensor.nnz()},
                    {"precision", name_of(tensor.precision())},
                    {"format", choice.format},
                    {"kernel", kernel.name},
                    {"why", kernel.why},
                    {"format_why", choice.why},
                    {"norm", size},
                    {"bytes", tensor.bytes()}};
}

void run(const MttkrpOptions& o, Session& session) {
  if (o.model.empty() && o.rank == 0)
    throw usage_error("either --model (a directory or file) or --rank (random factors) is expected");
  check_kernel("--kernel", o.kernel, "mttkrp");
  if (o.output == "-") session.keep_output_free();
  if (o.output == "-" && session.options().json == "-")
    throw usage_error("the matrix and the JSON cannot both go to standard output");
  if (o.format != "auto") (void)format_named(o.format);  // before the tensor is read
  keep_inputs("--out", o.output, o.input, session, {o.model});
  ReadResult read = load(o.input, session);
  for (const std::string& note : read.report.notes) session.note(note);
  check_order(read.tensor, o.input);
  if (session.precision() == Precision::f32) return compute<float>(o, std::move(read.tensor), session);
  compute<double>(o, std::move(read.tensor), session);
}

std::function<void(Session&)> declare_mttkrp(CLI::App& command) {
  auto o = std::make_shared<MttkrpOptions>();
  declare_input(command, o->input);
  command.add_option("--mode", o->mode, "mode of the result, from 1")->required();
  CLI::Option* model = command.add_option("--model", o->model,
                                          "directory, .ktensor or .npz with the factors (its weights are not applied)");
  command.add_option("--rank", o->rank, "random factors of this rank, by --seed")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 20U))
      ->excludes(model);
  command.add_option("--out", o->output, "file for the matrix, a row per line (- for standard output)");
  o->planner.declare(command);
  command.add_option("--format", o->format, "storage format ('polyad list formats') or auto")->capture_default_str();
  command.add_option("--kernel", o->kernel, "kernel ('polyad list kernels'; default: the cheapest that can)");
  return [o](Session& session) { run(*o, session); };
}

}  // namespace

const Verb mttkrp_verb = {"mttkrp", "the tensor times the Khatri-Rao product of all factors but one",
                          "polyad mttkrp ratings.tns.gz --mode 2 --rank 16 --out M.mat --format csf", declare_mttkrp,
                          DeviceUse::runs};

}  // namespace polyad::cli
