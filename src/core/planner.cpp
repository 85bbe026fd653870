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
  // Factors and the model made of them.
  double rows = 0;
  for (const std::uint64_t d : x.dims) rows += static_cast<double>(d);
  const double row_bytes = static_cast<double>(padded_columns(rank) * bytes_of(x.precision()) + rank * sizeof(double));
  const auto model = static_cast<std::uint64_t>(std::min(rows * row_bytes, 1e18));
  std::string passed_over;
  for (const Candidate& c : candidates) {
    const auto all = formats();
    const auto entry = std::ranges::find(all, c.format, &FormatEntry::name);
    if (entry == all.end()) continue;
    const std::optional<double> bytes = predicted_bytes(x, s, *entry, rank, context);
    const std::uint64_t needed =
        bytes ? static_cast<std::uint64_t>(*bytes) + std::max(sort_bytes_per_nonzero * x.nnz(), model) + used : 0;
    if (bytes && (limit == 0 || needed <= limit)) return {entry->name, c.why + passed_over};
    passed_over +=
        bytes ? fmt::format("; {} would take {} more than the memory allows", c.format, readable_bytes(needed - limit))
              : fmt::format("; {} cannot hold this tensor here", c.format);
  }
  return {"coo", fibres + (passed_over.empty() ? "; this build has no other format to take" : passed_over)};
}

}  // namespace polyad
