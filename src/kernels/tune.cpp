// SPDX-License-Identifier: MIT
/// \file Tuning: the planner's best few formats, built and timed.
#include <algorithm>
#include <chrono>
#include <limits>

#include "core/tuned.hpp"
#include "polyad/device_model.hpp"
#include "polyad/error.hpp"
#include "polyad/factor_stays.hpp"
#include "polyad/factors.hpp"
#include "polyad/kernels.hpp"
#include "polyad/planner.hpp"

namespace polyad {

namespace {

/// The fastest of a few sweeps over all modes, after one to warm up. Of short ones as many as take a tenth of a second:
/// where other work holds a processor, a team waits for 20 ms now and then, whatever it does.
template <class T>
double seconds_of_sweep(Tensor& x, std::uint64_t rank, const Context& context) {
  const std::vector<FactorMatrix<T>> factors = random_factors<T>(x.dims(), rank, context);
  std::vector<FactorMatrix<T>> out;
  for (const std::uint64_t d : x.dims()) out.emplace_back(context, d, rank);
  Workspace workspace;
  workspace.keep_products();
  constexpr int sweeps = 4;
  constexpr int most_sweeps = 200;
  constexpr double short_run = 0.1;  // seconds
  double best = std::numeric_limits<double>::infinity();
  double spent = 0;
  for (int sweep = 0; sweep < sweeps || (sweep < most_sweeps && spent < short_run); ++sweep) {
    const auto begin = std::chrono::steady_clock::now();
    for (int mode = 0; mode < x.order(); ++mode) {
      context.report({"tuning", static_cast<std::uint64_t>(std::min(sweep, sweeps - 1)), sweeps, "sweeps"});
      const auto at = static_cast<std::size_t>(mode);
      FactorStays<T> stays(factors[at], (mode + 1) % x.order());
      (void)mttkrp<T>(x, factors, mode, out[at], workspace, context, {}, &stays);
      workspace.changed(mode);
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (sweep > 0) best = std::min(best, seconds);
    spent += seconds;
  }
  return best;
}

}  // namespace

namespace {

/// Formats in the order in which they are tried. On devices the order is that of the estimates for them, and what is
/// usual for the processor does not count: it is about its memory.
std::vector<FormatEstimate> ranked(const CooTensor& x, std::uint64_t rank, const Context& context, double most_size) {
  std::vector<FormatEstimate> all;
  if (context.devices.empty()) {
    for (FormatEstimate& f : rank_formats(x, rank, context))
      if (f.has_kernel && !f.repeats && (!context.deterministic || f.deterministic) &&
          f.bytes <= largest_size(x, most_size))
        all.push_back(std::move(f));
    return all;
  }
  for (const DeviceEstimate& e : estimate_on_device(x, rank, model_of_devices(context), context)) {
    FormatEstimate f = estimate_format(x, e.format, rank, context);
    if (runs_on_devices(e.format, context) && (most_size >= usual_size || f.bytes <= largest_size(x, most_size)))
      all.push_back(std::move(f));
  }
  return all;
}

}  // namespace

Choice tune_format(const CooTensor& x, std::uint64_t rank, const Context& context, double most_size, int candidates) {
  if (x.order() < 2) return choose_format(x, rank, context, most_size);
  const double most_bytes = context.devices.empty() || most_size < usual_size ? largest_size(x, most_size)
                                                                              : std::numeric_limits<double>::infinity();
  std::vector<TunedFormat> found;
  std::shared_ptr<const ValueCode> value_code;
  for (const FormatEstimate& candidate : ranked(x, rank, context, most_size)) {
    if (!candidate.fits) continue;
    if (candidate.value_code) value_code = candidate.value_code;
    if (static_cast<int>(found.size()) == candidates) break;
    try {
      Tensor tensor =
          build(x, candidate.format,
                options_for({candidate.format, {}, candidate.leaf_modes, candidate.value_code}, rank), context);
      if (static_cast<double>(tensor.bytes()) > most_bytes) continue;
      found.push_back({candidate.format, candidate.leaf_modes,
                       x.precision() == Precision::f32 ? seconds_of_sweep<float>(tensor, rank, context)
                                                       : seconds_of_sweep<double>(tensor, rank, context)});
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::limit) throw;  // it does not fit after all
    }
  }
  if (found.empty()) return choose_format(x, rank, context, most_size);
  std::ranges::stable_sort(found, {}, &TunedFormat::seconds);
  Choice choice = remember_tuned(x, rank, most_size, found, context);
  choice.value_code = value_code;
  return choice;
}

}  // namespace polyad
