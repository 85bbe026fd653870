// SPDX-License-Identifier: MIT
/// \file MTTKRP on a copy sorted by the output mode.
#include "formats/copies/copies.hpp"

#include <span>

#include "core/estimate.hpp"
#include "kernels/mttkrp/row_loop.hpp"

namespace polyad {

namespace {

template <class T>
RowLoop<T> loop_over(const MttkrpRequest<T>& r, const SortedCopy& copy) {
  RowLoop<T> l;
  const InputModes input(copy.tensor_shape.dims, copy.mode);
  set_inputs(l, r, copy, input);
  std::uint64_t all_bytes = 0;
  for (const int m : std::span(input.modes).first(static_cast<std::size_t>(input.count))) {
    const std::uint64_t bytes = r.factors[static_cast<std::size_t>(m)].bytes();
    l.prefetched += bytes >= out_of_reach ? 1 : 0;
    l.far_away = l.far_away || bytes >= out_of_caches;
    all_bytes += bytes;
  }
  if (l.index_bytes == 2) l.prefetched = requests_rows(static_cast<double>(all_bytes), r.context) ? l.inputs : 0;
  if (bytes_in(copy.rows) > 0) l.rows = typed<std::uint32_t>(copy.rows);
  if (!copy.by_length.empty()) l.by_length = copy.by_length.data();
  l.begin = &copy.begin;
  l.past_cache = r.out.bytes() >= past_cache_bytes && r.stride() * sizeof(T) % 64 == 0 &&
                 reinterpret_cast<std::uintptr_t>(r.out.data()) % 64 == 0;
  return l;
}

/// The rows that are not between the first and the last of a chunk, so that they are complete only at the end: those
/// two, and empty ones before and after.
class RowsAtEnds {
 public:
  explicit RowsAtEnds(std::uint64_t chunks) : ends_(chunks) {}

  /// A chunk's first and last row.
  void set(std::uint64_t chunk, std::uint64_t first, std::uint64_t last) { ends_[chunk] = {first, last}; }

  template <class T>
  void give_to(RowUpdate<T>& update, std::uint64_t first_part, FactorMatrix<T>& out, int threads) const {
    cpu::for_each_chunk(threads, parts, [&](std::uint64_t part, int) {
      const cpu::Share share = cpu::share_of(ends_.size(), static_cast<int>(part), parts);
      if (share.begin == share.end) return;
      // Before the share: all rows but the last one of the chunk before, unless that is the first one of it too.
      std::uint64_t next = share.begin == 0 ? 0 : after(share.begin - 1);
      for (std::uint64_t c = share.begin; c < share.end; ++c) {
        if (next <= ends_[c].first) update.take(first_part + part, next, ends_[c].first + 1, out.row(next));
        next = after(c);
      }
      if (share.end == ends_.size() && next < out.rows())
        update.take(first_part + part, next, out.rows(), out.row(next));
    });
  }

  /// Parts of the update beside those of the chunks.
  static constexpr int parts = 16;

 private:
  struct Ends {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
  };

  /// The first row that is neither before a chunk, nor in it, but for its last one if it has several.
  [[nodiscard]] std::uint64_t after(std::uint64_t chunk) const {
    return ends_[chunk].last + (ends_[chunk].first == ends_[chunk].last ? 1 : 0);
  }

  std::vector<Ends> ends_;  // [chunks]
};

template <class T>
void sum_all_rows(const MttkrpRequest<T>& r, const SortedCopy& copy) {
  if (r.nnz() == 0) return clear(r.out, r.threads());
  RowLoop<T> all = loop_over(r, copy);
  const std::uint64_t chunks = copy.chunks();
  const ChunkGroups groups(chunks);
  RowUpdate<T>* update = r.pending.take_on(groups.count + RowsAtEnds::parts);
  RowsAtEnds at_ends(chunks);
  const NearRows<T> near(r, update, all.past_cache);
  if (update != nullptr && update->reads_rows()) all.past_cache = false;
  BoundaryRows<T> sides(r, chunks, false);
  groups.for_each(r.threads(), [&](std::uint64_t c, std::uint64_t group, int rank) {
    RowLoop<T> l = all;
    l.begin_nonzero = c * SortedCopy::chunk_nonzeros;
    l.end_nonzero = std::min(r.nnz(), l.begin_nonzero + SortedCopy::chunk_nonzeros);
    l.first_row = copy.ends[c].first_row;
    l.end_row = copy.ends[c].last_row + 1;
    const std::uint64_t first = l.row_at(l.first_row);
    const std::uint64_t last = l.row_at(l.end_row - 1);
    // The chunk before clears or stores the rows up to its last one.
    l.clear_from = c == 0 ? 0 : l.row_at(copy.ends[c - 1].last_row) + 1;
    l.clear_to = c + 1 == chunks ? r.out.rows() : last + 1;
    l.sink = sides.sink(c, first, last);
    at_ends.set(c, first, last);
    T* rows = first + 1 < last ? near.of(rank, last - first - 1) : nullptr;
    if (rows != nullptr) {
      // All but the rows at the ends, and the empty ones before and after, which stay in the output.
      for (std::uint64_t i = l.clear_from; i <= first; ++i) std::fill_n(r.out.row(i), r.stride(), T{0});
      for (std::uint64_t i = last; i < l.clear_to; ++i) std::fill_n(r.out.row(i), r.stride(), T{0});
      l.clear_from = first + 1;
      l.clear_to = last;
      l.sink.out = NearRows<T>::as_if_first(rows, first + 1, r.stride());
    } else if (first + 1 < last) {
      rows = r.out.row(first + 1);
    }
    sum_chunk(l);
    if (update != nullptr && rows != nullptr) update->take(group, first + 1, last, rows);
  });
  sides.finish();
  if (update != nullptr) at_ends.give_to(*update, groups.count, r.out, r.threads());
}

template <class T>
void run_rows(const MttkrpRequest<T>& r) {
  sum_all_rows(r, *get_if<SortedCopy>(r.tensor));
}

}  // namespace

void sum_rows(const MttkrpRequest<float>& r, const SortedCopy& copy) { sum_all_rows(r, copy); }
void sum_rows(const MttkrpRequest<double>& r, const SortedCopy& copy) { sum_all_rows(r, copy); }

extern const MttkrpKernel mttkrp_copies_rows;
const MttkrpKernel mttkrp_copies_rows = {
    {{"mttkrp/copies/rows",
      "a row is summed in registers and stored once; rows that chunks share are added at the end"},
     "mttkrp",
     "copies",
     true},
    [](const MttkrpQuestion& q) {
      const auto* copy = get_if<SortedCopy>(q.tensor);
      if (copy == nullptr) return cannot("it works on copies");
      if (copy->mode != q.mode) return cannot("the tensor was built for another mode");
      if (!sums_rows(*copy)) return cannot("it reads indices of up to 32 bits");
      return can(0.5 * row_cost(q), "sorted by the output mode: every row is stored once");
    },
    run_rows<float>,
    run_rows<double>};

}  // namespace polyad
