// SPDX-License-Identifier: MIT
/// \file MTTKRP on coordinates: GenTen's variants A and B (Phipps and Kolda, section 4), and one with private outputs.
#include "formats/coo/coo.hpp"

#include "kernels/mttkrp/nonzero_loop.hpp"
#include "kernels/mttkrp/owner.hpp"

namespace polyad {

namespace {

/// MTTKRP-A: one pass over the nonzeros with the rank known at run time only; the product of the factor rows lies in
/// scratch memory, every number is added atomically.
template <class T>
void run_atomic(const MttkrpRequest<T>& r) {
  with_types(r.tensor.shape(), [&]<class Index, class Value>() {
    if constexpr (std::is_same_v<Value, T>) {
      const std::uint64_t stride = r.stride();
      const std::uint64_t cols = r.out.cols();
      clear(r.out, r.threads());
      cpu::parallel_ranges(
          r.threads(), r.nnz(),
          [&](std::uint64_t begin, std::uint64_t end) {
            NonzeroBlock<Index, T> block(r.order());
            std::vector<T> scratch(stride);
            for (; begin < end; begin += loop_nonzeros) {
              const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(end - begin, loop_nonzeros));
              r.tensor.decode(begin, count, block);
              for (std::size_t k = 0; k < count; ++k) {
                std::fill(scratch.begin(), scratch.end(), block.values[k]);
                for (int m = 0; m < r.order(); ++m) {
                  if (m == r.mode) continue;
                  const auto at = static_cast<std::size_t>(m);
                  const T* row = r.factors[at].row(block.indices[at][k * block.index_stride]);
                  for (std::uint64_t c = 0; c < stride; ++c) scratch[c] *= row[c];
                }
                T* out = r.out.row(block.indices[static_cast<std::size_t>(r.mode)][k * block.index_stride]);
                for (std::uint64_t c = 0; c < cols; ++c)
                  std::atomic_ref<T>(out[c]).fetch_add(scratch[c], std::memory_order_relaxed);
              }
            }
          },
          1024);
    }
  });
}

/// MTTKRP-B and its sibling: blocks of columns in registers; the sink differs.
template <class T, SinkKind kind>
void run_blocked(const MttkrpRequest<T>& r) {
  const auto& coo = *get_if<Coo>(r.tensor);
  with_types(r.tensor.shape(), [&]<class Index, class Value>() {
    if constexpr (std::is_same_v<Value, T>) {
      LoopPlan<Index, T> plan(r);
      NonzeroBlock<Index, T> sample(r.order());
      plan.loop.runs = rows_come_in_runs(coo, r.mode, r.nnz(), sample);
      const int threads = useful_team(r);
      if (kind == SinkKind::own && !SharedOutput<T>::affordable(r, threads, r.nnz())) return add_by_owner(r);
      const SharedOutput<T> output(r, threads, kind);
      cpu::run_team(threads, [&](int rank, int size) {
        NonzeroBlock<Index, T> block(r.order());
        const cpu::Share s = cpu::share_of(r.nnz(), rank, size);
        add_range(coo, r.mode, plan, s.begin, s.end, r.nnz(), output.sink(rank), block);
      });
      output.finish();
    }
  });
}

Answer ask_coo(const MttkrpQuestion& q, double factor, const char* reason) {
  if (get_if<Coo>(q.tensor) == nullptr) return cannot("it works on coo");
  return can(factor * row_cost(q), reason);
}

}  // namespace

extern const MttkrpKernel mttkrp_coo_atomic;
const MttkrpKernel mttkrp_coo_atomic = {
    {{"mttkrp/coo/atomic", "GenTen's MTTKRP-A: any rank in one pass, atomic additions"}, "mttkrp", "coo", false},
    [](const MttkrpQuestion& q) { return ask_coo(q, 20, "one pass whatever the rank"); },
    run_atomic<float>,
    run_atomic<double>};

extern const MttkrpKernel mttkrp_coo_blocked;
const MttkrpKernel mttkrp_coo_blocked = {
    {{"mttkrp/coo/blocked", "GenTen's MTTKRP-B: blocks of columns in registers, atomic additions"},
     "mttkrp",
     "coo",
     false},
    [](const MttkrpQuestion& q) { return ask_coo(q, 10, "products stay in registers"); },
    run_blocked<float, SinkKind::atomic>,
    run_blocked<double, SinkKind::atomic>};

extern const MttkrpKernel mttkrp_coo_privatised;
const MttkrpKernel mttkrp_coo_privatised = {
    {{"mttkrp/coo/privatised",
      "blocks of columns in registers; a private output per thread, or every thread its own rows"},
     "mttkrp",
     "coo",
     false},
    [](const MttkrpQuestion& q) { return ask_coo(q, 1, "no atomic additions while private outputs are affordable"); },
    run_blocked<float, SinkKind::own>,
    run_blocked<double, SinkKind::own>};

}  // namespace polyad
