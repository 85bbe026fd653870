// SPDX-License-Identifier: MIT
/// \file MTTKRP on the fibres of formats/sweep. In a sweep over the modes the nonzeros are read twice: once to gather
/// (the first mode of the fibres; the others follow from the products kept) and once to scatter (the leaves; merged
/// ones follow from their sums); sweep-two sums the rows of its leaf mode from a copy sorted by it. What is kept is
/// valid as long as the caller says so (Workspace::keep_products).
#include "formats/sweep/sweep.hpp"

#include "kernels/mttkrp/fibre_loop.hpp"
#include "kernels/mttkrp/nonzero_loop.hpp"
#include "kernels/mttkrp/owner.hpp"
#include "kernels/mttkrp/row_loop.hpp"

namespace polyad {

namespace {

/// One request on one tensor.
template <class T>
class SweepRun {
 public:
  explicit SweepRun(const MttkrpRequest<T>& r)
      : r_(r), s_(*get_if<Sweep>(r.tensor)), maker_{s_.serial, r.stride() * sizeof(T)} {
    loop_.stride = r.stride();
    loop_.values = typed<T>(s_.values);
    std::visit(
        [&]<class Leaf>(const Buffer<Leaf>& leaves) {
          if constexpr (sizeof(Leaf) == 2) loop_.short_leaves = leaves.data();
          if constexpr (sizeof(Leaf) == 4) loop_.leaves = leaves.data();
        },
        s_.leaves);
    loop_.prefetch_leaves = s_.leaf_rows * r.stride() * sizeof(T) >= worth_prefetching;
    for (std::size_t h = 0; h < s_.split.fibres.size(); ++h) {
      const auto& ids = std::get<Buffer<std::uint32_t>>(s_.ids[h]);
      if (s_.split.fibres[h] == r.mode) {
        loop_.output_ids = ids.data();
        continue;
      }
      const FactorMatrix<T>& factor = factor_of(s_.split.fibres[h]);
      loop_.inputs[static_cast<std::size_t>(loop_.input_count++)] = {ids.data(), factor.data(),
                                                                     factor.bytes() >= worth_prefetching};
    }
  }

  void run() {
    if (r_.nnz() == 0) return clear(r_.out, r_.threads());
    if (const std::optional<int> at = s_.leaf_position(r_.mode)) return to_leaves(*at);
    if (!prepare_products()) return add_by_owner(r_);
    if (s_.fibre_position(r_.mode) == 0) {
      to_root();
    } else {
      to_other_fibre_mode();
    }
  }

 private:
  const FactorMatrix<T>& factor_of(int mode) const { return r_.factors[static_cast<std::size_t>(mode)]; }

  /// Products of an earlier call, or a table to gather from and perhaps room for the products. False when a table does
  /// not fit the memory.
  [[nodiscard]] bool prepare_products() {
    const std::uint64_t bytes = s_.fibres() * r_.stride() * sizeof(T);
    if (r_.workspace.holds(fibre_products, s_.split.leaves, maker_)) {
      kept_ = true;
      loop_.products = room(fibre_products, bytes);
      return true;
    }
    if (merged()) {
      if (!r_.workspace.affords(leaf_table, table_bytes(), r_.context)) return false;
      loop_.table = leaf_products();
    } else {
      loop_.table = factor_of(s_.split.leaves[0]).data();
    }
    // The product of a tensor of two modes is the result itself.
    const bool keep = s_.split.fibres.size() > 1 && r_.workspace.keeps_products() &&
                      worth_keeping(static_cast<double>(s_.fibres()), static_cast<double>(r_.nnz())) &&
                      r_.workspace.affords(fibre_products, bytes + needed_later(), r_.context);
    if (keep) loop_.products = room(fibre_products, bytes);
    return true;
  }

  /// Memory that outputs of this and other modes will want: products that are kept must not take it from them.
  [[nodiscard]] std::uint64_t needed_later() const {
    const std::uint64_t row = r_.stride() * sizeof(T);
    std::uint64_t most = merged() ? table_bytes() * static_cast<std::uint64_t>(team()) : 0;
    for (const std::uint64_t d : s_.tensor_shape.dims) {
      const std::uint64_t copies = d * row * static_cast<std::uint64_t>(team() - 1);
      if (copies / 100 <= r_.nnz()) most = std::max(most, copies);
    }
    return most + 2 * s_.chunks() * row;
  }

  [[nodiscard]] bool merged() const { return s_.split.leaves.size() > 1; }
  [[nodiscard]] std::uint64_t table_bytes() const { return s_.leaf_rows * r_.stride() * sizeof(T); }

  /// Every row of the root mode comes in one chunk, or at its ends.
  void to_root() {
    const std::uint64_t chunks = s_.chunks();
    BoundaryRows<T> rows(r_, chunks, false);
    cpu::for_each_chunk(r_.threads(), chunks, [&](std::uint64_t c, int) {
      // Roots ascend from chunk to chunk, not within one: its rows are those from the last one of the chunk before on.
      const std::uint64_t begin = c == 0 ? 0 : s_.roots[c - 1].last + 1;
      const std::uint64_t end = c + 1 == chunks ? r_.out.rows() : s_.roots[c].last + 1;
      if (begin < end) std::fill(r_.out.row(begin), r_.out.row(begin) + (end - begin) * r_.stride(), T{0});
      chunk_to(c, rows.sink(c, s_.roots[c].first, s_.roots[c].last));
    });
    rows.finish();
    set_held();
  }

  /// Rows of the other modes come anywhere.
  void to_other_fibre_mode() {
    const int threads = team();
    if (!SharedOutput<T>::affordable(r_, threads, s_.fibres())) return add_by_owner(r_);
    loop_.prefetch_output = r_.out.bytes() >= worth_prefetching;
    const SharedOutput<T> output(r_, threads);
    cpu::run_team(threads, [&](int rank, int size) {
      const Sink<T> sink = output.sink(rank);
      const cpu::Share share = cpu::share_of(s_.chunks(), rank, size);
      for (std::uint64_t c = share.begin; c < share.end; ++c) chunk_to(c, sink);
    });
    output.finish();
    set_held();
  }

  void chunk_to(std::uint64_t c, const Sink<T>& sink) const {
    if (kept_) return add_products(loop_, s_.first[c], s_.first[c + 1], sink);
    gather_fibres(loop_, chunk(c), sink);
  }

  void set_held() {
    if (loop_.products != nullptr && !kept_) r_.workspace.set_held(fibre_products, s_.split.leaves, maker_);
  }

  void to_leaves(int position) {
    if (s_.leaf_copy) return sum_rows(r_, *s_.leaf_copy);
    const int threads = team();
    if (!merged()) {
      if (!SharedOutput<T>::affordable(r_, threads, r_.nnz())) return add_by_owner(r_);
      const SharedOutput<T> output(r_, threads);
      cpu::run_team(threads, [&](int rank, int size) { scatter(output.sink(rank).out, rank, size); });
      return output.finish();
    }
    const std::uint64_t bytes = table_bytes() * static_cast<std::uint64_t>(threads);
    if (!r_.workspace.affords(leaf_sums, bytes, r_.context)) return add_by_owner(r_);
    const LeafTable<T> table = leaf_modes();
    const T* sums = leaf_row_sums(threads);
    cpu::parallel_ranges(
        r_.threads(), r_.out.rows(),
        [&](std::uint64_t begin, std::uint64_t end) {
          fold_table(table, sums, s_.occupied.data(), position, begin, end, r_.out.data());
        },
        std::max<std::uint64_t>(1, 1024 * r_.out.rows() / s_.leaf_rows));
  }

  void scatter(T* sums, int rank, int size) const {
    const cpu::Share share = cpu::share_of(s_.chunks(), rank, size);
    for (std::uint64_t c = share.begin; c < share.end; ++c) scatter_fibres(loop_, chunk(c), sums);
  }

  /// Per merged leaf the sum over its nonzeros.
  const T* leaf_row_sums(int threads) {
    const std::uint64_t elements = s_.leaf_rows * r_.stride();
    T* sums = room(leaf_sums, elements * sizeof(T) * static_cast<std::size_t>(threads));
    if (r_.workspace.holds(leaf_sums, s_.split.fibres, maker_)) return sums;  // a larger room would hold nothing
    cpu::run_team(threads, [&](int rank, int size) {
      T* mine = sums + static_cast<std::uint64_t>(rank) * elements;
      std::fill_n(mine, elements, T{0});
      scatter(mine, rank, size);
    });
    cpu::parallel_ranges(r_.threads(), elements, [&](std::uint64_t begin, std::uint64_t end) {
      for (int t = 1; t < threads; ++t) {
        const T* other = sums + static_cast<std::uint64_t>(t) * elements;
        for (std::uint64_t i = begin; i < end; ++i) sums[i] += other[i];
      }
    });
    r_.workspace.set_held(leaf_sums, s_.split.fibres, maker_);
    return sums;
  }

  /// The table of products of the merged leaf modes.
  const T* leaf_products() {
    const LeafTable<T> table = leaf_modes();
    T* rows = room(leaf_table, table_bytes());
    cpu::parallel_ranges(
        r_.threads(), s_.leaf_rows,
        [&](std::uint64_t begin, std::uint64_t end) { fill_table(table, begin, end, rows); }, 1024);
    return rows;
  }

  [[nodiscard]] LeafTable<T> leaf_modes() const {
    LeafTable<T> table;
    table.stride = r_.stride();
    for (const int m : s_.split.leaves) {
      const auto at = static_cast<std::size_t>(table.modes++);
      table.factors[at] = factor_of(m).data();
      table.lengths[at] = s_.tensor_shape.dims[static_cast<std::size_t>(m)];
    }
    return table;
  }

  [[nodiscard]] FibreChunk chunk(std::uint64_t c) const {
    return {s_.lengths[c], s_.first[c], c * Sweep::chunk_nonzeros};
  }
  [[nodiscard]] T* room(WorkspacePurpose purpose, std::uint64_t bytes) const {
    return static_cast<T*>(r_.workspace.room(purpose, bytes, r_.context));
  }
  [[nodiscard]] int team() const {
    return static_cast<int>(std::clamp<std::uint64_t>(s_.chunks(), 1, static_cast<std::uint64_t>(r_.threads())));
  }

  const MttkrpRequest<T>& r_;
  const Sweep& s_;
  std::array<std::uint64_t, 2> maker_;  // tells what is kept in the workspace from that of others
  FibreLoop<T> loop_;
  bool kept_ = false;  // loop_.products are those of an earlier call
};

template <class T>
void run_two_pass(const MttkrpRequest<T>& r) {
  SweepRun<T>(r).run();
}

}  // namespace

extern const MttkrpKernel mttkrp_sweep_two_pass;
const MttkrpKernel mttkrp_sweep_two_pass = {
    {{"mttkrp/sweep/two-pass",
      "sums per fibre serve all its modes, sums per leaf all of theirs; private outputs, or every thread its own rows"},
     "mttkrp",
     "sweep,sweep-two",
     false},
    [](const MttkrpQuestion& q) {
      const auto* s = get_if<Sweep>(q.tensor);
      if (s == nullptr) return cannot("it works on sweep and sweep-two");
      if (s->ids[0].index() != 0 || s->leaves.index() == 2) return cannot("it reads 32-bit indices");
      return can(row_cost(q) / 2, s->fibre_position(q.mode) ? "one sum per fibre serves all modes of the fibres"
                                                            : "one product per fibre serves all its leaves");
    },
    run_two_pass<float>,
    run_two_pass<double>};

}  // namespace polyad
