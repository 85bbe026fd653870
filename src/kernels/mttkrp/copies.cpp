// SPDX-License-Identifier: MIT
/// \file MTTKRP on a copy sorted by the output mode.
#include "formats/copies/copies.hpp"

#include "kernels/mttkrp/row_loop.hpp"

namespace polyad {

namespace {

/// Factors below this come from the caches as fast as they are used; requesting their rows costs instructions: nell2 at
/// rank 32 (3.7 MB) 1.08 of the time, at rank 64 (7.4 MB) 0.86.
constexpr std::uint64_t out_of_reach = std::uint64_t{4} << 20U;
/// Outputs above this have left the caches before anybody reads them.
constexpr std::uint64_t past_cache_bytes = std::uint64_t{64} << 20U;

template <class T>
RowLoop<T> loop_over(const MttkrpRequest<T>& r, const SortedCopy& copy) {
  RowLoop<T> l;
  std::array<int, max_order> modes = {};
  for (int m = 0; m < r.order(); ++m)
    if (m != copy.mode) modes[static_cast<std::size_t>(l.inputs++)] = m;
  const auto factor = [&](int m) -> const FactorMatrix<T>& { return r.factors[static_cast<std::size_t>(m)]; };
  std::stable_sort(modes.begin(), modes.begin() + l.inputs,
                   [&](int a, int b) { return factor(a).rows() > factor(b).rows(); });
  for (std::size_t i = 0; i < static_cast<std::size_t>(l.inputs); ++i) {
    l.factors[i] = factor(modes[i]).data();
    if (factor(modes[i]).bytes() >= out_of_reach) ++l.prefetched;
    std::visit(
        [&]<class Index>(const Buffer<Index>& indices) {
          l.indices[i] = indices.data();
          l.short_indices = sizeof(Index) == 2;
        },
        copy.indices[static_cast<std::size_t>(modes[i])]);
  }
  if (const auto* same = std::get_if<Buffer<T>>(&copy.values)) {
    l.values = same->data();
  } else {
    l.float_values = typed<float>(copy.values);
  }
  l.rows = typed<std::uint32_t>(copy.rows);
  l.begin = &copy.begin;
  l.stride = r.stride();
  l.past_cache = r.out.bytes() >= past_cache_bytes && r.stride() * sizeof(T) % 64 == 0 &&
                 reinterpret_cast<std::uintptr_t>(r.out.data()) % 64 == 0;
  return l;
}

template <class T>
void sum_all_rows(const MttkrpRequest<T>& r, const SortedCopy& copy) {
  if (r.nnz() == 0) return clear(r.out, r.threads());
  const RowLoop<T> all = loop_over(r, copy);
  const std::uint64_t chunks = copy.chunks();
  BoundaryRows<T> sides(r, chunks, false);
  cpu::for_each_chunk(r.threads(), chunks, [&](std::uint64_t c, int) {
    RowLoop<T> l = all;
    l.begin_nonzero = c * SortedCopy::chunk_nonzeros;
    l.end_nonzero = std::min(r.nnz(), l.begin_nonzero + SortedCopy::chunk_nonzeros);
    l.first_row = copy.begin.group_of(l.begin_nonzero);
    l.end_row = copy.begin.group_after(l.first_row, l.end_nonzero - 1) + 1;
    // The chunk before clears or stores the rows up to its last one.
    l.clear_from = c == 0 ? 0 : std::uint64_t{l.rows[copy.begin.group_of(l.begin_nonzero - 1)]} + 1;
    l.clear_to = c + 1 == chunks ? r.out.rows() : std::uint64_t{l.rows[l.end_row - 1]} + 1;
    l.sink = sides.sink(c, l.rows[l.first_row], l.rows[l.end_row - 1]);
    sum_chunk(l);
  });
  sides.finish();
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
      if (!sums_rows(*copy)) return cannot("it reads 16- and 32-bit indices");
      return can(0.5 * row_cost(q), "sorted by the output mode: every row is stored once");
    },
    run_rows<float>,
    run_rows<double>};

}  // namespace polyad
