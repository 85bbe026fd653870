// SPDX-License-Identifier: MIT
/// \file MTTKRP of a tensor that stays in its file: every thread goes through its share of the nonzeros in windows; the
/// next one is on its way from the disk while one is computed with.
#include "formats/stream/stream.hpp"

#include "kernels/mttkrp/nonzero_loop.hpp"
#include "kernels/mttkrp/owner.hpp"

namespace polyad {

namespace {

/// The nonzeros of a window where they lie.
struct InPlace {
  const Stream& stream;

  template <class Index, class T>
  void decode(std::uint64_t first, std::size_t, NonzeroBlock<Index, T>& block) const {
    stream.view(first, block);
  }
};

template <class T>
void run_windows(const MttkrpRequest<T>& r) {
  const auto& stream = *get_if<Stream>(r.tensor);
  with_types(r.tensor.shape(), [&]<class Index, class Value>() {
    if constexpr (std::is_same_v<Value, T>) {
      const LoopPlan<Index, T> plan(r);
      const int threads = useful_team(r);
      if (!SharedOutput<T>::affordable(r, threads, r.nnz())) return add_by_owner(r);
      const SharedOutput<T> output(r, threads);
      cpu::run_team(threads, [&](int rank, int size) {
        NonzeroBlock<Index, T> block(r.order());
        const Sink<T> sink = output.sink(rank);
        const cpu::Share share = cpu::share_of(r.nnz(), rank, size);
        for (std::uint64_t begin = share.begin; begin < share.end; begin += stream.window) {
          const std::uint64_t end = std::min(share.end, begin + stream.window);
          stream.fetch(end, std::min(share.end, end + stream.window));
          add_range(InPlace{stream}, r.mode, plan, begin, end, end, sink, block);
          stream.drop(begin, end);
        }
      });
      output.finish();
    }
  });
}

}  // namespace

extern const MttkrpKernel mttkrp_stream_windows;
const MttkrpKernel mttkrp_stream_windows = {
    {{"mttkrp/stream/windows",
      "two windows a thread: one computed with, the next on its way; private outputs, or every thread its own rows"},
     "mttkrp",
     "stream",
     false},
    [](const MttkrpQuestion& q) {
      if (get_if<Stream>(q.tensor) == nullptr) return cannot("it works on stream");
      return can(row_cost(q), "the tensor stays in its file");
    },
    run_windows<float>,
    run_windows<double>};

}  // namespace polyad
