// SPDX-License-Identifier: MIT
#include "formats/csf/csf.hpp"

#include "core/group_sizes.hpp"

namespace polyad {

std::vector<std::vector<int>> Csf::mode_orders(std::span<const std::uint64_t> dims, Trees which) {
  std::vector<std::vector<int>> orders;
  if (which == Trees::all) {
    for (int m = 0; m < static_cast<int>(dims.size()); ++m) orders.push_back(modes_with_root(dims, m));
    return orders;
  }
  orders.push_back(modes_by_length(dims));
  if (which == Trees::two) orders.push_back(modes_with_root(dims, orders[0].back()));
  return orders;
}

Csf Csf::build(const CooTensor& x, Trees which, const Context& context) {
  Csf csf;
  csf.tensor_shape = shape_of(x);
  radix::Scratch scratch;
  for (const std::vector<int>& order : mode_orders(x.dims, which))
    csf.trees.push_back(build_tree(x, order, context, &scratch));
  return csf;
}

std::uint64_t Csf::bytes() const {
  std::uint64_t sum = 0;
  for (const FibreTree& t : trees) sum += t.bytes();
  return sum;
}

std::uint64_t Csf::words() const {
  std::uint64_t sum = 0;
  for (const FibreTree& t : trees) sum += t.words();
  return sum;
}

std::optional<Csf::Place> Csf::find(int mode, int first, int last) const {
  std::optional<Place> best;
  for (const FibreTree& t : trees)
    for (int l = first; l <= last; ++l)
      if (t.mode_order[static_cast<std::size_t>(l)] == mode && (!best || t.words() < best->tree->words()))
        best = Place{&t, l};
  return best;
}

namespace {

StoragePrediction predict(const CooTensor& x, Csf::Trees which, const Context& context) {
  const GroupCounter counter(x, context);
  StoragePrediction all{
      0, 0, "trees * nnz + sum over trees and inner levels of 2*nodes (N=3: 2S + 2F + nnz a tree)", {}};
  for (const std::vector<int>& order : Csf::mode_orders(x.dims, which)) {
    std::vector<std::uint64_t> nodes;
    for (std::size_t l = 0; l + 1 < order.size(); ++l)
      nodes.push_back(counter.count(std::span(order).first(l + 1)).count);
    nodes.push_back(x.nnz());
    const StoragePrediction one = predict_tree(nodes, x);
    all.words += one.words;
    all.bytes += one.bytes;
  }
  return all;
}

constexpr std::string_view paper = "Smith and Karypis, IA^3 2015; Nisa et al., IPDPS 2019, section III.B";

}  // namespace

extern const FormatClass csf_one_format;
const FormatClass csf_one_format = {{{"csf-one", "compressed sparse fibres: one tree, the shortest mode at the root"},
                                     paper,
                                     false,
                                     "least memory of the trees; long fibres"},
                                    [](const CooTensor& x, const FormatOptions& options, const Context& context) {
                                      return erased(csf_one_format, options, Csf::build(x, Csf::Trees::one, context));
                                    },
                                    [](const CooTensor& x, const TensorStatistics&, const FormatOptions&,
                                       const Context& context) { return predict(x, Csf::Trees::one, context); }};

extern const FormatClass csf_two_format;
const FormatClass csf_two_format = {
    {{"csf-two", "compressed sparse fibres: as csf-one and a tree with the longest mode at the root"},
     paper,
     false,
     "the longest mode without shared outputs"},
    [](const CooTensor& x, const FormatOptions& options, const Context& context) {
      return erased(csf_two_format, options, Csf::build(x, Csf::Trees::two, context));
    },
    [](const CooTensor& x, const TensorStatistics&, const FormatOptions&, const Context& context) {
      return predict(x, Csf::Trees::two, context);
    }};

extern const FormatClass csf_all_format;
const FormatClass csf_all_format = {{{"csf-all", "compressed sparse fibres: one tree per mode, with it at the root"},
                                     paper,
                                     false,
                                     "fast in every mode"},
                                    [](const CooTensor& x, const FormatOptions& options, const Context& context) {
                                      return erased(csf_all_format, options, Csf::build(x, Csf::Trees::all, context));
                                    },
                                    [](const CooTensor& x, const TensorStatistics&, const FormatOptions&,
                                       const Context& context) { return predict(x, Csf::Trees::all, context); }};

}  // namespace polyad
