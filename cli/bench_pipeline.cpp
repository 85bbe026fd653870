// SPDX-License-Identifier: MIT
#include "bench_pipeline.hpp"

#include "kernel_options.hpp"

namespace polyad::cli {

namespace {

/// One format and mode.
struct Line {
  std::string format;
  int mode = 0;
  PipelineReport report;
};

Json describe(const PipelineReport::Rate& r) { return {{"begin", r.begin}, {"each", r.each}}; }

Json describe(const Line& line) {
  const PipelineReport& r = line.report;
  return {{"format", line.format},
          {"mode", line.mode + 1},
          {"kernel", r.kernel.name},
          {"queues", r.queues},
          {"collections", r.collections},
          {"slot_bytes", r.slot_bytes},
          {"measured", {{"ts", r.measured_ts}, {"tp", r.measured_tp}}},
          {"model", {{"ts", r.model_ts}, {"tp", r.model_tp}, {"tp_of_measured_steps", r.steps_tp}}},
          {"rates",
           {{"copy_in_per_byte", describe(r.copy_in)},
            {"compute_per_nonzero", describe(r.compute)},
            {"copy_out_per_byte", describe(r.copy_out)}}}};
}

template <class T>
PipelineReport mttkrp_report(const CooTensor& x, Tensor& t, int mode, const PipelineBench& bench,
                             const Context& context) {
  const std::vector<FactorMatrix<T>> factors = random_factors<T>(x.dims, bench.rank, context);
  FactorMatrix<T> out(context, x.dims[static_cast<std::size_t>(mode)], bench.rank, "the result");
  return mttkrp_pipeline<T>(t, factors, mode, out, context, bench.kernel);
}

PipelineReport measure(CooTensor& x, const std::string& format, int mode, const PipelineBench& bench,
                       const Session& session) {
  const Context& context = session.context();
  FormatOptions options;
  options.rank = bench.rank;
  if (format_named(format).mode_specific) options.mode = mode;
  const bool streams = format == "stream" && stream_option(format, x, bench.rank, session);
  Tensor t = streams ? stream_of(view_of(x), context) : build(x, format, options, context);
  if (bench.operation == "ttv") {
    std::vector<double> vector(x.dims[static_cast<std::size_t>(mode)]);
    for (std::size_t i = 0; i < vector.size(); ++i) vector[i] = static_cast<double>(i % 1009) / 1009;
    return ttv_pipeline(t, mode, vector, context, bench.kernel);
  }
  return x.precision() == Precision::f32 ? mttkrp_report<float>(x, t, mode, bench, context)
                                         : mttkrp_report<double>(x, t, mode, bench, context);
}

}  // namespace

bool runs_on_devices(std::string_view format, std::string_view operation) {
  for (const KernelEntry& k : kernels())
    if (k.backend == "gpu" && k.operation == operation &&
        fmt::format(",{},", k.formats).find(fmt::format(",{},", format)) != std::string::npos)
      return true;
  return false;
}

Json bench_pipeline(CooTensor& x, const PipelineBench& bench, Session& session) {
  session.print("  {:<10}  {:>4}  {:>6}  {:>5}  {:>9}  {:>9}  {:>9}  {:>9}  {:>9}  {:>5}  {}\n", "format", "mode",
                "queues", "parts", "slot", "Ts", "Ts model", "Tp", "Tp model", "Ts/Tp", "kernel");
  Json list = Json::array();
  for (const std::string& format : bench.formats)
    for (const int mode : bench.modes) {
      Line line{format, mode, {}};
      try {
        line.report = measure(x, format, mode, bench, session);
      } catch (const Error& e) {
        if (e.kind() != ErrorKind::limit) throw;
        session.print("  {:<10}  {:>4}  {}\n", format, mode + 1, e.what());
        list.push_back({{"format", format}, {"mode", mode + 1}, {"refused", e.what()}});
        continue;
      }
      const PipelineReport& r = line.report;
      session.print("  {:<10}  {:>4}  {:>6}  {:>5}  {:>9}  {:>9}  {:>9}  {:>9}  {:>9}  {:>5.2f}  {}\n", format,
                    mode + 1, r.queues, r.collections, readable_bytes(r.slot_bytes), readable_seconds(r.measured_ts),
                    readable_seconds(r.model_ts), readable_seconds(r.measured_tp), readable_seconds(r.model_tp),
                    r.measured_tp > 0 ? r.measured_ts / r.measured_tp : 0, r.kernel.name);
      list.push_back(describe(line));
    }
  session.print(
      "\nTs: copy in, compute, copy out of one part after the other; Tp: those of different parts side by side. The "
      "model knows\nwhat two small parts took.\n");
  return list;
}

}  // namespace polyad::cli
