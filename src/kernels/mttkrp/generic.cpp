// SPDX-License-Identifier: MIT
/// \file Kernels that work on any format: they decode blocks of nonzeros.
#include "kernels/mttkrp/nonzero_loop.hpp"
#include "kernels/mttkrp/owner.hpp"

namespace polyad {

template <class T>
void add_by_owner(const MttkrpRequest<T>& r) {
  with_types(r.tensor.shape(), [&]<class Index, class Value>() {
    if constexpr (std::is_same_v<Value, T>) {
      // Not in runs: which nonzeros become neighbours depends on who owns the rows between them.
      const LoopPlan<Index, T> plan(r);
      clear(r.out, r.threads());
      const int threads =
          static_cast<int>(std::min<std::uint64_t>(static_cast<std::uint64_t>(r.threads()), r.out.rows()));
      cpu::run_team(std::max(threads, 1), [&](int rank, int size) {
        const cpu::Share own = cpu::share_of(r.out.rows(), rank, size);
        NonzeroBlock<Index, T> block(r.order());
        NonzeroBlock<Index, T> mine(r.order());
        Sink<T> sink;
        sink.out = r.out.data();
        sink.stride = r.stride();
        for (std::uint64_t begin = 0; begin < r.nnz(); begin += loop_nonzeros) {
          const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(r.nnz() - begin, loop_nonzeros));
          r.tensor.decode(begin, count, block);
          std::size_t kept = 0;
          std::array<Index*, max_order> to = {};
          for (int m = 0; m < r.order(); ++m) to[static_cast<std::size_t>(m)] = mine.index_room(m);
          T* values = mine.value_room();
          const Index* rows = block.indices[static_cast<std::size_t>(r.mode)];
          for (std::size_t k = 0; k < count; ++k) {
            const std::uint64_t row = rows[k * block.index_stride];
            if (row < own.begin || row >= own.end) continue;
            for (std::size_t m = 0; m < static_cast<std::size_t>(r.order()); ++m)
              to[m][kept] = block.indices[m][k * block.index_stride];
            values[kept++] = block.values[k];
          }
          if (kept > 0) add_nonzeros(plan.over(mine, r.mode, kept, kept, sink));
        }
      });
    }
  });
}

template void add_by_owner(const MttkrpRequest<float>&);
template void add_by_owner(const MttkrpRequest<double>&);

namespace {

/// Nonzeros over the threads in equal parts, private outputs; or every thread its own rows when those are too large.
template <class T>
void run_shared(const MttkrpRequest<T>& r) {
  with_types(r.tensor.shape(), [&]<class Index, class Value>() {
    if constexpr (std::is_same_v<Value, T>) {
      LoopPlan<Index, T> plan(r);
      NonzeroBlock<Index, T> sample(r.order());
      plan.loop.runs = rows_come_in_runs(r.tensor, r.mode, r.nnz(), sample);
      const int threads = useful_team(r);
      if (!SharedOutput<T>::affordable(r, threads, r.nnz())) return add_by_owner(r);
      const SharedOutput<T> output(r, threads);
      cpu::run_team(threads, [&](int rank, int size) {
        NonzeroBlock<Index, T> block(r.order());
        const cpu::Share s = cpu::share_of(r.nnz(), rank, size);
        add_range(r.tensor, r.mode, plan, s.begin, s.end, r.nnz(), output.sink(rank), block);
      });
      output.finish();
    }
  });
}

}  // namespace

extern const MttkrpKernel mttkrp_generic;
const MttkrpKernel mttkrp_generic = {
    {{"mttkrp/generic", "decodes blocks of nonzeros; private outputs, or every thread its own rows"},
     "mttkrp",
     "any",
     false},
    [](const MttkrpQuestion& q) {
      return can(1.5 * row_cost(q) + 1e3, "works on every format; none of this format's own kernels can do better");
    },
    run_shared<float>,
    run_shared<double>};

extern const MttkrpKernel mttkrp_generic_owner;
const MttkrpKernel mttkrp_generic_owner = {
    {{"mttkrp/generic/owner", "every thread decodes all nonzeros and adds those of its own rows"},
     "mttkrp",
     "any",
     true},
    [](const MttkrpQuestion& q) {
      return can(
          (2 + q.threads()) * row_cost(q) + 1e3,
          "every row is summed by one thread in the order of the format: the same bits for any number of threads");
    },
    add_by_owner<float>,
    add_by_owner<double>};

}  // namespace polyad
