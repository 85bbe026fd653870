// SPDX-License-Identifier: MIT
#include "formats/csf/csf.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

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
  // Every order is that by length with another mode at the root, so one sort by all modes and sorts by one mode do.
  const std::vector<std::vector<int>> orders = mode_orders(x.dims, which);
  const std::vector<int> by_length = modes_by_length(x.dims);
  radix::Scratch scratch;
  radix::Scratch other_scratch;
  const SortedNonzeros first(x, by_length, by_length.size(), context, scratch);
  const auto grow = [&](const SortedNonzeros& sorted) {
    return grow_tree(sorted, csf.tensor_shape, new_levels(sorted, context), context);
  };
  for (const std::vector<int>& order : orders)
    csf.trees.push_back(order == by_length ? grow(first)
                                           : grow(SortedNonzeros(first, order[0], context, other_scratch)));
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

/// Nodes of a level above the fibres: at most as many as there are fibres, and as many as its indices allow.
double most_nodes(const EstimateRequest& q, std::span<const int> prefix, double fibres) {
  double tuples = 1;
  for (const int m : prefix) tuples *= std::max(1.0, q.sample.dim(m));
  return std::min(tuples, fibres);
}

/// One tree as root: every leaf reads a row, every fibre another and ends a loop of its own.
double root_ns(const EstimateRequest& q, const std::vector<int>& order) {
  const double nnz = q.sample.nnz();
  const double fibres = q.sample.fibres(order.back());
  // The ends of fibres of many lengths surprise the branch predictor (about 5 ns), those of single nonzeros do not.
  double ns = nnz * (0.35 + q.reading(order.back())) + fibres * (1.2 + 5 * (1 - fibres / std::max(1.0, nnz)));
  for (std::size_t l = 1; l + 1 < order.size(); ++l)
    ns += most_nodes(q, std::span(order).first(l + 1), fibres) * (q.reading(order[l]) + 0.5);
  return ns;
}

SweepEstimate estimate(const EstimateRequest& q, Csf::Trees which) {
  SweepEstimate e;
  const std::vector<std::vector<int>> trees = Csf::mode_orders(q.sample.tensor().dims, which);
  const double leaves = static_cast<double>(trees.size()) * q.sample.nnz() * (q.index_bytes() + q.value_bytes());
  if (leaves > q.most_bytes) {  // without counting nodes
    e.bytes = leaves;
    return e;
  }
  for (const std::vector<int>& order : trees) {
    e.bytes += q.sample.nnz() * (q.index_bytes() + q.value_bytes());
    for (std::size_t l = 0; l + 1 < order.size(); ++l)
      e.bytes += most_nodes(q, std::span(order).first(l + 1), q.sample.fibres(order.back())) * (q.index_bytes() + 4);
    e.build_ns += (trees.size() == 1 ? 30 : 22) * q.sample.nnz();
  }
  for (int mode = 0; mode < q.sample.order(); ++mode) {
    double best = std::numeric_limits<double>::infinity();
    for (const std::vector<int>& order : trees) {
      const auto level = static_cast<std::size_t>(std::ranges::find(order, mode) - order.begin());
      double ns = root_ns(q, order) + (level == 0 ? stored_output_ns(q, mode) : shared_output_ns(q, mode));
      // Below the root a row is added to at every node.
      const double adds = level == 0 ? 0
                          : level + 1 == order.size()
                              ? q.sample.nnz()
                              : most_nodes(q, std::span(order).first(level + 1), q.sample.fibres(order.back()));
      ns += 1.3 * adds * q.adding(mode);
      best = std::min(best, ns);
    }
    e.ns += best;
  }
  e.build_bytes = bytes_from_sorted(q, e.bytes, trees.size() == 1 ? 1 : 2);
  e.deterministic = which == Csf::Trees::all;
  double longest = 0;
  for (int m = 0; m < q.sample.order(); ++m) longest = std::max(longest, q.sample.nnz() / q.sample.fibres(m));
  e.why = fmt::format("one pass per mode; up to {:.1f} nonzeros per fibre share its row", longest);
  return e;
}

constexpr std::string_view paper = "Smith and Karypis, IA^3 2015; Nisa et al., IPDPS 2019, section III.B";

}  // namespace

SweepEstimate estimate_like_csf_all(const EstimateRequest& q, double sweeps, double build_ns, std::string why) {
  SweepEstimate e = estimate(q, Csf::Trees::all);
  e.ns *= sweeps;
  e.build_ns = build_ns * q.sample.nnz() * q.sample.order();
  e.why = std::move(why);
  return e;
}

extern const FormatClass csf_one_format;
const FormatClass csf_one_format = {{{"csf-one", "compressed sparse fibres: one tree, the shortest mode at the root"},
                                     paper,
                                     false,
                                     "least memory of the trees; long fibres"},
                                    [](const CooTensor& x, const FormatOptions& options, const Context& context) {
                                      return erased(csf_one_format, options, Csf::build(x, Csf::Trees::one, context));
                                    },
                                    [](const CooTensor& x, const TensorStatistics&, const FormatOptions&,
                                       const Context& context) { return predict(x, Csf::Trees::one, context); },
                                    [](const EstimateRequest& q) { return estimate(q, Csf::Trees::one); }};

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
    },
    [](const EstimateRequest& q) { return estimate(q, Csf::Trees::two); }};

extern const FormatClass csf_all_format;
const FormatClass csf_all_format = {{{"csf-all", "compressed sparse fibres: one tree per mode, with it at the root"},
                                     paper,
                                     false,
                                     "fast in every mode"},
                                    [](const CooTensor& x, const FormatOptions& options, const Context& context) {
                                      return erased(csf_all_format, options, Csf::build(x, Csf::Trees::all, context));
                                    },
                                    [](const CooTensor& x, const TensorStatistics&, const FormatOptions&,
                                       const Context& context) { return predict(x, Csf::Trees::all, context); },
                                    [](const EstimateRequest& q) { return estimate(q, Csf::Trees::all); }};

}  // namespace polyad
