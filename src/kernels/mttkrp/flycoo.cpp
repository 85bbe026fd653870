// SPDX-License-Identifier: MIT
/// \file Dynasor (Wijeratne, Kannan and Prasanna, algorithm 2): MTTKRP on FLYCOO.
#include "formats/flycoo/flycoo.hpp"

#include <algorithm>

#include "kernels/mttkrp/record_loop.hpp"
#include "kernels/mttkrp/request.hpp"

namespace polyad {

namespace {

/// Rows of larger factors are requested ahead. Up to here the out-of-order core hides the way to them: 30 000 to 50 000
/// rows of 64 bytes took the same time with and without.
constexpr std::uint64_t worth_requesting = std::uint64_t{4} << 20U;

template <class T>
RecordLoop<T> loop_for(const MttkrpRequest<T>& r, const Flycoo& flycoo) {
  RecordLoop<T> loop;
  for (int m = 0; m < r.order(); ++m)
    if (m != r.mode) loop.modes[static_cast<std::size_t>(loop.inputs++)] = static_cast<std::uint32_t>(m);
  std::stable_sort(loop.modes.begin(), loop.modes.begin() + loop.inputs,
                   [&](std::uint32_t a, std::uint32_t b) { return r.factors[a].rows() > r.factors[b].rows(); });
  for (std::size_t i = 0; i < static_cast<std::size_t>(loop.inputs); ++i) {
    loop.factors[i] = r.factors[loop.modes[i]].data();
    if (r.factors[loop.modes[i]].bytes() > worth_requesting) ++loop.prefetched;
  }
  loop.output_mode = static_cast<std::uint32_t>(r.mode);
  loop.words = static_cast<std::uint32_t>(flycoo.record_bytes / 4);
  loop.value_word = static_cast<std::uint32_t>(flycoo.value_offset() / 4);
  loop.out = r.out.data();
  loop.stride = r.stride();
  return loop;
}

template <class T>
void run_remapping(const MttkrpRequest<T>& r) {
  auto& flycoo = *get_if<Flycoo>(r.tensor);
  flycoo.bring_to(r.mode, r.context);
  const RecordLoop<T> plan = loop_for(r, flycoo);
  const Flycoo::Mode& mode = flycoo.partition(r.mode);
  const std::byte* records = flycoo.records();
  flycoo.advance(
      r.context,
      [&](std::uint32_t s) { std::fill(r.out.row(mode.first_row[s]), r.out.row(mode.first_row[s + 1]), T{0}); },
      [&](std::uint64_t first, std::size_t count, Destinations& destinations) {
        RecordLoop<T> loop = plan;
        loop.destinations = &destinations;
        loop.records = records + first * flycoo.record_bytes;
        loop.count = count;
        loop.available = static_cast<std::size_t>(std::min<std::uint64_t>(count + 32, r.nnz() - first));
        // A look at the start of the shard: do neighbours share the output row? Depends on the order only.
        const auto* rows = reinterpret_cast<const std::uint32_t*>(loop.records) + loop.output_mode;
        std::size_t changes = 0;
        const std::size_t sample = std::min<std::size_t>(count, 32);
        for (std::size_t k = 1; k < sample; ++k) changes += rows[k * loop.words] != rows[(k - 1) * loop.words];
        loop.runs = changes * 4 < sample;
        add_records(loop);
      });
}

}  // namespace

extern const MttkrpKernel mttkrp_flycoo_remapping;
const MttkrpKernel mttkrp_flycoo_remapping = {
    {{"mttkrp/flycoo/remapping", "Dynasor: every super-shard has one thread, which also reorders it for the next mode"},
     "mttkrp",
     "flycoo",
     true},
    [](const MttkrpQuestion& q) {
      const auto* flycoo = get_if<Flycoo>(q.tensor);
      if (flycoo == nullptr) return cannot("it works on flycoo");
      if (q.tensor.shape().index_width() != IndexWidth::u32) return cannot("its loop reads indices of 32 bits");
      if (q.context.deterministic && !flycoo->reproducible)
        return cannot("the tensor was built without --deterministic: its order depends on the number of threads");
      return can(row_cost(q), "no locks, no private outputs: every output row belongs to one thread");
    },
    run_remapping<float>,
    run_remapping<double>};

}  // namespace polyad
