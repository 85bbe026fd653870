// SPDX-License-Identifier: MIT
#include "formats/hb_csf/hb_csf.hpp"

#include <algorithm>
#include <limits>

#include "backends/cpu/threads.hpp"

namespace polyad {

namespace {

enum Group : std::uint8_t { in_coo, in_csl, in_tree, groups };

/// Calls f(begin, end, group) for the slices that begin in [from, to), in order (algorithm 5 of the paper).
template <class F>
void for_each_slice(const Buffer<std::uint8_t>& levels, int order, std::uint64_t from, std::uint64_t to, const F& f) {
  const std::uint64_t n = levels.size();
  const auto leaf = static_cast<std::uint8_t>(order - 1);
  std::uint64_t begin = from;
  while (begin < to && levels[begin] != 0) ++begin;
  while (begin < to) {
    std::uint64_t end = begin + 1;
    bool singletons = true;
    for (; end < n && levels[end] != 0; ++end) singletons &= levels[end] != leaf;
    f(begin, end, end - begin == 1 ? in_coo : singletons ? in_csl : in_tree);
    begin = end;
  }
}

/// Slices and nonzeros of each group.
struct Sizes {
  std::array<std::uint64_t, groups> slices = {};
  std::array<std::uint64_t, groups> nonzeros = {};
};

/// Where each part of the nonzeros begins in each group; the last element is the total. A slice belongs to the part
/// that it begins in.
std::vector<Sizes> offsets(const Buffer<std::uint8_t>& levels, int order, const Context& context) {
  const int parts = useful_threads(levels.size(), context);
  std::vector<Sizes> at(static_cast<std::size_t>(parts) + 1);
  cpu::run_team(parts, [&](int part, int size) {
    const cpu::Share s = cpu::share_of(levels.size(), part, size);
    Sizes mine;
    for_each_slice(levels, order, s.begin, s.end, [&](std::uint64_t b, std::uint64_t e, Group g) {
      ++mine.slices[g];
      mine.nonzeros[g] += e - b;
    });
    at[static_cast<std::size_t>(part) + 1] = mine;
  });
  for (std::size_t p = 1; p < at.size(); ++p)
    for (std::size_t g = 0; g < groups; ++g) {
      at[p].slices[g] += at[p - 1].slices[g];
      at[p].nonzeros[g] += at[p - 1].nonzeros[g];
    }
  return at;
}

IndexBuffer index_buffer(bool wide, std::uint64_t n, const Context& context) {
  constexpr std::string_view purpose = "the indices of HB-CSF";
  if (wide) return Buffer<std::uint64_t>(context, n, purpose, Paging::plain);
  return Buffer<std::uint32_t>(context, n, purpose, Paging::plain);
}

std::uint64_t size_of(const auto& buffer) {
  return std::visit([](const auto& b) { return static_cast<std::uint64_t>(b.size()); }, buffer);
}

std::uint64_t bytes_in(const auto& buffer) {
  return std::visit([](const auto& b) { return static_cast<std::uint64_t>(b.bytes()); }, buffer);
}

/// Copies the nonzeros of one array to the arrays of the three groups.
template <class T>
void distribute(const T* from, const std::array<T*, groups>& to, const Buffer<std::uint8_t>& levels, int order,
                const std::vector<Sizes>& at) {
  cpu::run_team(static_cast<int>(at.size()) - 1, [&](int part, int size) {
    const cpu::Share s = cpu::share_of(levels.size(), part, size);
    std::array<std::uint64_t, groups> next = at[static_cast<std::size_t>(part)].nonzeros;
    for_each_slice(levels, order, s.begin, s.end, [&](std::uint64_t b, std::uint64_t e, Group g) {
      if (to[g] != nullptr) std::copy(from + b, from + e, to[g] + next[g]);
      next[g] += e - b;
    });
  });
}

/// The slices of the CSL group.
void fill_slices(Csl& csl, const IndexBuffer& roots, const Buffer<std::uint8_t>& levels, int order,
                 const std::vector<Sizes>& at) {
  std::visit(
      [&]<class Index, class Pointer>(const Buffer<Index>& root, Buffer<Pointer>& pointers) {
        Index* ids = typed<Index>(csl.slice_ids);
        cpu::run_team(static_cast<int>(at.size()) - 1, [&](int part, int size) {
          const cpu::Share s = cpu::share_of(levels.size(), part, size);
          std::uint64_t slice = at[static_cast<std::size_t>(part)].slices[in_csl];
          std::uint64_t z = at[static_cast<std::size_t>(part)].nonzeros[in_csl];
          for_each_slice(levels, order, s.begin, s.end, [&](std::uint64_t b, std::uint64_t e, Group g) {
            if (g != in_csl) return;
            ids[slice] = root[b];
            pointers[slice++] = static_cast<Pointer>(z);
            z += e - b;
          });
        });
        pointers[at.back().slices[in_csl]] = static_cast<Pointer>(at.back().nonzeros[in_csl]);
      },
      roots, csl.slice_pointers);
}

}  // namespace

std::uint64_t Csl::slices() const { return size_of(slice_ids); }
std::uint64_t Csl::nnz() const { return size_of(values); }
std::uint64_t Csl::bytes() const {
  std::uint64_t sum = bytes_in(slice_ids) + bytes_in(slice_pointers) + bytes_in(values);
  for (const IndexBuffer& b : indices) sum += bytes_in(b);
  return sum;
}

HbCsf HbCsf::build(const CooTensor& x, const FormatOptions& options, const Context& context) {
  HbCsf h;
  h.tensor_shape = shape_of(x);
  h.mode_order = modes_with_root(x.dims, options.mode.value());
  const int order = x.order();
  const bool wide = h.tensor_shape.index_width() == IndexWidth::u64;
  CooTensor sorted = sorted_for_tree(x, h.mode_order, context);
  const Buffer<std::uint8_t> levels = new_levels(sorted, h.mode_order, context);
  const std::vector<Sizes> at = offsets(levels, order, context);
  const Sizes& total = at.back();

  h.coo = make_coo(x.dims, total.nonzeros[in_coo], x.precision(), context);
  h.csl.slice_ids = index_buffer(wide, total.slices[in_csl], context);
  h.csl.slice_pointers =
      index_buffer(x.nnz() > std::numeric_limits<std::uint32_t>::max(), total.slices[in_csl] + 1, context);
  fill_slices(h.csl, sorted.indices[static_cast<std::size_t>(h.mode_order[0])], levels, order, at);

  CooTensor rest = make_coo(x.dims, total.nonzeros[in_tree], x.precision(), context);
  for (std::size_t l = 0; l < h.mode_order.size(); ++l) {
    const auto m = static_cast<std::size_t>(h.mode_order[l]);
    if (l > 0) h.csl.indices.push_back(index_buffer(wide, total.nonzeros[in_csl], context));
    std::visit(
        [&]<class Index>(Buffer<Index>& from) {
          distribute(from.data(),
                     {typed<Index>(h.coo.indices[m]), l == 0 ? nullptr : typed<Index>(h.csl.indices.back()),
                      typed<Index>(rest.indices[m])},
                     levels, order, at);
          from = Buffer<Index>();
        },
        sorted.indices[m]);
  }
  std::visit(
      [&]<class Value>(Buffer<Value>& from) {
        h.csl.values = Buffer<Value>(context, total.nonzeros[in_csl], "the values of HB-CSF", Paging::plain);
        distribute(from.data(), {typed<Value>(h.coo.values), typed<Value>(h.csl.values), typed<Value>(rest.values)},
                   levels, order, at);
        from = Buffer<Value>();
      },
      sorted.values);
  Buffer<std::uint8_t> rest_levels(context, total.nonzeros[in_tree], "the levels where nonzeros begin", Paging::plain);
  distribute<std::uint8_t>(levels.data(), {nullptr, nullptr, rest_levels.data()}, levels, order, at);
  split_fibres(rest_levels, order, threshold_of(options), context);
  h.tree = grow_tree(std::move(rest), h.mode_order, rest_levels, context);
  h.bins = bins_of(h.tree, context);
  return h;
}

namespace {

/// Which group a slice goes to depends on all its fibres, so the coordinates are sorted as for building.
StoragePrediction predict(const CooTensor& x, const TensorStatistics&, const FormatOptions& options,
                          const Context& context) {
  const int order = x.order();
  const std::vector<int> modes = modes_with_root(x.dims, options.mode.value());
  const CooTensor sorted = sorted_for_tree(x, modes, context);
  const Buffer<std::uint8_t> levels = new_levels(sorted, modes, context);
  const std::vector<Sizes> at = offsets(levels, order, context);
  const Sizes& total = at.back();
  Buffer<std::uint8_t> rest(context, total.nonzeros[in_tree], "the levels where nonzeros begin", Paging::plain);
  distribute<std::uint8_t>(levels.data(), {nullptr, nullptr, rest.data()}, levels, order, at);
  split_fibres(rest, order, threshold_of(options), context);
  std::uint64_t inner = 0;
  const std::vector<std::uint64_t> nodes = count_nodes(rest, order, context);
  for (std::size_t l = 0; l + 1 < nodes.size(); ++l) inner += nodes[l];
  const auto n = static_cast<std::uint64_t>(order);
  const std::uint64_t slices = total.slices[in_csl];
  const std::uint64_t indices =
      n * total.nonzeros[in_coo] + (n - 1) * total.nonzeros[in_csl] + total.nonzeros[in_tree] + slices + inner;
  const std::uint64_t pointers = slices + inner;
  const std::uint64_t pointer_bytes = x.nnz() <= std::numeric_limits<std::uint32_t>::max() ? 4 : 8;
  const std::uint64_t bins = (total.nonzeros[in_tree] + bin_nonzeros - 1) / bin_nonzeros;
  const std::uint64_t bytes = indices * bytes_of(width_for(x.dims)) + (pointers + n) * pointer_bytes +
                              (2 * bins + 1) * sizeof(std::uint64_t) + x.nnz() * bytes_of(x.precision());
  return {static_cast<double>(indices + pointers),
          static_cast<double>(bytes),
          "COO: N*nnz; CSL: 2S + (N-1)*nnz; B-CSF: nnz + sum over inner levels of 2*nodes",
          {}};
}

}  // namespace

extern const FormatClass hb_csf_format;
const FormatClass hb_csf_format = {
    {{"hb-csf", "hybrid balanced CSF: single nonzeros as COO, slices of singleton fibres as CSL, the rest as B-CSF"},
     "Nisa et al., IPDPS 2019, section V",
     true,
     "very sparse slices next to heavy ones; at order 3 never more index words than COO"},
    [](const CooTensor& x, const FormatOptions& options, const Context& context) {
      return erased(hb_csf_format, options, HbCsf::build(x, options, context));
    },
    predict};

}  // namespace polyad
