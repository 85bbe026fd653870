// SPDX-License-Identifier: MIT
/// \file MTTKRP on the fibres of formats/sweep. In a sweep over the modes the nonzeros are read twice: once to gather
/// (the modes of the fibres) and once to scatter (the leaves; merged ones follow from their sums); sweep-two sums the
/// rows of its leaf mode from a copy sorted by it. One gather serves the root mode and, when the caller takes rows as
/// they are complete (RowUpdate), the mode after it: chunk by chunk, while the sums per fibre are near. Else these are
/// kept for the other modes. What is kept is valid as long as the caller says so (Workspace::keep_products).
#include "formats/sweep/sweep.hpp"

#include "kernels/mttkrp/fibre_loop.hpp"
#include "kernels/mttkrp/nonzero_loop.hpp"
#include "kernels/mttkrp/output.hpp"
#include "kernels/mttkrp/owner.hpp"
#include "kernels/mttkrp/tile_loop.hpp"

namespace polyad {

namespace {

/// One request on one tensor.
template <class T>
class SweepRun {
 public:
  explicit SweepRun(const MttkrpRequest<T>& r)
      : r_(r), s_(*get_if<Sweep>(r.tensor)), maker_{r.tensor.serial(), r.stride() * sizeof(T)} {
    loop_.stride = r.stride();
    loop_.values = typed<T>(s_.values);
    std::visit(
        [&]<class Leaf>(const Buffer<Leaf>& leaves) {
          if constexpr (sizeof(Leaf) == 2) loop_.short_leaves = leaves.data();
          if constexpr (sizeof(Leaf) == 4) loop_.leaves = leaves.data();
        },
        s_.leaves);
    loop_.prefetch_leaves = s_.leaf_rows * r.stride() * sizeof(T) >= worth_prefetching;
    loop_.short_ids = s_.ids[0].index() == 0;
    aim_at(loop_, r.mode);
  }

  void run() {
    if (r_.nnz() == 0) return clear(r_.out, r_.threads());
    if (const std::optional<int> at = s_.leaf_position(r_.mode)) return to_leaves(*at);
    if (r_.workspace.holds(next_outputs, all_but(r_.mode), team_maker())) return take_begun_output();
    if (!prepare_table()) return add_by_owner(r_);
    if (s_.fibre_position(r_.mode) != 0) {
      to_other_fibre_mode();
    } else if (RowUpdate<T>* update = taken_on_with_next()) {
      to_root_and_next(*update);
    } else {
      to_root();
    }
  }

 private:
  const FactorMatrix<T>& factor_of(int mode) const { return r_.factors[static_cast<std::size_t>(mode)]; }

  /// Output and inputs of a loop over fibres: the rows of a mode, from those of the others.
  void aim_at(FibreLoop<T>& loop, int mode) const {
    loop.input_count = 0;
    for (std::size_t h = 0; h < s_.split.fibres.size(); ++h) {
      const void* ids = std::visit([](const auto& b) { return static_cast<const void*>(b.data()); }, s_.ids[h]);
      if (s_.split.fibres[h] == mode) {
        loop.output_ids = ids;
        continue;
      }
      const FactorMatrix<T>& factor = factor_of(s_.split.fibres[h]);
      loop.inputs[static_cast<std::size_t>(loop.input_count++)] = {ids, factor.data(),
                                                                   factor.bytes() >= worth_prefetching};
    }
  }

  /// Products of an earlier call, or a table to gather from. False when a table does not fit the memory.
  [[nodiscard]] bool prepare_table() {
    if (r_.workspace.holds(fibre_products, s_.split.leaves, maker_)) {
      kept_ = true;
      loop_.products = room(fibre_products, product_bytes(s_.fibres()));
      return true;
    }
    if (merged()) {
      if (!r_.workspace.affords(leaf_table, table_bytes(), r_.context)) return false;
      loop_.table = leaf_products();
    } else {
      loop_.table = factor_of(s_.split.leaves[0]).data();
    }
    return true;
  }

  /// Room for the products of this gather, if they serve later modes.
  void keep_products() {
    // The product of a tensor of two modes is the result itself.
    if (kept_ || !worth_keeping_products() || s_.split.fibres.size() < 2 || !r_.workspace.keeps_products()) return;
    // Who takes rows under way lets one gather serve both modes, but for the first sweep: memory for that one would
    // cost more than a second gather (nell2, f32: 26 ms; 233 MB of fresh pages at 0.3 to 1 GB/s 0.2 s and more).
    if (r_.pending.update != nullptr && s_.split.fibres.size() == 2 && !keeps_for_good() && gathers_for_both()) return;
    const std::uint64_t bytes = product_bytes(s_.fibres());
    if (!r_.workspace.affords(fibre_products, bytes + needed_later(), r_.context)) return;
    loop_.products = room(fibre_products, bytes);
    loop_.products_past_cache = true;
  }
  /// Whether products serve all sweeps, as no factor of the leaves will change: then one gather is enough.
  [[nodiscard]] bool keeps_for_good() const {
    return std::ranges::all_of(s_.split.leaves, [&](int m) { return r_.workspace.is_fixed(m); }) &&
           worth_keeping_products() &&
           r_.workspace.affords(fibre_products, product_bytes(s_.fibres()) + needed_later(), r_.context);
  }
  [[nodiscard]] bool worth_keeping_products() const {
    return worth_keeping(static_cast<double>(s_.fibres()), static_cast<double>(r_.nnz()));
  }
  [[nodiscard]] std::uint64_t product_bytes(std::uint64_t fibres) const { return fibres * r_.stride() * sizeof(T); }

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

  /// The rows of the root mode that a chunk clears: its own, and empty ones before it. Of the pieces of a root the
  /// first one clears the row.
  [[nodiscard]] cpu::Share rows_of(std::uint64_t c) const {
    return {c == 0 ? 0 : s_.roots[c - 1].last + 1, c + 1 == s_.chunks() ? r_.out.rows() : s_.roots[c].last + 1};
  }
  void clear_rows(std::uint64_t c) const {
    const cpu::Share rows = rows_of(c);
    if (rows.begin < rows.end) std::fill_n(r_.out.row(rows.begin), (rows.end - rows.begin) * r_.stride(), T{0});
  }
  void give_rows(std::uint64_t c, RowUpdate<T>& update, std::uint64_t part) const {
    const cpu::Share rows = rows_of(c);
    if (rows.begin < rows.end) update.take(part, rows.begin, rows.end, r_.out.row(rows.begin));
  }
  void give_cut_rows(RowUpdate<T>& update, std::uint64_t part) const {
    for (const std::uint64_t c : s_.cut) give_rows(c, update, part);
  }
  /// The row of a root that is cut comes from several chunks: each has a side row.
  [[nodiscard]] std::uint64_t cut_position(std::uint64_t c) const {
    return static_cast<std::uint64_t>(std::ranges::lower_bound(s_.cut, c) - s_.cut.begin());
  }
  /// Where row 0 would be: all fibres of the chunk have this one root.
  [[nodiscard]] T* side_row(BoundaryRows<T>& sides, std::uint64_t c) const {
    const std::uint64_t root = s_.roots[c].first;
    return NearRows<T>::as_if_first(sides.sink(cut_position(c), root, root).first, root, r_.stride());
  }

  /// Every row of the root mode comes in one chunk, but for those of roots that are cut.
  void to_root() {
    keep_products();
    const ChunkGroups groups(s_.chunks());
    RowUpdate<T>* update = r_.pending.take_on(groups.count + 1);
    BoundaryRows<T> sides(r_, s_.cut.size(), false);
    const NearRows<T> near(r_, update, r_.out.bytes() >= past_cache_bytes);
    groups.for_each(r_.threads(), [&](std::uint64_t c, std::uint64_t group, int rank) {
      const cpu::Share rows = rows_of(c);
      if (T* mine = s_.is_cut(c) ? nullptr : near.of(rank, rows.end - rows.begin)) {
        std::fill_n(mine, (rows.end - rows.begin) * r_.stride(), T{0});
        chunk_to(c, NearRows<T>::as_if_first(mine, rows.begin, r_.stride()));
        return update->take(group, rows.begin, rows.end, mine);
      }
      clear_rows(c);
      if (s_.is_cut(c)) return chunk_to(c, side_row(sides, c));
      chunk_to(c, r_.out.data());
      if (update != nullptr) give_rows(c, *update, group);
    });
    sides.finish();
    if (update != nullptr) give_cut_rows(*update, groups.count);
    set_held();
  }

  /// The caller's update, if one gather can serve this mode, which is the root, and the next one.
  [[nodiscard]] RowUpdate<T>* taken_on_with_next() {
    if (kept_ || r_.pending.update == nullptr || !r_.workspace.keeps_products() || keeps_for_good()) return nullptr;
    const int next = r_.pending.update->next_mode;
    if (next == r_.mode || next < 0 || !can_serve(next)) return nullptr;
    return r_.pending.take_on(static_cast<std::uint64_t>(team()) + 1);
  }

  /// Whether that is so for the two modes of the fibres in every sweep that names the next mode.
  [[nodiscard]] bool gathers_for_both() const {
    const int next = (s_.split.fibres[0] + 1) % r_.order();
    return next == s_.split.fibres[1] && can_serve(next) &&
           r_.pending.update->most_parts() > static_cast<std::uint64_t>(team());
  }

  /// Whether a gather for the root can serve this mode too.
  [[nodiscard]] bool can_serve(int next) const {
    if (!s_.fibre_position(next)) return false;
    if (s_.tensor_shape.dims[static_cast<std::size_t>(next)] > most_next_rows) return false;
    if (s_.split.fibres.size() > 2 && worth_keeping_products()) return false;  // they serve all of them
    if (cut_fibres() > s_.fibres() / 2) return false;  // most products would go through the memory all the same
    const auto threads = static_cast<std::uint64_t>(team());
    const std::uint64_t table = s_.tensor_shape.dims[static_cast<std::size_t>(next)] * r_.stride() * sizeof(T);
    if (!worth_adding_for_next(static_cast<double>(table), team(), static_cast<double>(s_.fibres()))) return false;
    // What is needed beside, once for all: the products of chunks, and of roots that are cut.
    return r_.workspace.affords(
        next_outputs, table * threads + product_bytes(cut_fibres() + threads * most_fibres()) + needed_later(),
        r_.context);
  }

  /// One gather for the root mode and the next: when the rows of a chunk's roots are complete, the caller makes rows of
  /// the factor from them, and these with the products of the chunk, which are still near, are added to what will be
  /// the output of the next mode, private to every thread.
  void to_root_and_next(RowUpdate<T>& update) {
    const int next = update.next_mode;
    const int threads = team();
    const std::uint64_t stride = r_.stride();
    const std::uint64_t elements = s_.tensor_shape.dims[static_cast<std::size_t>(next)] * stride;
    T* tables = room(next_outputs, elements * sizeof(T) * static_cast<std::uint64_t>(threads));
    const std::uint64_t near = most_fibres() * stride;
    T* near_products = room(chunk_products, near * sizeof(T) * static_cast<std::uint64_t>(threads));
    T* later_products = s_.cut.empty() ? nullptr : room(fibre_products, product_bytes(cut_fibres()));
    std::vector<std::uint64_t> later(s_.cut.size());  // where the products of each begin
    for (std::size_t i = 1; i < later.size(); ++i) later[i] = later[i - 1] + fibres_in(s_.cut[i - 1]) * stride;

    FibreLoop<T> to_next = loop_;
    aim_at(to_next, next);
    to_next.prefetch_output = elements * sizeof(T) >= worth_prefetching;
    for (int m = 0; m < to_next.input_count; ++m) {
      FibreMode<T>& input = to_next.inputs[static_cast<std::size_t>(m)];
      if (input.ids == loop_.output_ids) input = {input.ids, update.factor().data(), false};
    }
    const auto add_chunk = [&](std::uint64_t c, T* products, T* table) {
      FibreLoop<T> loop = to_next;
      loop.products = products;
      loop.first_product = s_.first[c];
      add_products(loop, s_.first[c], s_.first[c + 1], table);
    };
    BoundaryRows<T> sides(r_, s_.cut.size(), false);
    cpu::run_team(threads, [&](int rank, int size) {
      T* table = tables + static_cast<std::uint64_t>(rank) * elements;
      T* mine = near_products + static_cast<std::uint64_t>(rank) * near;
      std::fill_n(table, elements, T{0});
      for_share(rank, size, [&](std::uint64_t c) {
        const bool cut = s_.is_cut(c);
        FibreLoop<T> loop = loop_;
        loop.products = cut ? later_products + later[cut_position(c)] : mine;
        loop.first_product = s_.first[c];
        clear_rows(c);
        gather_fibres(loop, chunk(c), cut ? side_row(sides, c) : r_.out.data());
        if (cut) return;
        give_rows(c, update, static_cast<std::uint64_t>(rank));
        add_chunk(c, mine, table);
      });
    });
    sides.finish();
    give_cut_rows(update, static_cast<std::uint64_t>(threads));
    cpu::run_team(threads, [&](int rank, int size) {
      for_share(rank, size, [&](std::uint64_t c) {
        if (s_.is_cut(c))
          add_chunk(c, later_products + later[cut_position(c)], tables + static_cast<std::uint64_t>(rank) * elements);
      });
    });
    r_.workspace.set_held(next_outputs, all_but(next), team_maker(), r_.mode);
  }

  /// What to_root_and_next has begun.
  void take_begun_output() {
    const std::uint64_t elements = r_.out.rows() * r_.stride();
    const T* tables = room(next_outputs, elements * sizeof(T) * static_cast<std::uint64_t>(team()));
    std::vector<const T*> all;
    for (int t = 0; t < team(); ++t) all.push_back(tables + static_cast<std::uint64_t>(t) * elements);
    sum_tables<T>(r_, all);
  }

  [[nodiscard]] std::uint64_t fibres_in(std::uint64_t c) const { return s_.first[c + 1] - s_.first[c]; }
  [[nodiscard]] std::uint64_t most_fibres() const {
    std::uint64_t most = 0;
    for (std::uint64_t c = 0; c < s_.chunks(); ++c) most = std::max(most, fibres_in(c));
    return most;
  }
  [[nodiscard]] std::uint64_t cut_fibres() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t c : s_.cut) sum += fibres_in(c);
    return sum;
  }
  [[nodiscard]] std::vector<int> all_but(int mode) const {
    std::vector<int> modes;
    for (int m = 0; m < r_.order(); ++m)
      if (m != mode) modes.push_back(m);
    return modes;
  }
  /// Of what threads have each a part of.
  [[nodiscard]] std::array<std::uint64_t, 2> team_maker() const {
    return {maker_[0], maker_[1] | static_cast<std::uint64_t>(team()) << 40U};
  }

  /// Calls f for the chunks of a thread: a fixed share, about as many nonzeros for each.
  template <class F>
  void for_share(int rank, int size, const F& f) const {
    const cpu::Share share = cpu::share_of(r_.nnz(), rank, size);
    const auto from = [&](std::uint64_t z) {
      return static_cast<std::uint64_t>(std::ranges::lower_bound(s_.begin, z) - s_.begin.begin());
    };
    const std::uint64_t end = std::min(from(share.end), s_.chunks());
    for (std::uint64_t c = from(share.begin); c < end; ++c) f(c);
  }

  /// Rows of the other modes come anywhere. Roots that are cut come last, as in to_root_and_next: the same sums in the
  /// same order, so that it does not show in the result which of the two it was.
  void to_other_fibre_mode() {
    keep_products();
    const int threads = team();
    if (!SharedOutput<T>::affordable(r_, threads, s_.fibres())) return add_by_owner(r_);
    loop_.prefetch_output = r_.out.bytes() >= worth_prefetching;
    const SharedOutput<T> output(r_, threads);
    cpu::run_team(threads, [&](int rank, int size) {
      T* out = output.sink(rank).out;
      for (const bool cut : {false, true})
        for_share(rank, size, [&](std::uint64_t c) {
          if (s_.is_cut(c) == cut) chunk_to(c, out);
        });
    });
    output.finish();
    set_held();
  }

  void chunk_to(std::uint64_t c, T* out) const {
    if (kept_) return add_products(loop_, s_.first[c], s_.first[c + 1], out);
    gather_fibres(loop_, chunk(c), out);
  }

  void set_held() {
    if (loop_.products != nullptr && !kept_) r_.workspace.set_held(fibre_products, s_.split.leaves, maker_);
  }

  void to_leaves(int position) {
    if (s_.leaf_copy) return sum_tiles(r_, *s_.leaf_copy);
    const int threads = team();
    if (!merged()) {
      if (!SharedOutput<T>::affordable(r_, threads, r_.nnz())) return add_by_owner(r_);
      const SharedOutput<T> output(r_, threads);
      cpu::run_team(threads, [&](int rank, int size) { scatter(output.sink(rank).out, rank, size); });
      return output.finish();
    }
    const std::uint64_t bytes = table_bytes() * static_cast<std::uint64_t>(threads);
    if (!r_.workspace.affords(leaf_sums, bytes, r_.context)) return add_by_owner(r_);
    const T* sums = leaf_row_sums(threads);
    fold_to_output(table_of(s_.split.leaves, r_), sums, s_.occupied.span(), position, r_);
  }

  void scatter(T* sums, int rank, int size) const {
    for_share(rank, size, [&](std::uint64_t c) { scatter_fibres(loop_, chunk(c), sums); });
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
    T* rows = room(leaf_table, table_bytes());
    fill_whole_table(table_of(s_.split.leaves, r_), s_.leaf_rows, r_.threads(), rows);
    return rows;
  }

  [[nodiscard]] FibreChunk chunk(std::uint64_t c) const { return {s_.lengths[c], s_.first[c], s_.begin[c]}; }
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
      if (s->ids[0].index() == 2 || s->leaves.index() == 2) return cannot("it reads 16- and 32-bit indices");
      return can(row_cost(q) / 2, s->fibre_position(q.mode) ? "one sum per fibre serves all modes of the fibres"
                                                            : "one product per fibre serves all its leaves");
    },
    run_two_pass<float>,
    run_two_pass<double>};

}  // namespace polyad
