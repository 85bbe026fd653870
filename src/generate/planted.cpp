// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/cpu/threads.hpp"
#include "core/counted.hpp"
#include "generate/bijection.hpp"
#include "generate/cells.hpp"
#include "generate/portable_math.hpp"
#include "generate/random.hpp"
#include "generate/shape.hpp"
#include "generate/supports.hpp"
#include "polyad/error.hpp"
#include "polyad/generate.hpp"

namespace polyad {

namespace {

using namespace synthetic;
using portable::Key;
using portable::Random;

/// Where each component is not zero: supports[r][m] are indices of mode m, ascending.
using Supports = std::vector<std::vector<std::vector<std::uint64_t>>>;

/// Number of cells of a component.
std::uint64_t cells_of(const std::vector<std::vector<std::uint64_t>>& supports) {
  std::uint64_t cells = 1;
  for (const std::vector<std::uint64_t>& support : supports) cells *= support.size();
  return cells;
}

Supports draw_supports(const GenerateOptions& options, std::uint64_t rank, std::uint64_t seed) {
  const std::size_t order = options.dims.size();
  const std::vector<std::uint64_t> active = active_lengths(options.dims, options.nnz, rank);
  double left = block_cells(active, options.nnz, rank) * static_cast<double>(rank);
  Supports supports(rank, std::vector<std::vector<std::uint64_t>>(order));
  for (std::uint64_t r = 0; r < rank; ++r) {
    // Products of small whole numbers miss their aim: what one component has too many, the others have fewer.
    const std::vector<std::uint64_t> sizes = support_sizes(active, left / static_cast<double>(rank - r));
    for (std::size_t m = 0; m < order; ++m) {
      std::vector<std::uint64_t>& support = supports[r][m];
      const portable::Bijection choice(active[m], Key(seed, "planted/support", r * max_order + m));
      const portable::Bijection index(options.dims[m], Key(seed, "planted/active", m));
      for (std::uint64_t i = 0; i < sizes[m]; ++i) support.push_back(index(choice(i)));
      std::sort(support.begin(), support.end());
      if (r == 0) support.back() = options.dims[m] - 1;  // the last index of every mode occurs
    }
    left -= static_cast<double>(cells_of(supports[r]));
  }
  return supports;
}

/// Columns of norm 1 on the supports. Entries 0.2 + 1.8 u^2 before scaling: spread enough that two columns on the same
/// support have a cosine of 0.7 or so (uniform on [0.5, 1.5]: 0.92), which over three modes tells components apart even
/// when the supports are all indices. Weights from sqrt(cells) to 2 sqrt(cells), so that values are about 1,
/// descending.
CpModel draw_model(const GenerateOptions& options, const Supports& supports, std::uint64_t seed) {
  const std::uint64_t rank = supports.size();
  CpModel model;
  for (std::size_t m = 0; m < options.dims.size(); ++m) {
    Matrix& a = model.factors.emplace_back(options.dims[m], rank);
    for (std::uint64_t r = 0; r < rank; ++r) {
      Random random(Key(seed, "planted/column", m), r);
      double squares = 0;
      for (const std::uint64_t i : supports[r][m]) {
        const double u = random.uniform();
        a(i, r) = 0.2 + 1.8 * (u * u);
        squares += a(i, r) * a(i, r);
      }
      const double norm = std::sqrt(squares);
      for (const std::uint64_t i : supports[r][m]) a(i, r) /= norm;
    }
  }
  double cells = 0;
  for (const auto& component : supports) cells += static_cast<double>(cells_of(component)) / static_cast<double>(rank);
  for (std::uint64_t r = 0; r < rank; ++r)
    model.weights.push_back(std::sqrt(cells) * (2 - static_cast<double>(r) / static_cast<double>(rank)));
  return model;
}

/// The model at coordinates: sum_r weights[r] * prod_m factors[m](i_m, r).
class Evaluator {
 public:
  explicit Evaluator(const CpModel& model) : model_(model), products_(model.rank()) {}

  template <class IndexOf>
  double operator()(const IndexOf& index_of) {
    std::copy(model_.weights.begin(), model_.weights.end(), products_.begin());
    const std::size_t rank = products_.size();
    for (std::size_t m = 0; m < model_.factors.size(); ++m) {
      const double* row = model_.factors[m].values.data() + index_of(m) * rank;
      for (std::size_t r = 0; r < rank; ++r) products_[r] *= row[r];
    }
    double sum = 0;
    for (const double p : products_) sum += p;
    return sum;
  }

 private:
  const CpModel& model_;
  std::vector<double> products_;
};

/// The cells of all components as a set, from a list that has a cell once per component that covers it.
CooTensor list_cells(const GenerateOptions& options, const Supports& supports, const Context& context) {
  std::uint64_t listed = 0;
  for (const auto& component : supports) listed += cells_of(component);
  CooTensor x = make_coo(options.dims, listed, Precision::f32, context);
  visit(x, [&]<class Index, class Value>(const CooView<Index, Value>& v) {
    std::uint64_t before = 0;
    for (const auto& component : supports) {
      std::vector<std::uint64_t> sizes;
      for (const std::vector<std::uint64_t>& support : component) sizes.push_back(support.size());
      const std::uint64_t cells = cells_of(component);
      cpu::parallel_ranges(context.thread_count(), cells, [&](std::uint64_t begin, std::uint64_t end) {
        for_each_cell(sizes, begin, end, [&](std::uint64_t cell, std::span<const std::uint64_t> at) {
          for (std::size_t m = 0; m < at.size(); ++m)
            v.indices[m][before + cell] = static_cast<Index>(component[m][at[m]]);
        });
      });
      before += cells;
    }
  });
  make_set(x, context);
  return x;
}

/// The same set by looking at every cell: when components overlap much, the list above would be many times the tensor.
CooTensor scan_cells(const GenerateOptions& options, const CpModel& model, const Context& context) {
  const std::uint64_t cells = cell_count(options.dims);
  const int threads = context.thread_count();
  std::vector<std::uint64_t> begins(static_cast<std::size_t>(threads) + 1);
  const auto for_each_nonzero = [&](int rank, int size, const auto& f) {
    Evaluator value(model);
    const cpu::Share s = cpu::share_of(cells, rank, size);
    for_each_cell(options.dims, s.begin, s.end, [&](std::uint64_t, std::span<const std::uint64_t> at) {
      if (value([&](std::size_t m) { return at[m]; }) > 0) f(at);
    });
  };
  cpu::run_team(threads, [&](int rank, int size) {
    std::uint64_t n = 0;
    for_each_nonzero(rank, size, [&](std::span<const std::uint64_t>) { ++n; });
    begins[static_cast<std::size_t>(rank) + 1] = n;
  });
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  CooTensor x = make_coo(options.dims, begins.back(), Precision::f32, context);
  visit(x, [&]<class Index, class Value>(const CooView<Index, Value>& v) {
    cpu::run_team(threads, [&](int rank, int size) {
      std::uint64_t k = begins[static_cast<std::size_t>(rank)];
      for_each_nonzero(rank, size, [&](std::span<const std::uint64_t> at) {
        for (std::size_t m = 0; m < at.size(); ++m) v.indices[m][k] = static_cast<Index>(at[m]);
        ++k;
      });
    });
  });
  return x;
}

/// Root mean square; sums of fixed pieces, so that the number of threads does not show.
template <class Value>
double root_mean_square(const Buffer<Value>& values, int threads) {
  constexpr std::uint64_t piece = 4096;
  std::vector<double> sums((values.size() + piece - 1) / piece);
  const auto add = [&](std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t p = begin; p < end; ++p)
      for (std::uint64_t k = p * piece; k < std::min<std::uint64_t>(values.size(), (p + 1) * piece); ++k)
        sums[p] += static_cast<double>(values[k]) * static_cast<double>(values[k]);
  };
  cpu::parallel_ranges(threads, sums.size(), add, 16);
  return std::sqrt(std::accumulate(sums.begin(), sums.end(), 0.0) / static_cast<double>(values.size()));
}

/// Gives every stored coordinate the value of the model there, plus noise.
template <class Value>
void evaluate(CooTensor& x, const CpModel& model, double noise, const Context& context) {
  const int threads = context.thread_count();
  Buffer<Value> values(context, x.nnz(), "values of the planted model");
  visit(x, [&](const auto& v) {
    cpu::parallel_ranges(threads, v.nnz, [&](std::uint64_t begin, std::uint64_t end) {
      Evaluator value(model);
      for (std::uint64_t k = begin; k < end; ++k)
        values[k] =
            static_cast<Value>(value([&](std::size_t m) { return static_cast<std::uint64_t>(v.indices[m][k]); }));
    });
  });
  if (noise > 0) {
    const double deviation = noise * root_mean_square(values, threads);
    const Key key(context.seed, "planted/noise");
    cpu::parallel_ranges(threads, values.size(), [&](std::uint64_t begin, std::uint64_t end) {
      Random random(key);
      random.seek(begin);
      for (std::uint64_t k = begin; k < end; ++k) {
        const double u = static_cast<double>(random.next() >> 12U) * 0x1.0p-52 + 0x1.0p-53;  // neither 0 nor 1
        values[k] = static_cast<Value>(static_cast<double>(values[k]) + deviation * portable::normal_quantile(u));
      }
    });
  }
  x.values = std::move(values);
}

}  // namespace

Planted generate_planted(const GenerateOptions& given, std::uint64_t rank, double noise, const Context& context) {
  const GenerateOptions options = completed(given);
  if (rank < 1) throw usage_error("rank is 0; expected at least 1");
  if (options.nnz < rank)
    throw usage_error(
        fmt::format("{} nonzeros for a planted rank of {}; expected at least one per component", options.nnz, rank));
  constexpr double most = 1e6;  // beyond that nothing of the model is left, and f32 soon overflows
  if (!(noise >= 0 && noise <= most))
    throw usage_error(fmt::format("noise is {}; expected a number from 0 to {}", noise, most));
  const auto is_above = [](double least) { return [least](double v) { return v > least; }; };
  if (std::ranges::any_of(options.skew, is_above(0)) || options.burst > 1 ||
      std::ranges::any_of(options.widths, is_above(1)))
    throw usage_error("skew, burst and widths have no meaning for a planted model");

  const auto rows = std::accumulate(options.dims.begin(), options.dims.end(), 0.0,
                                    [](double sum, std::uint64_t d) { return sum + static_cast<double>(d); });
  const double bytes = rows * static_cast<double>(rank) * sizeof(double);
  const Counted counted(context, bytes < 0x1.0p62 ? static_cast<std::uint64_t>(bytes) : std::uint64_t{1} << 62U,
                        "the factors of the planted model");
  if (bytes > 0x1.0p47)
    throw Error(ErrorKind::limit, fmt::format("the factors of the planted model need {:.3g} bytes", bytes));

  context.report({"generating", 0, options.nnz, "nonzeros"});
  const Supports supports = draw_supports(options, rank, context.seed);
  Planted result;
  result.truth = draw_model(options, supports, context.seed);
  double listed = 0;
  for (const auto& component : supports) listed += static_cast<double>(cells_of(component));
  const bool is_dense = listed > 0.75 * static_cast<double>(cell_count(options.dims));
  result.tensor = is_dense ? scan_cells(options, result.truth, context) : list_cells(options, supports, context);
  CooTensor& x = result.tensor;
  if (options.precision == Precision::f32) {
    evaluate<float>(x, result.truth, noise, context);
  } else {
    evaluate<double>(x, result.truth, noise, context);
  }
  x.sorted_by.resize(options.dims.size());
  std::iota(x.sorted_by.begin(), x.sorted_by.end(), 0);
  x.duplicates_merged = true;
  context.report({"generating", x.nnz(), x.nnz(), "nonzeros"});
  return result;
}

}  // namespace polyad
