// SPDX-License-Identifier: MIT
#include "formats/hb_csf/hb_csf.hpp"

#include "formats/csf/csf.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include "backends/cpu/threads.hpp"

namespace polyad {

namespace {

enum Group : std::uint8_t { in_coo, in_csl, in_tree, groups };

/// Neighbouring slices of one group.
struct Run {
  std::uint64_t begin;
  std::uint64_t end;
  Group group;
};

/// Slices and nonzeros of each group.
struct Sizes {
  std::array<std::uint64_t, groups> slices = {};
  std::array<std::uint64_t, groups> nonzeros = {};
};

/// Every slice assigned to a group (algorithm 5 of the paper), in parts for the threads. A slice belongs to the part
/// that it begins in.
struct Assignment {
  std::vector<std::vector<Run>> runs;  // [part]
  std::vector<Sizes> before;           // [part + 1] sizes of the parts before; the last is the total

  Assignment(const Buffer<std::uint8_t>& levels, int order, const Context& context)
      : runs(static_cast<std::size_t>(useful_threads(levels.size(), context))), before(runs.size() + 1) {
    cpu::run_team(static_cast<int>(runs.size()), [&](int part, int size) {
      const auto p = static_cast<std::size_t>(part);
      const cpu::Share s = cpu::share_of(levels.size(), part, size);
      for_each_slice(levels, s.begin, s.end, [&](std::uint64_t begin, std::uint64_t end) {
        const bool singletons = std::memchr(levels.data() + begin, order - 1, end - begin) == nullptr;
        const Group group = end - begin == 1 ? in_coo : singletons ? in_csl : in_tree;
        ++before[p + 1].slices[group];
        before[p + 1].nonzeros[group] += end - begin;
        if (!runs[p].empty() && runs[p].back().group == group) {
          runs[p].back().end = end;
        } else {
          runs[p].push_back({begin, end, group});
        }
      });
    });
    for (std::size_t p = 1; p < before.size(); ++p)
      for (std::size_t g = 0; g < groups; ++g) {
        before[p].slices[g] += before[p - 1].slices[g];
        before[p].nonzeros[g] += before[p - 1].nonzeros[g];
      }
  }

  [[nodiscard]] const Sizes& total() const { return before.back(); }

  /// Calls f(begin, end) for the slices that begin in [from, to): those whose first nonzero has level 0.
  template <class F>
  static void for_each_slice(const Buffer<std::uint8_t>& levels, std::uint64_t from, std::uint64_t to, const F& f) {
    const std::uint8_t* all = levels.data();
    const auto next = [&](std::uint64_t at) {
      const void* found = at < levels.size() ? std::memchr(all + at, 0, levels.size() - at) : nullptr;
      return found == nullptr ? levels.size()
                              : static_cast<std::uint64_t>(static_cast<const std::uint8_t*>(found) - all);
    };
    for (std::uint64_t begin = next(from); begin < to;) {
      const std::uint64_t end = next(begin + 1);
      f(begin, end);
      begin = end;
    }
  }

  /// Copies from(z) of every nonzero z to the arrays of the groups (null: not wanted there).
  template <class T, class From>
  void distribute(const From& from, const std::array<T*, groups>& to) const {
    cpu::run_team(static_cast<int>(runs.size()), [&](int part, int) {
      std::array<std::uint64_t, groups> next = before[static_cast<std::size_t>(part)].nonzeros;
      for (const Run& r : runs[static_cast<std::size_t>(part)]) {
        if (to[r.group] != nullptr)
          for (std::uint64_t z = r.begin; z < r.end; ++z) to[r.group][next[r.group] + (z - r.begin)] = from(z);
        next[r.group] += r.end - r.begin;
      }
    });
  }
};

IndexBuffer index_buffer(bool wide, std::uint64_t n, const Context& context) {
  constexpr std::string_view purpose = "the indices of HB-CSF";
  if (wide) return Buffer<std::uint64_t>(context, n, purpose, Paging::plain);
  return Buffer<std::uint32_t>(context, n, purpose, Paging::plain);
}

std::uint64_t size_of(const auto& buffer) {
  return std::visit([](const auto& b) { return static_cast<std::uint64_t>(b.size()); }, buffer);
}

/// The slices of the CSL group. \param root the index of a nonzero at the root
template <class Index, class Root>
void fill_slices(Csl& csl, const Root& root, const Buffer<std::uint8_t>& levels, const Assignment& assigned) {
  std::visit(
      [&]<class Pointer>(Buffer<Pointer>& pointers) {
        Index* ids = typed<Index>(csl.slice_ids);
        cpu::run_team(static_cast<int>(assigned.runs.size()), [&](int part, int) {
          const auto p = static_cast<std::size_t>(part);
          std::uint64_t slice = assigned.before[p].slices[in_csl];
          std::uint64_t z = assigned.before[p].nonzeros[in_csl];
          for (const Run& r : assigned.runs[p]) {
            if (r.group != in_csl) continue;
            Assignment::for_each_slice(levels, r.begin, r.end, [&](std::uint64_t begin, std::uint64_t end) {
              ids[slice] = root(begin);
              pointers[slice++] = static_cast<Pointer>(z);
              z += end - begin;
            });
          }
        });
        pointers[assigned.total().slices[in_csl]] = static_cast<Pointer>(assigned.total().nonzeros[in_csl]);
      },
      csl.slice_pointers);
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
  radix::Scratch scratch;
  std::optional<SortedNonzeros> sorted(std::in_place, x, h.mode_order, h.mode_order.size(), context, scratch);
  Buffer<std::uint8_t> levels = new_levels(*sorted, context);
  const Assignment assigned(levels, order, context);
  const Sizes& total = assigned.total();

  h.coo = make_coo(x.dims, total.nonzeros[in_coo], x.precision(), context);
  h.csl.slice_ids = index_buffer(wide, total.slices[in_csl], context);
  h.csl.slice_pointers =
      index_buffer(x.nnz() > std::numeric_limits<std::uint32_t>::max(), total.slices[in_csl] + 1, context);
  for (int l = 1; l < order; ++l) h.csl.indices.push_back(index_buffer(wide, total.nonzeros[in_csl], context));
  with_types(h.tensor_shape, [&]<class Index, class Value>() {
    h.csl.values = Buffer<Value>(context, total.nonzeros[in_csl], "the values of HB-CSF", Paging::plain);
    if (total.nonzeros[in_tree] == x.nnz()) return;
    CooTensor rest = make_coo(x.dims, total.nonzeros[in_tree], x.precision(), context);
    sorted->visit([&]<class Nonzeros>(const Nonzeros& nonzeros) {
      if constexpr (std::is_same_v<typename Nonzeros::value_type, Value>) {
        fill_slices<Index>(
            h.csl, [&](std::uint64_t z) { return nonzeros.template index<Index>(0, z); }, levels, assigned);
        for (std::size_t l = 0; l < h.mode_order.size(); ++l) {
          const auto m = static_cast<std::size_t>(h.mode_order[l]);
          assigned.distribute<Index>(
              [&](std::uint64_t z) { return nonzeros.template index<Index>(l, z); },
              {typed<Index>(h.coo.indices[m]), l == 0 ? nullptr : typed<Index>(h.csl.indices[l - 1]),
               typed<Index>(rest.indices[m])});
        }
        assigned.distribute<Value>([&](std::uint64_t z) { return nonzeros.value(z); },
                                   {typed<Value>(h.coo.values), typed<Value>(h.csl.values), typed<Value>(rest.values)});
      }
    });
    Buffer<std::uint8_t> rest_levels(context, rest.nnz(), "the levels where nonzeros begin", Paging::plain);
    assigned.distribute<std::uint8_t>([&](std::uint64_t z) { return levels[z]; },
                                      {nullptr, nullptr, rest_levels.data()});
    sorted.emplace(std::move(rest), h.mode_order);
    scratch = {};
    levels = std::move(rest_levels);
  });
  split_fibres(levels, order, threshold_of(options), context);
  h.tree = grow_tree(*sorted, h.tensor_shape, levels, context);
  h.bins = bins_of(h.tree, context);
  return h;
}

namespace {

/// Which group a slice goes to depends on all its fibres, so the coordinates are sorted as for building.
StoragePrediction predict_hb_csf(const CooTensor& x, const TensorStatistics&, const FormatOptions& options,
                                 const Context& context) {
  const int order = x.order();
  const std::vector<int> modes = modes_with_root(x.dims, options.mode.value());
  radix::Scratch scratch;
  const Buffer<std::uint8_t> levels = new_levels(SortedNonzeros(x, modes, modes.size(), context, scratch), context);
  const Assignment assigned(levels, order, context);
  const Sizes& total = assigned.total();
  Buffer<std::uint8_t> rest(context, total.nonzeros[in_tree], "the levels where nonzeros begin", Paging::plain);
  assigned.distribute<std::uint8_t>([&](std::uint64_t z) { return levels[z]; }, {nullptr, nullptr, rest.data()});
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
    predict_hb_csf,
    [](const EstimateRequest& q) {
      return estimate_like_csf_all(q, 1.04, 40, "as csf-all, sparse slices as coordinates");
    }};

}  // namespace polyad
