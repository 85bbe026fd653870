// SPDX-License-Identifier: MIT
/// \file TTV on the formats that keep the fibres of one mode: HOCSR (Algorithm 4 of Yang, Li and Li 2019), CFB
/// (Algorithm 5) and HOCFS (Algorithm 6). One loop over fibres; the formats differ in how they name them.
#include "formats/cfb/cfb.hpp"
#include "formats/hocfs/hocfs.hpp"
#include "formats/hocsr/hocsr.hpp"
#include "kernels/ttv/fibre_sums.hpp"
#include "kernels/ttv/results.hpp"

namespace polyad {

namespace {

template <class Index, class T>
FibrePiece<Index, T> whole_of(const IndexBuffer& indices, const ValueBuffer& values, const Buffer<T>& vector,
                              CooTensor& y) {
  FibrePiece<Index, T> p;
  p.indices = typed<Index>(indices);
  p.values = typed<T>(values);
  p.vector = vector.data();
  p.vector_length = vector.size();
  p.out = typed<T>(y.values);
  return p;
}

CooTensor run_cfb(const TtvRequest& r) {
  const Cfb& cfb = *get_if<Cfb>(r.tensor);
  CooTensor y = ttv_result(r, cfb.fibres());
  with_types(r.shape(), [&]<class Index, class T>() {
    const Buffer<T> vector = vector_as<T>(r);
    const FibrePath path(cfb.begins, r.shape().nnz);
    path.sum(
        whole_of<Index, T>(cfb.indices, cfb.values, vector, y), r.threads(),
        [&](std::uint64_t first, std::uint64_t end) { cfb.fibre_indices(first, end, index_arrays<Index>(y, first)); });
  });
  return y;
}

/// Algorithm 4 writes to a dense matrix; the result here is sparse, so the rows that are not empty are counted first.
CooTensor run_hocsr(const TtvRequest& r) {
  using Position = FibrePath::Position;
  const Hocsr& h = *get_if<Hocsr>(r.tensor);
  const FibrePath path(h.rows, r.shape().nnz);
  std::vector<std::uint64_t> before(path.pieces() + 1);  // non-empty rows that end before a piece
  cpu::for_each_chunk(r.threads(), path.pieces(), [&](std::uint64_t p, int) {
    const std::uint64_t first = path.begin(p).fibre;
    const std::uint64_t end = path.begin(p + 1).fibre;
    before[p + 1] = h.rows.visit([&](const auto* begins) {
      std::uint32_t count = 0;
      for (std::uint64_t row = first; row < end; ++row) count += begins[row + 1] != begins[row] ? 1 : 0;
      return count;
    });
  });
  for (std::size_t p = 1; p < before.size(); ++p) before[p] += before[p - 1];
  CooTensor y = ttv_result(r, before.back());
  with_types(r.shape(), [&]<class Index, class T>() {
    const Buffer<T> vector = vector_as<T>(r);
    path.sum(
        whole_of<Index, T>(h.indices, h.values, vector, y), r.threads(),
        [&](const Position& from, const Position& to, PieceFibres& rows) {
          h.rows.visit([&](const auto* begins) {
            std::size_t count = 0;  // written for every row and kept for those that are not empty: no branch
            for (std::uint64_t row = from.fibre; row < to.fibre; ++row) {
              rows.numbers[count] = static_cast<std::uint32_t>(row - from.fibre);
              rows.ends[count] = static_cast<std::uint32_t>(begins[row + 1] - from.nonzero);
              count += begins[row + 1] != begins[row] ? 1 : 0;
            }
            rows.count = count;
          });
        },
        [&](std::uint64_t p, const Position&) { return before[p]; },
        [&](const Position& from, const PieceFibres& rows, std::uint64_t at) {
          const std::array<Index*, max_order> out = index_arrays<Index>(y, at);
          RowIndices indices(r.shape().dims, r.mode);
          for (std::size_t i = 0; i < rows.count; ++i) {
            indices.go(from.fibre + rows.numbers[i]);
            for (std::size_t m = 0; m < indices.size(); ++m) out[m][i] = static_cast<Index>(indices[m]);
          }
        });
  });
  return y;
}

CooTensor run_hocfs_csr(const TtvRequest& r) {
  const SortedFibres& s = get_if<HocfsCsr>(r.tensor)->parts;
  CooTensor y = ttv_result(r, s.tree.fibres());
  with_types(r.shape(), [&]<class Index, class T>() {
    const Buffer<T> vector = vector_as<T>(r);
    const FibrePath path(s.begins, r.shape().nnz);
    path.sum(whole_of<Index, T>(s.indices, s.values, vector, y), r.threads(),
             [&](std::uint64_t first, std::uint64_t end) {
               s.tree.fibre_indices(first, end, by_tensor_mode<Index>(y, r.mode, first));
             });
  });
  sort_result(y, s.tree.modes, r.context);
  return y;
}

/// A piece is the groups of rows that begin in a range of `elements_of_piece` padded elements. One group is one
/// thread's: the longest row of a slice, 16 times.
CooTensor run_hocfs_ell(const TtvRequest& r) {
  constexpr std::uint64_t elements_of_piece = 4096;
  const HocfsEll& ell = *get_if<HocfsEll>(r.tensor);
  CooTensor y = ttv_result(r, ell.tree.fibres());
  const std::uint64_t pieces = (ell.elements() + elements_of_piece - 1) / elements_of_piece;
  with_types(r.shape(), [&]<class Index, class T>() {
    const Buffer<T> vector = vector_as<T>(r);
    const auto* indices = typed<Index>(ell.indices);
    const auto* values = typed<T>(ell.values);
    T* out = typed<T>(y.values);
    cpu::for_each_chunk(r.threads(), pieces, [&](std::uint64_t p, int) {
      const std::uint64_t begin = p * elements_of_piece;
      const std::uint64_t end = std::min(begin + elements_of_piece, ell.elements());
      std::uint64_t slice = ell.slice_elements.group_of(begin);
      std::uint64_t group = 0;  // first row of a group
      if (const std::uint64_t into = begin - ell.slice_elements[slice]; into > 0) {
        const std::uint64_t size = HocfsEll::group_rows * ell.row_length(slice);
        group = (into + size - 1) / size * HocfsEll::group_rows;
      }
      const std::uint64_t no_fibre = ~std::uint64_t{0};
      std::uint64_t first_fibre = no_fibre;
      std::uint64_t end_fibre = 0;
      for (; slice < ell.tree.inner_slices(); ++slice, group = 0) {
        const std::uint64_t fibre = ell.tree.first_fibre(slice);
        const std::uint64_t rows = ell.tree.first_fibre(slice + 1) - fibre;
        const std::uint64_t length = ell.row_length(slice);
        const std::uint64_t slice_begin = ell.slice_elements[slice];
        for (; group < rows && slice_begin + group * length < end; group += HocfsEll::group_rows) {
          const std::uint64_t at = slice_begin + group * length;
          sum_rows(EllGroup<Index, T>{indices + at, values + at, vector.data(), vector.size(),
                                      std::min(HocfsEll::group_rows, rows - group), length, out + fibre + group});
          if (first_fibre == no_fibre) first_fibre = fibre + group;
          end_fibre = fibre + std::min(group + HocfsEll::group_rows, rows);
        }
        if (group < rows) break;
      }
      if (first_fibre != no_fibre)
        ell.tree.fibre_indices(first_fibre, end_fibre, by_tensor_mode<Index>(y, r.mode, first_fibre));
    });
  });
  sort_result(y, ell.tree.modes, r.context);
  return y;
}

/// Nanoseconds of a thread for sorting the sums of a middle mode.
double sort_cost(const TtvQuestion& q, std::uint64_t fibres) {
  const bool sorted = q.mode == 0 || q.mode + 1 == q.tensor.shape().order();
  return sorted ? 0 : 15 * static_cast<double>(fibres);
}

}  // namespace

extern const TtvKernel ttv_hocsr_rows;
const TtvKernel ttv_hocsr_rows = {
    {{"ttv/hocsr/rows", "Algorithm 4 of HOCFS: a dot product per row, empty rows left out"}, "ttv", "hocsr", true},
    [](const TtvQuestion& q) {
      const auto* h = get_if<Hocsr>(q.tensor);
      if (h == nullptr) return cannot("it works on hocsr");
      return ask_for_mode(q, "hocsr", h->mode, q.nnz() + static_cast<double>(h->rows.groups()),
                          "rows are dot products, cut into pieces of equal work");
    },
    run_hocsr};

extern const TtvKernel ttv_cfb_fibres;
const TtvKernel ttv_cfb_fibres = {
    {{"ttv/cfb/fibres", "Algorithm 5 of HOCFS: a dot product per non-empty fibre"}, "ttv", "cfb", true},
    [](const TtvQuestion& q) {
      const auto* c = get_if<Cfb>(q.tensor);
      if (c == nullptr) return cannot("it works on cfb");
      return ask_for_mode(q, "cfb", c->mode, q.nnz() + 3 * static_cast<double>(c->fibres()),
                          "fibres are dot products, cut into pieces of equal work");
    },
    run_cfb};

extern const TtvKernel ttv_hocfs_csr_slices;
const TtvKernel ttv_hocfs_csr_slices = {
    {{"ttv/hocfs-csr/slices", "Algorithm 6 of HOCFS: slices times vector, rows in CSR"}, "ttv", "hocfs-csr", true},
    [](const TtvQuestion& q) {
      const auto* h = get_if<HocfsCsr>(q.tensor);
      if (h == nullptr) return cannot("it works on hocfs-csr");
      const std::uint64_t fibres = h->parts.tree.fibres();
      return ask_for_mode(q, "hocfs-csr", h->mode(), q.nnz() + 2 * static_cast<double>(fibres) + sort_cost(q, fibres),
                          "slices are matrices times the vector, cut into pieces of equal work");
    },
    run_hocfs_csr};

extern const TtvKernel ttv_hocfs_ell_slices;
const TtvKernel ttv_hocfs_ell_slices = {
    {{"ttv/hocfs-ell/slices", "Algorithm 6 of HOCFS: slices times vector, rows in ELL, a row per lane"},
     "ttv",
     "hocfs-ell",
     true},
    [](const TtvQuestion& q) {
      const auto* h = get_if<HocfsEll>(q.tensor);
      if (h == nullptr) return cannot("it works on hocfs-ell");
      const std::uint64_t fibres = h->tree.fibres();
      return ask_for_mode(q, "hocfs-ell", h->mode(),
                          static_cast<double>(h->elements() + 2 * fibres) + sort_cost(q, fibres),
                          "a vector register takes an element of 16 neighbouring rows");
    },
    run_hocfs_ell};

}  // namespace polyad
