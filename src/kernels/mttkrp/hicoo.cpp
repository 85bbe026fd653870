// SPDX-License-Identifier: MIT
/// \file MTTKRP on HiCOO: the two parallel strategies of the paper's section V-B.
#include "formats/hicoo/hicoo.hpp"

#include <numeric>

#include "kernels/mttkrp/local_plan.hpp"
#include "kernels/mttkrp/owner.hpp"

namespace polyad {

namespace {

/// Superblocks that write the same range of rows are one task: nothing is shared. The heaviest task first.
template <class T>
void run_scheduled(const MttkrpRequest<T>& r) {
  const auto& hicoo = *get_if<Hicoo>(r.tensor);
  const HicooSchedule& schedule = hicoo.schedules[static_cast<std::size_t>(r.mode)];
  clear(r.out, r.threads());
  if (r.nnz() == 0) return;
  with_types(r.tensor.shape(), [&]<class Index, class Value>() {
    if constexpr (std::is_same_v<Value, T>) {
      const auto plan = local_plan<Index, T>(r, hicoo);
      std::vector<std::uint64_t> tasks(schedule.ranges());
      std::iota(tasks.begin(), tasks.end(), std::uint64_t{0});
      std::stable_sort(tasks.begin(), tasks.end(),
                       [&](std::uint64_t a, std::uint64_t b) { return schedule.nonzeros[a] > schedule.nonzeros[b]; });
      Sink<T> sink;
      sink.out = r.out.data();
      sink.stride = r.stride();
      std::atomic<std::uint64_t> next{0};
      const int team = static_cast<int>(std::min(static_cast<std::uint64_t>(r.threads()), schedule.independent));
      cpu::run_team(team, [&](int, int) {
        NonzeroBlock<Index, T> block(r.order());
        HicooReader<Index, T> reader(hicoo, block, prefetch_distance);
        for (std::uint64_t t = next.fetch_add(1); t < schedule.independent; t = next.fetch_add(1))
          reader.read(schedule.of_range(tasks[t]), [&](std::size_t count, std::size_t available) {
            add_nonzeros(plan.over(block, r.mode, count, available, sink));
          });
      });
    }
  });
}

/// Superblocks in parallel, whatever rows they write: a private output per thread, or every thread its own rows when
/// those are too many.
template <class T>
void run_privatised(const MttkrpRequest<T>& r) {
  const auto& hicoo = *get_if<Hicoo>(r.tensor);
  with_types(r.tensor.shape(), [&]<class Index, class Value>() {
    if constexpr (std::is_same_v<Value, T>) {
      const auto plan = local_plan<Index, T>(r, hicoo);
      const int threads = useful_team(r);
      if (!SharedOutput<T>::affordable(r, threads, r.nnz())) return add_by_owner(r);
      const SharedOutput<T> output(r, threads);
      cpu::run_team(threads, [&](int rank, int size) {
        NonzeroBlock<Index, T> block(r.order());
        const cpu::Share s = cpu::share_of(r.nnz(), rank, size);
        const Sink<T> sink = output.sink(rank);
        HicooReader<Index, T>(hicoo, block, prefetch_distance)
            .read(s.begin, s.end, [&](std::size_t count, std::size_t available) {
              add_nonzeros(plan.over(block, r.mode, count, available, sink));
            });
      });
      output.finish();
    }
  });
}

/// The paper's rule (section V-C): privatise when fewer than 4 P ranges of rows are independent and the longest has
/// more than 20 times as many superblocks.
bool paper_privatises(const HicooSchedule& schedule, int threads) {
  return schedule.independent < 4 * static_cast<std::uint64_t>(threads) &&
         schedule.iterations > 20 * schedule.independent;
}

Answer ask_scheduled(const MttkrpQuestion& q) {
  const Hicoo* hicoo = get_if<Hicoo>(q.tensor);
  if (hicoo == nullptr) return cannot("it works on hicoo");
  const HicooSchedule& schedule = hicoo->schedules[static_cast<std::size_t>(q.mode)];
  if (q.threads() == 1 || q.context.deterministic)  // then the choice must not depend on the number of threads
    return can(row_cost(q), "every row is summed by one thread in the order of the format");
  if (paper_privatises(schedule, q.threads()))
    return can(4 * row_cost(q),
               fmt::format("{} independent ranges of rows, few for {} threads", schedule.independent, q.threads()));
  // What the rule leaves out: the heaviest range bounds the time, and its thread works while the others wait.
  const auto nnz = static_cast<double>(std::max<std::uint64_t>(q.tensor.shape().nnz, 1));
  const double bound = static_cast<double>(schedule.heaviest) * q.threads() / nnz;
  // Superblocks of a range lie apart: 1.2 to 1.4 times the time of one stream, measured with 2 threads.
  return can(1.3 * row_cost(q) * std::max(1.0, bound),
             fmt::format("{} independent ranges of rows, no shared output", schedule.independent));
}

Answer ask_privatised(const MttkrpQuestion& q) {
  const Hicoo* hicoo = get_if<Hicoo>(q.tensor);
  if (hicoo == nullptr) return cannot("it works on hicoo");
  const HicooSchedule& schedule = hicoo->schedules[static_cast<std::size_t>(q.mode)];
  // Clearing, adding and reading a private number: 3 passes over its bytes at 10 GB/s.
  const double copies = static_cast<double>(q.rows()) * static_cast<double>(padded_columns(q.rank)) *
                        (q.threads() - 1) * static_cast<double>(bytes_of(q.tensor.shape().precision)) * 0.3;
  return can(
      row_cost(q) + copies,
      fmt::format("private outputs cost less than {} independent ranges of rows, the longest with {} superblocks",
                  schedule.independent, schedule.iterations));
}

}  // namespace

extern const MttkrpKernel mttkrp_hicoo_scheduled;
const MttkrpKernel mttkrp_hicoo_scheduled = {
    {{"mttkrp/hicoo/scheduled", "superblocks of one range of rows run one after the other, others in parallel"},
     "mttkrp",
     "hicoo",
     true},
    ask_scheduled,
    run_scheduled<float>,
    run_scheduled<double>};

extern const MttkrpKernel mttkrp_hicoo_privatised;
const MttkrpKernel mttkrp_hicoo_privatised = {
    {{"mttkrp/hicoo/privatised", "superblocks in parallel; a private output per thread, or every thread its own rows"},
     "mttkrp",
     "hicoo",
     false},
    ask_privatised,
    run_privatised<float>,
    run_privatised<double>};

}  // namespace polyad
