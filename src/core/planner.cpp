// SPDX-License-Identifier: MIT
#include "polyad/planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "backends/gpu/device.hpp"
#include "core/estimate.hpp"
#include "core/format.hpp"
#include "core/row_parts.hpp"
#include "core/tuned.hpp"
#include "polyad/error.hpp"
#include "polyad/matrix.hpp"
#include "polyad/registry.hpp"
#include "polyad/sizes.hpp"
#include "polyad/tensor.hpp"

namespace polyad {

std::optional<double> predicted_bytes(const CooTensor& x, const TensorStatistics& s, const FormatEntry& format,
                                      std::uint64_t rank, const Context& context) {
  double bytes = 0;
  FormatOptions options;
  options.rank = rank;
  for (int mode = 0; mode < (format.mode_specific ? x.order() : 1); ++mode) {
    if (format.mode_specific) options.mode = mode;
    try {
      const StoragePrediction p = predict_storage(x, s, format.name, options, context);
      if (!p.refusal.empty()) return std::nullopt;
      bytes += p.bytes;
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::limit) throw;
      return std::nullopt;  // not even counting fits the memory
    }
  }
  return bytes;
}

namespace {

/// Tensors below this are planned with the costs of the reference machine: measuring would take longer than they do.
constexpr std::uint64_t worth_measuring = std::uint64_t{1} << 20U;

/// Factors, and the model made of them.
double model_bytes(const CooTensor& x, std::uint64_t rank) {
  double rows = 0;
  double longest = 0;
  for (const std::uint64_t d : x.dims) {
    rows += static_cast<double>(d);
    longest = std::max(longest, static_cast<double>(d));
  }
  return rows * static_cast<double>(padded_columns(rank) * bytes_of(x.precision()) + rank * sizeof(double)) +
         row_sums_bytes(static_cast<double>(x.nnz()), longest, rank, x.precision());
}

/// A format that nothing but the generic kernels works on: decoded to coordinates block by block.
SweepEstimate estimate_generic(const EstimateRequest& q, double decode_ns) {
  SweepEstimate e;
  e.ns = coordinates_ns(q, decode_ns);
  e.build_ns = 30 * q.sample.nnz() * q.sample.order();
  e.bytes = q.sample.nnz() * (q.index_bytes() * q.sample.order() + q.value_bytes());
  e.why = "no MTTKRP kernel of its own: decoded block by block";
  return e;
}

/// Estimates formats of one tensor: what they ask about it is found out once.
class Estimator {
 public:
  Estimator(const CooTensor& x, std::uint64_t rank, const Context& context,
            double most_bytes = std::numeric_limits<double>::infinity())
      : sample_(x, context),
        // The same choice for any number of threads and any history of the cache, where the same bits are promised.
        cost_(context.deterministic ? RowCost{} : RowCost::of_machine(context, x.nnz() >= worth_measuring)),
        request_{sample_, rank, cost_, context.deterministic ? 1 : context.thread_count(), most_bytes},
        context_(context) {
    if (x.order() < 2) throw usage_error("formats need at least 2 modes");
  }

  [[nodiscard]] FormatEstimate of(const FormatClass& format) const {
    const SweepEstimate e = format.estimate ? format.estimate(request_) : estimate_generic(request_, format.decode_ns);
    const int threads = context_.thread_count();
    const double sort = static_cast<double>(sort_bytes_per_nonzero) * sample_.nnz();
    const bool is_coo = format.entry.name == "coo";
    FormatEstimate f{.format = format.entry.name,
                     .seconds = e.ns * 1e-9 / threads,
                     .build_seconds = cost_.instructions(e.build_ns) * 1e-9 / threads,
                     .bytes = e.bytes,
                     .build_bytes = e.build_bytes > 0 ? e.build_bytes : e.bytes + (is_coo ? 0 : sort),
                     .kept_bytes = e.kept,
                     .has_kernel = format.estimate != nullptr,
                     .deterministic = e.deterministic,
                     .fits = true,
                     .repeats = e.repeats,
                     .why = e.why,
                     .leaf_modes = e.leaf_modes,
                     .value_code = sample_.known_value_code()};
    if (context_.deterministic && !e.deterministic) {
      f.seconds = e.ns * 1e-9 * 1.5;
      f.why += "; here every thread reads all nonzeros, to give the same bits for any number of them";
    }
    const double limit = context_.memory ? static_cast<double>(context_.memory->limit()) : 0;
    if (limit == 0) return f;
    // Estimates of bytes are a few percent off, and sorts hold counts of buckets for each thread beside their records.
    const double counts_of_sorts = is_coo ? 0 : static_cast<double>(std::uint64_t{1} << 18U) * threads;
    const double needed =
        1.05 * std::max(f.build_bytes + counts_of_sorts, e.bytes + model_bytes(sample_.tensor(), request_.rank)) +
        static_cast<double>(context_.memory->used());
    if (needed <= limit) return f;
    f.fits = false;
    f.why = fmt::format("would take {} more than the memory allows",
                        readable_bytes(static_cast<std::uint64_t>(needed - limit)));
    return f;
  }

 private:
  TensorSample sample_;
  RowCost cost_;
  EstimateRequest request_;
  const Context& context_;
};

}  // namespace

FormatEstimate estimate_format(const CooTensor& x, std::string_view format, std::uint64_t rank,
                               const Context& context) {
  return Estimator(x, rank, context).of(class_named(format));
}

std::vector<FormatEstimate> rank_formats(const CooTensor& x, std::uint64_t rank, const Context& context) {
  const Estimator estimator(x, rank, context);
  std::vector<FormatEstimate> all;
  for (const FormatClass* format : format_classes()) all.push_back(estimator.of(*format));
  std::ranges::stable_sort(all, {}, [](const FormatEstimate& f) { return std::pair(!f.fits, f.run_seconds()); });
  return all;
}

double largest_size(const CooTensor& x, double most_size) {
  return std::isinf(most_size) ? most_size : most_size * coordinate_bytes(x);
}

bool surely_below(const FormatEstimate& f, double bytes) {
  // Fibres are estimated to 5 %, and are less than half of what takes them; small arrays beside the nonzeros are not
  // counted everywhere. Of coordinates all is known.
  return (f.format == "coo" ? f.bytes : 1.03 * f.bytes + 4096) <= bytes;
}

double coordinate_bytes(const CooTensor& x) {
  return static_cast<double>(x.nnz()) *
         static_cast<double>(x.dims.size() * bytes_of(width_for(x.dims)) + bytes_of(x.precision()));
}

bool needs_streaming(const CooTensor& x, std::uint64_t rank, const Context& context) {
  const double limit = context.memory ? static_cast<double>(context.memory->limit()) : 0;
  if (limit == 0) return false;
  return coordinate_bytes(x) + model_bytes(x, rank) + static_cast<double>(context.memory->used()) > limit;
}

FormatOptions options_for(const Choice& choice, std::uint64_t rank) {
  FormatOptions options;
  options.rank = rank;
  options.leaf_modes = choice.leaf_modes;
  options.value_code = choice.value_code;
  return options;
}

bool runs_on_devices(std::string_view format, const Context& context) {
  return std::ranges::any_of(kernels(), [&](const KernelEntry& k) {
    return k.operation == "mttkrp" && k.backend == "gpu" && (k.deterministic || !context.deterministic) &&
           fmt::format(",{},", k.formats).find(fmt::format(",{},", format)) != std::string::npos;
  });
}

namespace {

/// What is taken for devices, best first: work-groups must have equal work whatever the tensor. HB-CSF is B-CSF with
/// cheaper forms for slices and fibres of one nonzero; F-COO cuts equal runs; coordinates need atomic additions but no
/// second copy.
struct DeviceFormat {
  std::string_view name;
  std::string_view why;
};
constexpr DeviceFormat device_formats[] = {
    {"hb-csf", "work-groups have equal work, and slices and fibres of one nonzero cost little"},
    {"b-csf", "work-groups have equal work"},
    {"f-coo", "work-groups have equal work"},
    {"coo", "one copy for all modes"},
};

/// What was measured to be the fastest there; else the first of these that fits the host and stays on the devices
/// beside factors and output; else the first that fits the host.
Choice choose_for_devices(const CooTensor& x, std::uint64_t rank, const Context& context, double most_size) {
  const Estimator estimator(x, rank, context);
  if (std::optional<Choice> tuned = tuned_format(x, rank, most_size, context);
      tuned && runs_on_devices(tuned->format, context) && estimator.of(class_named(tuned->format)).fits)
    return *std::move(tuned);
  const double row = static_cast<double>(padded_columns(rank) * bytes_of(x.precision()));
  double rows = 0;
  for (const std::uint64_t d : x.dims) rows += static_cast<double>(d);
  rows += static_cast<double>(*std::ranges::max_element(x.dims));
  double memory = 0;  // for the tensor, of all devices
  std::string trouble;
  for (const auto& d : context.devices) {
    const auto all = static_cast<double>(d->facts().memory_bytes);
    memory += std::max(0.0, all - rows * row);
    if (all <= rows * row)
      trouble = fmt::format("the factors and an output take {}, {} has {}: it cannot run there",
                            readable_bytes(static_cast<std::uint64_t>(rows * row)), d->facts().name,
                            readable_bytes(d->facts().memory_bytes));
  }
  std::optional<Choice> passing;
  for (const DeviceFormat& candidate : device_formats) {
    if (!runs_on_devices(candidate.name, context)) continue;
    const FormatEstimate f = estimator.of(class_named(candidate.name));
    // What is usual for the processor is about its memory; a size that was asked for counts here too.
    if (!f.fits || (most_size < usual_size && !surely_below(f, largest_size(x, most_size)))) continue;
    if (1.05 * f.bytes <= memory) return {candidate.name, fmt::format("on a device {}", candidate.why)};
    if (!passing)
      passing = {candidate.name, fmt::format("on a device {}; {}", candidate.why,
                                             trouble.empty() ? "it passes through the device in parts" : trouble)};
  }
  return passing.value_or(Choice{"coo", "nothing else that runs on a device fits the memory"});
}

}  // namespace

Choice choose_format(const CooTensor& x, std::uint64_t rank, const Context& context, double most_size) {
  if (x.order() < 2) return {"coo", "formats need at least 2 modes"};
  if (!context.devices.empty()) return choose_for_devices(x, rank, context, most_size);
  const double most_bytes = largest_size(x, most_size);
  const Estimator estimator(x, rank, context, most_bytes);
  const auto is_small = [&](const FormatEstimate& f) { return surely_below(f, most_bytes); };
  if (std::optional<Choice> tuned = tuned_format(x, rank, most_size, context)) {
    const FormatEstimate f = estimator.of(class_named(tuned->format));
    if (f.fits && f.bytes <= most_bytes) {  // it was built, and was that small
      tuned->leaf_modes = f.leaf_modes;
      tuned->value_code = f.value_code;
      return *std::move(tuned);
    }
  }
  std::vector<FormatEstimate> good;
  std::string passed_over;
  for (const FormatClass* format : format_classes()) {
    FormatEstimate f = estimator.of(*format);
    if (!f.has_kernel || f.repeats || !is_small(f) || (context.deterministic && !f.deterministic)) continue;
    if (f.fits) {
      good.push_back(std::move(f));
    } else if (passed_over.empty()) {
      passed_over = fmt::format("; {} {}", f.format, f.why);
    }
  }
  if (good.empty()) {
    const FormatEstimate coo = estimator.of(class_named("coo"));
    return {"coo", coo.fits ? "nothing else fits the memory" + passed_over
                            : "by the estimates nothing fits the memory; coordinates need the least"};
  }
  std::ranges::stable_sort(good, {}, [](const FormatEstimate& f) { return f.run_seconds(); });
  std::string why = good[0].why;
  if (good.size() > 1) {
    const double times = good[1].run_seconds() / good[0].run_seconds();
    why += times < 1.05 ? fmt::format("; a run with {} takes about as long", good[1].format)
                        : fmt::format("; a run with {} takes {:.1f} times as long", good[1].format, times);
  }
  return {good[0].format, why + passed_over, good[0].leaf_modes, good[0].value_code};
}

}  // namespace polyad
