// SPDX-License-Identifier: MIT
/// \file Dynasor (Wijeratne, Kannan and Prasanna, algorithm 2): MTTKRP on FLYCOO.
#include "formats/flycoo/flycoo.hpp"

#include "kernels/mttkrp/key_loop.hpp"
#include "kernels/mttkrp/local_plan.hpp"

namespace polyad {

namespace {

template <class T>
void run_remapping(const MttkrpRequest<T>& r) {
  auto& flycoo = *get_if<Flycoo>(r.tensor);
  flycoo.bring_to(r.mode, r.context);
  const Flycoo::Mode& mode = flycoo.partition(r.mode);
  const auto clear_rows = [&](std::uint32_t s) {
    std::fill(r.out.row(mode.first_row[s]), r.out.row(mode.first_row[s + 1]), T{0});
  };
  with_types(r.tensor.shape(), [&]<class Index, class Value>() {
    if constexpr (std::is_same_v<Value, T>) {
      const LoopPlan<Index, T> plan = local_plan<Index>(r, flycoo);
      const bool by_keys = sizeof(Index) == 4 && flycoo.key_words() == 1 && flycoo.layout.native();
      if (by_keys) {
        const Flycoo::Nonzeros& from = flycoo.nonzeros();
        KeyMove<T> moving;
        moving.field = flycoo.layout.field_of(flycoo.next_mode(), 0);
        moving.keys = flycoo.other_nonzeros().keys.data();
        moving.values = typed<T>(flycoo.other_nonzeros().values);
        KeyLoop<T> plain = key_loop_for(plan, flycoo.layout, r.mode);
        plain.out = r.out.data();
        flycoo.advance(r.context, clear_rows, [&](std::uint64_t first, std::size_t count, Destinations& to) {
          KeyMove<T> move = moving;
          move.map = to.map();
          move.next = to.next();
          KeyLoop<T> loop = plain;
          loop.move = &move;
          add_keys(loop, from.keys.data(), typed<T>(from.values), first, first + count, r.nnz());
        });
        return;
      }
      Sink<T> sink;
      sink.out = r.out.data();
      sink.stride = r.stride();
      flycoo.advance(r.context, clear_rows, [&](std::uint64_t first, std::size_t count, Destinations& to) {
        NonzeroBlock<Index, T> block(r.order());
        add_range(flycoo, r.mode, plan, first, first + count, r.nnz(), sink, block);
        flycoo.template move<Index, T>(first, count, to);
      });
    }
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
      if (get_if<Flycoo>(q.tensor) == nullptr) return cannot("it works on flycoo");
      return can(row_cost(q), "no locks, no private outputs: every output row belongs to one thread");
    },
    run_remapping<float>,
    run_remapping<double>};

}  // namespace polyad
