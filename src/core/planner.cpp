// SPDX-License-Identifier: MIT
#include "polyad/planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "polyad/error.hpp"
#include "polyad/matrix.hpp"
#include "polyad/registry.hpp"
#include "polyad/sizes.hpp"
#include "polyad/tensor.hpp"

namespace polyad {

namespace {

/// While a format is built the sort holds a record of key and value, of at most so many bytes, per nonzero.
constexpr std::uint64_t sort_bytes = 24;

/// What the format takes for all modes as its formula says; unset when it cannot hold the tensor.
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

}  // namespace

Choice choose_format(const CooTensor& x, const TensorStatistics* statistics_of_x, std::uint64_t rank,
                     const Context& context) {
  if (x.order() < 2) return {"coo", "formats need at least 2 modes"};
  std::optional<TensorStatistics> own;
  if (statistics_of_x == nullptr) own = statistics(x, context);
  const TensorStatistics& s = own ? *own : *statistics_of_x;

  // CSF does R multiplications per nonzero and R per fibre, a loop over nonzeros (N-1) R per nonzero. With 2 nonzeros
  // per fibre CSF's work is at most 3/4 of that for N = 3, and it reads each output row once.
  constexpr double enough = 2;
  double longest = 0;
  for (const ModeStatistics& m : s.modes) longest = std::max(longest, m.fibres.mean);
  const std::string fibres = fmt::format("{:.1f} nonzeros per fibre in the best mode", longest);

  struct Candidate {
    std::string_view format;
    std::string why;
  };
  std::vector<Candidate> candidates;
  if (longest >= enough) candidates.push_back({"csf-all", fibres + ": the work of a fibre is done once"});
  candidates.push_back({"alto", longest >= enough ? "one copy for all modes"
                                                  : fibres + ": too few to share work; one copy for all modes"});
  const std::uint64_t limit = context.memory ? context.memory->limit() : 0;
  const std::uint64_t used = context.memory ? context.memory->used() : 0;
  std::string passed_over;
  for (const Candidate& c : candidates) {
    const auto all = formats();
    const auto entry = std::ranges::find(all, c.format, &FormatEntry::name);
    if (entry == all.end()) continue;
    const std::optional<double> bytes = predicted_bytes(x, s, *entry, rank, context);
    const std::uint64_t needed = bytes ? static_cast<std::uint64_t>(*bytes) + sort_bytes * x.nnz() + used : 0;
    if (bytes && (limit == 0 || needed <= limit)) return {entry->name, c.why + passed_over};
    passed_over +=
        bytes ? fmt::format("; {} would take {} more than the memory allows", c.format, readable_bytes(needed - limit))
              : fmt::format("; {} cannot hold this tensor here", c.format);
  }
  return {"coo", fibres + (passed_over.empty() ? "; this build has no other format to take" : passed_over)};
}

std::uint64_t MemoryPlan::peak() const {
  // The program, its threads and what is not counted in budgets: 30 MB and a twentieth.
  const std::uint64_t most = std::max({load, build, iterate, result});
  return most + most / 20 + (std::uint64_t{30} << 20U);
}

MemoryPlan plan_memory(const CooTensor& x, const TensorStatistics& s, std::string_view format, std::uint64_t rank,
                       const Context& context) {
  MemoryPlan plan;
  const FormatEntry& entry = format_named(format);
  plan.format = entry.name;
  const std::optional<double> bytes = predicted_bytes(x, s, entry, rank, context);
  if (!bytes) {
    plan.refusal = fmt::format("{} cannot hold this tensor here", entry.name);
    return plan;
  }
  plan.tensor = static_cast<std::uint64_t>(*bytes);
  const std::uint64_t value = bytes_of(x.precision());
  const std::uint64_t stride = padded_columns(rank) * value;
  std::uint64_t rows = 0;
  std::uint64_t copies = 0;  // of an output: one for each thread but the first, where that is worth it
  for (const std::uint64_t d : x.dims) {
    rows += d;
    const std::uint64_t private_bytes = static_cast<std::uint64_t>(context.thread_count() - 1) * d * stride;
    if (private_bytes / 100 <= x.nnz()) copies = std::max(copies, private_bytes);
  }
  plan.load = (x.duplicates_merged ? 1 : 2) * x.bytes() + (x.duplicates_merged ? 0 : sort_bytes * x.nnz());
  plan.build = x.bytes() + plan.tensor + sort_bytes * x.nnz();
  plan.iterate = plan.tensor + rows * stride + copies;
  plan.result = plan.tensor + rows * (stride + rank * sizeof(double));
  return plan;
}

}  // namespace polyad
