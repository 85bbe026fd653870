// SPDX-License-Identifier: MIT
#include "formats/merged/merged.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>

#include "backends/cpu/threads.hpp"

namespace polyad {

namespace {

/// Which indices of a mode occur.
Buffer<std::uint8_t> occupied_indices(const CooTensor& x, int mode, const Context& context) {
  Buffer<std::uint8_t> occupied(context, x.dims[static_cast<std::size_t>(mode)], "the occupied merged indices",
                                Paging::plain);
  std::visit(
      [&](const auto& indices) {
        cpu::parallel_ranges(context.thread_count(), x.nnz(), [&](std::uint64_t begin, std::uint64_t end) {
          for (std::uint64_t z = begin; z < end; ++z) {  // several threads may say it
            const std::atomic_ref is_occupied(occupied[indices[z]]);
            if (is_occupied.load(std::memory_order_relaxed) == 0) is_occupied.store(1, std::memory_order_relaxed);
          }
        });
      },
      x.indices[static_cast<std::size_t>(mode)]);
  return occupied;
}

/// Bytes of all copies of the merged tensor, and of what is occupied.
double predicted_bytes(const TensorSample& merged, const ModeGroups& groups, const ValueCode& code,
                       const FormatOptions& options) {
  double sum = 0;
  for (int g = 0; g < groups.count(); ++g)
    sum += Tiles::predicted_bytes(merged, Tiling::choose(merged, g, options), code) +
           (groups.is_merged(g) ? merged.dim(g) : 0);
  return sum;
}

/// "1+2 and 4+5"
std::string merged_names(const ModeGroups& groups) {
  std::string all;
  for (int g = 0; g < groups.count(); ++g) {
    if (!groups.is_merged(g)) continue;
    if (!all.empty()) all += " and ";
    const std::vector<int>& modes = groups.modes[static_cast<std::size_t>(g)];
    for (const int m : modes) all += fmt::format("{}{}", m == modes[0] ? "" : "+", m + 1);
  }
  return all;
}

/// Bytes of the indices that merge_modes makes.
double merging_bytes(const TensorSample& sample, const ModeGroups& groups) {
  double merged = 0;
  for (int g = 0; g < groups.count(); ++g) merged += groups.is_merged(g) ? 1 : 0;
  return merged * sample.nnz() * static_cast<double>(bytes_of(sample.tensor().index_width()));
}

/// Whether they fit the memory beside all there is.
bool affords_merging(const TensorSample& sample, const ModeGroups& groups) {
  const Context& context = sample.context();
  const double room = merging_bytes(sample, groups);
  return !context.memory || context.memory->limit() == 0 ||
         static_cast<double>(context.memory->used()) + room <= static_cast<double>(context.memory->limit());
}

SweepEstimate estimate_merged(const EstimateRequest& q) {
  SweepEstimate e;
  const CooTensor& x = q.sample.tensor();
  const ModeGroups groups = ModeGroups::choose(x, q.rank);
  if (!groups.merges() || !affords_merging(q.sample, groups)) {
    e = class_named("tiles").estimate(q);
    e.repeats = true;
    e.why = groups.merges() ? "no memory to merge modes in" : "no modes to merge: the same as tiles";
    return e;
  }
  const CooTensor merged = merge_modes(x, groups, q.sample.context());
  const TensorSample sample(merged, q.sample.context());
  const EstimateRequest in_merged{sample, q.rank, q.cost, q.threads, q.most_bytes};
  FormatOptions options;
  options.rank = q.rank;
  e.deterministic = true;
  double longest_sums = 0;
  for (int g = 0; g < groups.count(); ++g) {
    e.ns += tiles_ns(in_merged, Tiling::choose(sample, g, options));
    if (!groups.is_merged(g)) continue;
    // Its table is made for every other group, its sums are folded once for each of its modes.
    const auto modes = static_cast<double>(groups.modes[static_cast<std::size_t>(g)].size());
    e.ns += 4 * (groups.count() - 1 + modes) * sample.dim(g) * q.lines();
    e.kept += sample.dim(g) * q.row_bytes();
    longest_sums = std::max(longest_sums, sample.dim(g) * q.row_bytes());
  }
  e.kept += longest_sums;
  e.bytes = predicted_bytes(sample, groups, q.sample.value_code(), options);
  e.build_ns = (13 * groups.count() + 2) * q.sample.nnz();
  e.build_bytes = bytes_from_sorted(in_merged, e.bytes) + merging_bytes(q.sample, groups);
  e.why = fmt::format("modes {} merged, then a narrow copy for each of {}: {} rows a nonzero in place of {}",
                      merged_names(groups), groups.count(), groups.count() * (groups.count() - 1),
                      x.order() * (x.order() - 1));
  return e;
}

}  // namespace

Merged Merged::build(const CooTensor& x, const FormatOptions& options, const Context& context) {
  Merged m;
  m.tensor_shape = shape_of(x);
  m.groups = ModeGroups::choose(x, options.rank);
  const CooTensor merged = merge_modes(x, m.groups, context);
  m.occupied.resize(m.groups.modes.size());
  FormatOptions of_group = options;
  of_group.value_code = std::make_shared<ValueCode>(value_code(x, options, context));
  for (int g = 0; g < m.groups.count(); ++g) {
    of_group.mode = g;
    m.copies.push_back(Tiles::build(merged, of_group, context));
    if (m.groups.is_merged(g)) m.occupied[static_cast<std::size_t>(g)] = occupied_indices(merged, g, context);
  }
  return m;
}

std::uint64_t Merged::bytes() const {
  std::uint64_t sum = 0;
  for (const Tiles& t : copies) sum += t.bytes();
  for (const Buffer<std::uint8_t>& b : occupied) sum += b.bytes();
  return sum;
}

extern const FormatClass merged_format;
const FormatClass merged_format = {
    {{"merged", "short neighbouring modes taken for one, then a copy per merged mode as in tiles"},
     "polyad's own; products of factors that serve several modes are those of dimension trees (Kaya and Ucar, 2018)",
     false,
     "four modes or more, some of them short, factors that the caches hold: few rows a nonzero, while tables of merged "
     "modes are small"},
    [](const CooTensor& x, const FormatOptions& options, const Context& context) {
      return erased(merged_format, options, Merged::build(x, options, context));
    },
    [](const CooTensor& x, const TensorStatistics&, const FormatOptions& options,
       const Context& context) -> StoragePrediction {
      const ModeGroups groups = ModeGroups::choose(x, options.rank);
      const CooTensor merged = merge_modes(x, groups, context);
      const TensorSample sample(merged, context);
      const ValueCode code = sample.value_code();
      const double bytes = predicted_bytes(sample, groups, code, options);
      const double values = groups.count() * NarrowValues::predicted_bytes(code, sample.nnz());
      return {(bytes - values) / 4,
              bytes,
              "for each of M groups: index/4*nnz*(M-1) + min(2*S, I), and J/4 if it is merged (an estimate)",
              {}};
    },
    estimate_merged};

}  // namespace polyad
