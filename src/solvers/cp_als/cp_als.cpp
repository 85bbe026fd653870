// SPDX-License-Identifier: MIT
/// \file From a tensor and options to a result: what is checked, what is built, what a checkpoint belongs to.
#include "polyad/cp_als.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>

#include "backends/cpu/threads.hpp"
#include "polyad/error.hpp"
#include "polyad/operations.hpp"
#include "polyad/page_reuse.hpp"
#include "solvers/cp_als/als.hpp"

namespace polyad {

namespace {

using Json = nlohmann::ordered_json;

void check_modes(std::string_view what, const std::vector<int>& modes, int order) {
  for (const int mode : modes) {
    if (mode < 0 || mode >= order)
      throw usage_error(fmt::format("{}: found mode {}, expected 1 to {}", what, mode + 1, order));
    if (std::ranges::count(modes, mode) > 1) throw usage_error(fmt::format("{}: mode {} occurs twice", what, mode + 1));
  }
}

void check_numbers(const CpAlsOptions& o) {
  for (const CpAlsOption& option : cp_als_options()) {
    const auto check = [&](double value) {
      if (!(value >= option.lowest && value <= option.highest))
        throw usage_error(
            fmt::format("{}: found {:g}, expected {:g} to {:g}", option.name, value, option.lowest, option.highest));
    };
    if (const auto* whole = std::get_if<std::uint64_t CpAlsOptions::*>(&option.member))
      check(static_cast<double>(o.**whole));
    if (const auto* real = std::get_if<double CpAlsOptions::*>(&option.member)) check(o.**real);
  }
}

void check_initial(const CpAlsOptions& o, const std::vector<std::uint64_t>& dims) {
  if (o.start != CpStart::model) {
    if (o.initial != nullptr) throw usage_error("a model to start from is given, and the start is another");
    if (!o.fixed.empty()) throw usage_error("fixed modes need a model to start from, which holds their factors");
    return;
  }
  if (o.initial == nullptr) throw usage_error("a start from a model, and no model is given");
  if (o.restarts > 1) throw usage_error("restarts are random starts; a start from a model has only one");
  const CpModel& model = *o.initial;
  if (model.factors.size() != dims.size())
    throw Error(ErrorKind::input, fmt::format("the model to start from has {} modes, expected {} as the tensor has",
                                              model.factors.size(), dims.size()));
  if (model.rank() != o.rank)
    throw Error(ErrorKind::input,
                fmt::format("the model to start from has rank {}, expected {}", model.rank(), o.rank));
  for (std::size_t m = 0; m < dims.size(); ++m) {
    // New data on known factors: a free mode may have other rows. Without fixed modes it would be a mistake.
    const bool may_differ = !o.fixed.empty() && std::ranges::count(o.fixed, static_cast<int>(m)) == 0;
    if (model.factors[m].rows != dims[m] && !may_differ)
      throw Error(ErrorKind::input,
                  fmt::format("the model to start from has {} rows in mode {}, expected {} as the tensor has",
                              model.factors[m].rows, m + 1, dims[m]));
  }
}

void check_dense(const CpAlsOptions& o, const Context& context) {
  if (o.dense != "auto" && o.dense != "host" && o.dense != "device")
    throw usage_error(fmt::format("dense: found '{}', expected auto, host or device", o.dense));
  if (o.dense == "device" && context.devices.empty())
    throw usage_error("dense: found device, and the decomposition runs on the processor");
  if (o.dense == "device" && context.devices.size() > 1)
    throw usage_error("dense: found device, but what several devices compute is added up and solved on the host");
}

void check(const CpAlsOptions& o, const std::vector<std::uint64_t>& dims) {
  const int order = static_cast<int>(dims.size());
  if (order < 2) throw Error(ErrorKind::input, fmt::format("found a tensor of order {}, expected at least 2", order));
  check_numbers(o);
  check_modes("nonnegative", o.nonnegative, order);
  check_modes("fix-mode", o.fixed, order);
  if (static_cast<int>(o.fixed.size()) == order) throw usage_error("fix-mode: at least one mode must be free");
  if (o.resume && o.checkpoint.empty()) throw usage_error("resume needs checkpoint, the file to continue from");
  check_initial(o, dims);
}

std::vector<int> numbered(std::vector<int> modes) {
  std::ranges::sort(modes);
  for (int& mode : modes) ++mode;
  return modes;
}

/// Of the numbers of a model.
std::string print_of(const CpModel* model) {
  if (model == nullptr) return "";
  std::uint64_t h = 0;
  const auto add = [&](std::span<const double> numbers) {
    for (const double v : numbers) h = (h ^ std::bit_cast<std::uint64_t>(v)) * 0x9E3779B97F4A7C15U + (h >> 29U);
  };
  add(model->weights);
  for (const Matrix& a : model->factors) add(a.values);
  return fmt::format("{:016x}", h);
}

/// What a checkpoint is of. Limits (iterations, tolerance, seconds) may change, and so may the format.
Json identity_of(const Tensor& x, const CpAlsOptions& o, const Context& context, std::uint64_t fingerprint) {
  return {{"solver", "cp-als"},
          {"dims", x.dims()},
          {"nonzeros", x.nnz()},
          {"precision", name_of(x.precision())},
          {"tensor", fmt::format("{:016x}", fingerprint)},
          {"rank", o.rank},
          {"seed", o.seed.value_or(context.seed)},
          {"start", o.start == CpStart::random ? "random"
                    : o.start == CpStart::rsvd ? "rsvd"
                                               : "model"},
          {"l2", o.l2},
          {"initial model", print_of(o.initial)},
          {"nonnegative modes", numbered(o.nonnegative)},
          {"fixed modes", numbered(o.fixed)}};
}

template <class T>
CpAlsResult solve(Tensor& x, const CpAlsOptions& options, const Context& context, std::uint64_t fingerprint) {
  DriverOptions driver;
  driver.iterations = options.iterations;
  driver.tolerance = options.tolerance;
  driver.max_seconds = options.max_seconds;
  driver.restarts = options.restarts;
  driver.checkpoint = options.checkpoint;
  driver.every = options.every;
  driver.resume = options.resume;
  driver.observer = options.observer;
  driver.identity = identity_of(x, options, context, fingerprint);

  cp_als_detail::Als<T> als(x, options, context);
  DriverResult found = drive(als, driver, context);
  CpAlsResult result;
  result.fit = als.fit();
  result.stop = found.stop;
  result.history = std::move(found.history);
  result.runs = std::move(found.runs);
  result.notes = std::move(found.notes);
  for (std::string& note : als.notes()) result.notes.push_back(std::move(note));
  result.model = als.model();
  result.format = {x.format().name, "given"};
  result.tensor_bytes = x.bytes();
  result.iterate_seconds = found.seconds;
  result.dense_seconds = als.dense_seconds();
  result.dense = als.dense_places();
  result.resumed_at = found.resumed_at;
  return result;
}

/// The steps from coordinates without duplicates on. `release` gives the memory of the coordinates back.
template <class Release>
CpAlsResult build_and_solve(const CooTensor& x, const CpAlsOptions& options, const Context& context,
                            const Release& release) {
  check(options, x.dims);
  // A run that is resumed has to choose the same format again, whatever was measured in between.
  Context planning = context;
  if (!options.checkpoint.empty()) planning.cache.clear();
  const Choice choice = options.format == "auto" ? choose_format(x, options.rank, planning)
                                                 : Choice{format_named(options.format).name, "asked for"};
  const auto begin = std::chrono::steady_clock::now();
  Tensor tensor = build(x, choice.format, options_for(choice, options.rank), context);
  const double build_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const std::uint64_t print = options.checkpoint.empty() ? 0 : fingerprint(x, context);
  std::vector<ModeLabels> labels = x.labels;
  release();
  CpAlsResult result = cp_als(tensor, options, context, print);
  result.format = choice;
  result.build_seconds = build_seconds;
  result.model.labels = std::move(labels);
  return result;
}

}  // namespace

CpAlsResult cp_als(Tensor& x, const CpAlsOptions& options, const Context& context, std::uint64_t fingerprint) {
  const PageReuse reuse;
  check(options, x.dims());
  check_dense(options, context);
  if (x.precision() == Precision::f32) return solve<float>(x, options, context, fingerprint);
  return solve<double>(x, options, context, fingerprint);
}

CpAlsResult cp_als(const CooTensor& x, const CpAlsOptions& options, const Context& context) {
  const PageReuse reuse;
  check(options, x.dims);
  // Norm and fit are those of the sums: values of one coordinate belong together.
  if (!x.duplicates_merged) return cp_als(clone(x, context), options, context);
  return build_and_solve(x, options, context, [] {});
}

CpAlsResult cp_als(CooTensor&& x, const CpAlsOptions& options, const Context& context) {
  const PageReuse reuse;
  CooTensor mine = std::move(x);
  check(options, mine.dims);
  merge_duplicates(mine, context);
  return build_and_solve(mine, options, context, [&] { mine = {}; });
}

std::uint64_t fingerprint(const CooTensor& x, const Context& context) {
  const auto mix = [](std::uint64_t h) {  // the finaliser of MurmurHash3
    h = (h ^ (h >> 33U)) * 0xFF51AFD7ED558CCDU;
    h = (h ^ (h >> 33U)) * 0xC4CEB9FE1A85EC53U;
    return h ^ (h >> 33U);
  };
  // A sum over nonzeros does not depend on their order.
  std::atomic<std::uint64_t> sum = 0;
  visit(x, [&](const auto& v) {
    cpu::parallel_ranges(context.thread_count(), v.nnz, [&](std::uint64_t begin, std::uint64_t end) {
      std::uint64_t part = 0;
      for (std::uint64_t k = begin; k < end; ++k) {
        std::uint64_t h = 0;
        for (int m = 0; m < v.order; ++m)
          h = (h ^ v.indices[static_cast<std::size_t>(m)][k]) * 0x9E3779B97F4A7C15U + (h >> 29U);
        part += mix(h ^ mix(std::bit_cast<std::uint64_t>(static_cast<double>(v.values[k]))));
      }
      sum.fetch_add(part, std::memory_order_relaxed);
    });
  });
  std::uint64_t h = sum;
  for (const std::uint64_t d : x.dims) h = mix(h ^ mix(d));
  return h == 0 ? 1 : h;
}

}  // namespace polyad
