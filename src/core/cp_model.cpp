// SPDX-License-Identifier: MIT
#include "polyad/cp_model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>

#include "backends/cpu/threads.hpp"
#include "core/column_norms.hpp"
#include "polyad/error.hpp"

namespace polyad {

void check_columns(const CpModel& model) {
  for (std::size_t m = 0; m < model.factors.size(); ++m)
    if (model.factors[m].cols != model.rank())
      throw usage_error(fmt::format("the factor of mode {} has {} columns and the model {} weights", m + 1,
                                    model.factors[m].cols, model.rank()));
}

std::string shape_of(const CpModel& model) {
  std::string text;
  for (const Matrix& a : model.factors) text += fmt::format("{}{}", text.empty() ? "" : " x ", a.rows);
  return text.empty() ? "no modes" : text;
}

namespace {

/// Rows that are summed by themselves: the rounding errors of a sum grow with its length, and threads take turns.
constexpr std::uint64_t block_rows = 1024;

/// Per column, from 0 on: take(part, entry, column) for the entries of every block of rows, on all threads, then
/// add(all, part) in the order of the blocks.
template <class Take, class Add>
std::vector<double> over_columns(const Matrix& a, const Context& context, const Take& take, const Add& add) {
  constexpr std::uint64_t round = 1024;  // blocks at a time: memory does not grow with the rows
  const std::uint64_t blocks = (a.rows + block_rows - 1) / block_rows;
  std::vector<double> all(a.cols);
  std::vector<double> parts(std::min(round, blocks) * a.cols);
  for (std::uint64_t base = 0; base < blocks; base += round) {
    const std::uint64_t some = std::min(round, blocks - base);
    std::ranges::fill(parts, 0.0);
    cpu::parallel_ranges(
        context.thread_count(), some,
        [&](std::uint64_t begin, std::uint64_t end) {
          for (std::uint64_t b = begin; b < end; ++b) {
            double* part = parts.data() + b * a.cols;
            const std::uint64_t last = std::min(a.rows, (base + b + 1) * block_rows);
            for (std::uint64_t i = (base + b) * block_rows; i < last; ++i)
              for (std::uint64_t r = 0; r < a.cols; ++r) take(part[r], a(i, r), r);
          }
        },
        1);
    for (std::uint64_t b = 0; b < some; ++b)
      for (std::uint64_t r = 0; r < a.cols; ++r) add(all[r], parts[b * a.cols + r]);
  }
  return all;
}

}  // namespace

std::vector<ColumnNorm> column_norms(const Matrix& a, const Context& context) {
  const std::vector<double> largest = over_columns(
      a, context, [](double& part, double entry, std::uint64_t) { part = std::max(part, std::abs(entry)); },
      [](double& all, double part) { all = std::max(all, part); });
  std::vector<ColumnNorm> norms(a.cols);
  std::vector<double> scale(a.cols, 1.0);
  for (std::uint64_t r = 0; r < a.cols; ++r)
    if (largest[r] > 0) scale[r] = std::ldexp(1.0, -std::clamp(std::ilogb(largest[r]), -1022, 1022));
  const std::vector<double> squares = over_columns(
      a, context, [&](double& part, double entry, std::uint64_t r) { part += (entry * scale[r]) * (entry * scale[r]); },
      [](double& all, double part) { all += part; });
  for (std::uint64_t r = 0; r < a.cols; ++r) norms[r] = {scale[r], std::sqrt(squares[r])};
  return norms;
}

std::vector<WideNumber> signed_lengths(const CpModel& model, const std::vector<std::vector<ColumnNorm>>& norms) {
  std::vector<WideNumber> lengths(model.rank());
  for (std::uint64_t r = 0; r < model.rank(); ++r) {
    WideNumber& length = lengths[r];
    const auto multiply = [&](double by, int exponent) {
      int own = 0;
      length.mantissa = std::frexp(length.mantissa * by, &own);
      length.exponent += own + exponent;
    };
    int exponent = 0;
    length.mantissa = std::frexp(model.weights[r], &exponent);
    length.exponent = exponent;
    for (const std::vector<ColumnNorm>& mode : norms) multiply(mode[r].norm, -std::ilogb(mode[r].scale));
  }
  return lengths;
}

namespace {

std::vector<std::vector<ColumnNorm>> norms_of(const CpModel& model, const Context& context) {
  std::vector<std::vector<ColumnNorm>> norms;
  for (const Matrix& a : model.factors) norms.push_back(column_norms(a, context));
  return norms;
}

/// A length as a double; infinite when it is none.
double rounded(const WideNumber& length) {
  return std::ldexp(length.mantissa, static_cast<int>(std::clamp<std::int64_t>(length.exponent, -4000, 4000)));
}

/// Per column the sign of the entry of largest magnitude, the first of equal ones, once the column has length 1:
/// lengths round, and entries that differed before may be equal then. Of zeros 1.
std::vector<double> leading_signs(const Matrix& a, const std::vector<ColumnNorm>& norms, const Context& context) {
  const auto larger = [](double& leading, double entry) {
    leading = std::abs(entry) > std::abs(leading) ? entry : leading;
  };
  std::vector<double> leading = over_columns(
      a, context, [&](double& part, double entry, std::uint64_t r) { larger(part, norms[r].unit(entry)); }, larger);
  for (double& value : leading) value = value < 0 ? -1 : 1;
  return leading;
}

/// Column k becomes column order[k] of length 1 times signs[order[k]]; columns of zeros stay.
void make_columns(Matrix& a, const std::vector<ColumnNorm>& norms, const std::vector<std::size_t>& order,
                  const std::vector<double>& signs, const Context& context) {
  cpu::parallel_ranges(
      context.thread_count(), a.rows,
      [&](std::uint64_t begin, std::uint64_t end) {
        std::vector<double> row(a.cols);
        for (std::uint64_t i = begin; i < end; ++i) {
          double* const values = a.values.data() + i * a.cols;
          for (std::size_t r = 0; r < row.size(); ++r) row[r] = signs[r] * norms[r].unit(values[r]);
          for (std::size_t k = 0; k < row.size(); ++k) values[k] = row[order[k]];
        }
      },
      block_rows);
}

/// Its weights become the lengths of its components. Returns the norms of the columns, which are as they were.
std::vector<std::vector<ColumnNorm>> take_lengths(CpModel& model, const Context& context) {
  check_columns(model);
  std::vector<std::vector<ColumnNorm>> norms = norms_of(model, context);
  const std::vector<WideNumber> lengths = signed_lengths(model, norms);
  std::vector<double> weights;
  for (std::size_t r = 0; r < lengths.size(); ++r) {
    // Adding 0 makes -0 a 0.
    weights.push_back(rounded(lengths[r]) + 0.0);
    if (std::isinf(weights[r]))
      throw Error(ErrorKind::limit, fmt::format("the length of component {} is about 2^{}, which f64 cannot hold",
                                                r + 1, lengths[r].exponent));
  }
  model.weights = std::move(weights);
  return norms;
}

std::vector<std::size_t> numbers_to(std::uint64_t count) {
  std::vector<std::size_t> all(count);
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

/// Error unless the mode is one of the model's.
const Matrix& factor_of(const CpModel& model, int mode) {
  if (mode < 0 || mode >= model.order())
    throw usage_error(fmt::format("mode {} of a model of order {}", mode + 1, model.order()));
  return model.factors[static_cast<std::size_t>(mode)];
}

/// sum_r weights[r] * rows[0][r] * rows[1][r] * ...; `products` is room for a number per component.
template <class Rows>
double value_of(const CpModel& model, const Rows& row, std::vector<double>& products) {
  products.assign(model.weights.begin(), model.weights.end());
  for (std::size_t m = 0; m < model.factors.size(); ++m) {
    const double* const values = row(m);
    for (std::size_t r = 0; r < products.size(); ++r) products[r] *= values[r];
  }
  return std::accumulate(products.begin(), products.end(), 0.0);
}

template <class Index, class Value>
void fill_values(const CpModel& model, const CooView<Index, Value>& at, std::remove_const_t<Value>* values,
                 const Context& context) {
  using Stored = std::remove_const_t<Value>;
  constexpr std::uint64_t block = 1U << 20U;  // nonzeros between two reports
  for (std::uint64_t first = 0; first < at.nnz; first += block) {
    const std::uint64_t count = std::min(block, at.nnz - first);
    cpu::parallel_ranges(
        context.thread_count(), count,
        [&](std::uint64_t begin, std::uint64_t end) {
          std::vector<double> products;
          for (std::uint64_t k = first + begin; k < first + end; ++k) {
            const auto row = [&](std::size_t m) {
              return model.factors[m].values.data() + std::uint64_t{at.indices[m][k]} * model.factors[m].cols;
            };
            const double value = value_of(model, row, products);
            if (!(std::abs(value) <= static_cast<double>(std::numeric_limits<Stored>::max())))
              throw Error(ErrorKind::limit, fmt::format("the model's value at nonzero {} is {}, which {} cannot hold",
                                                        k + 1, value, sizeof(Stored) == 4 ? "f32" : "f64"));
            values[k] = static_cast<Stored>(value);
          }
        },
        1U << 10U);
    context.report({"reconstructing", first + count, at.nnz, "nonzeros"});
  }
}

}  // namespace

void normalise(CpModel& model, const Context& context) {
  const std::vector<std::vector<ColumnNorm>> norms = take_lengths(model, context);
  const std::vector<double> signs(model.rank(), 1.0);
  for (std::size_t m = 0; m < model.factors.size(); ++m)
    make_columns(model.factors[m], norms[m], numbers_to(model.rank()), signs, context);
}

void arrange(CpModel& model, const Context& context) {
  const std::vector<std::vector<ColumnNorm>> norms = take_lengths(model, context);
  if (model.factors.empty()) return;
  std::vector<double> left(model.rank(), 1.0);  // the sign that the last mode has to take
  for (std::uint64_t r = 0; r < model.rank(); ++r) {
    if (model.weights[r] < 0) left[r] = -1;
    model.weights[r] = std::abs(model.weights[r]);
  }
  std::vector<std::size_t> order = numbers_to(model.rank());
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return model.weights[a] > model.weights[b]; });

  for (std::size_t m = 0; m < model.factors.size(); ++m) {
    std::vector<double> signs = leading_signs(model.factors[m], norms[m], context);
    const bool is_last = m + 1 == model.factors.size();
    for (std::size_t r = 0; r < signs.size(); ++r) {
      if (model.weights[r] == 0) continue;  // the component is zero whatever its signs
      if (is_last) {
        signs[r] = left[r];
      } else {
        left[r] *= signs[r];
      }
    }
    make_columns(model.factors[m], norms[m], order, signs, context);
  }
  std::vector<double> weights;
  for (const std::size_t r : order) weights.push_back(model.weights[r]);
  model.weights = std::move(weights);
}

double value_at(const CpModel& model, std::span<const std::uint64_t> at) {
  check_columns(model);
  if (at.size() != model.factors.size())
    throw usage_error(fmt::format("found {} indices, expected {} as the model has modes", at.size(), model.order()));
  for (std::size_t m = 0; m < at.size(); ++m)
    if (at[m] >= model.factors[m].rows)
      throw usage_error(
          fmt::format("found index {} in mode {}, expected one below {}", at[m], m + 1, model.factors[m].rows));
  std::vector<double> products;
  return value_of(
      model, [&](std::size_t m) { return model.factors[m].values.data() + at[m] * model.factors[m].cols; }, products);
}

CooTensor reconstruct(const CpModel& model, const CooTensor& at, const Context& context) {
  check_columns(model);
  const auto rows = [](const Matrix& a) { return a.rows; };
  if (!std::ranges::equal(model.factors, at.dims, {}, rows))
    throw usage_error(fmt::format("the model is {} and the tensor {}, expected equal dims", shape_of(model),
                                  fmt::join(at.dims, " x ")));
  CooTensor result = make_coo(at.dims, at.nnz(), at.precision(), at.index_width(), context);
  result.sorted_by = at.sorted_by;
  result.duplicates_merged = at.duplicates_merged;
  result.labels = at.labels;
  visit(at, [&]<class Index, class Value>(const CooView<Index, Value>& v) {
    for (std::size_t m = 0; m < at.dims.size(); ++m) {
      auto* const to = std::get<Buffer<std::remove_const_t<Index>>>(result.indices[m]).data();
      cpu::parallel_ranges(context.thread_count(), v.nnz, [&](std::uint64_t begin, std::uint64_t end) {
        std::memcpy(to + begin, v.indices[m] + begin, (end - begin) * sizeof(Index));
      });
    }
    fill_values(model, v, std::get<Buffer<std::remove_const_t<Value>>>(result.values).data(), context);
  });
  return result;
}

namespace {

bool larger(const TopEntry& x, const TopEntry& y) {
  const double a = std::abs(x.value);
  const double b = std::abs(y.value);
  return a != b ? a > b : x.index < y.index;
}

/// The largest entries of columns first .. first + columns so far.
class LargestEntries {
 public:
  LargestEntries(std::uint64_t first, std::uint64_t columns, std::uint64_t count)
      : first_(first), count_(count), best_(columns), bars_(columns, -1.0) {}

  /// Rows begin .. end, which are behind those before.
  void add(const Matrix& a, std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t i = begin; i < end; ++i) {
      const double* row = a.values.data() + i * a.cols + first_;
      bool any = false;
      for (std::size_t r = 0; r < bars_.size(); ++r) any |= std::abs(row[r]) > bars_[r];
      if (!any) continue;
      for (std::size_t r = 0; r < bars_.size(); ++r)
        if (std::abs(row[r]) > bars_[r]) put(r, {i, row[r]});
    }
  }
  void add(const LargestEntries& other) {
    for (std::size_t r = 0; r < best_.size(); ++r)
      best_[r].insert(best_[r].end(), other.best_[r].begin(), other.best_[r].end());
  }
  [[nodiscard]] std::vector<std::vector<TopEntry>> sorted() {
    for (std::vector<TopEntry>& entries : best_) {
      std::ranges::sort(entries, larger);
      if (entries.size() > count_) entries.resize(count_);
      entries.shrink_to_fit();
    }
    return std::move(best_);
  }

 private:
  void put(std::size_t r, TopEntry entry) {
    std::vector<TopEntry>& entries = best_[r];
    entries.push_back(entry);
    if (entries.size() < 2 * count_) return;  // sorting out now and then, not at every entry
    std::ranges::nth_element(entries, entries.begin() + static_cast<std::ptrdiff_t>(count_ - 1), larger);
    entries.resize(count_);
    bars_[r] = std::abs(entries.back().value);
  }

  std::uint64_t first_;
  std::uint64_t count_;
  std::vector<std::vector<TopEntry>> best_;
  std::vector<double> bars_;  // what an entry has to exceed
};

/// \param count of an entry at least, at most the rows
std::vector<std::vector<TopEntry>> top_of_columns(const Matrix& a, std::uint64_t first, std::uint64_t columns,
                                                  std::uint64_t count, int threads) {
  std::vector<LargestEntries> of_thread(static_cast<std::size_t>(threads), LargestEntries(first, columns, count));
  cpu::run_team(threads, [&](int rank, int size) {
    const cpu::Share share = cpu::share_of(a.rows, rank, size);
    of_thread[static_cast<std::size_t>(rank)].add(a, share.begin, share.end);
  });
  for (std::size_t t = 1; t < of_thread.size(); ++t) of_thread[0].add(of_thread[t]);
  return of_thread[0].sorted();
}

}  // namespace

std::vector<std::vector<TopEntry>> top_entries_of_mode(const CpModel& model, int mode, std::uint64_t count,
                                                       const Context& context) {
  const Matrix& a = factor_of(model, mode);
  count = std::min(count, a.rows);
  std::vector<std::vector<TopEntry>> all(a.cols);
  if (count == 0) return all;
  if (count > a.rows / 64) {  // a large part of the columns: one by one, so that it takes little more than the result
    for (std::uint64_t r = 0; r < a.cols; ++r) all[r] = std::move(top_of_columns(a, r, 1, count, 1)[0]);
    return all;
  }
  const auto most = static_cast<std::uint64_t>(context.thread_count());
  return top_of_columns(a, 0, a.cols, count, static_cast<int>(std::clamp<std::uint64_t>(a.rows >> 12U, 1, most)));
}

std::vector<TopEntry> top_entries(const CpModel& model, std::uint64_t component, int mode, std::uint64_t count) {
  const Matrix& a = factor_of(model, mode);
  if (component >= a.cols) throw usage_error(fmt::format("component {} of a model of rank {}", component + 1, a.cols));
  if (count == 0 || a.rows == 0) return {};
  return std::move(top_of_columns(a, component, 1, std::min(count, a.rows), 1)[0]);
}

std::string label_of(const CpModel& model, int mode, std::uint64_t index) {
  const Matrix& a = factor_of(model, mode);
  if (index >= a.rows)
    throw usage_error(fmt::format("index {} of mode {}, which has {} of them", index + 1, mode + 1, a.rows));
  const auto m = static_cast<std::size_t>(mode);
  const bool has_label = m < model.labels.size() && index < model.labels[m].size() && !model.labels[m][index].empty();
  return has_label ? std::string(model.labels[m][index]) : fmt::format("{}", index + 1);
}

std::string mode_name(const CpModel& model, int mode) {
  const auto m = static_cast<std::size_t>(mode);
  if (m < model.labels.size() && !model.labels[m].name().empty()) return model.labels[m].name();
  return fmt::format("mode {}", mode + 1);
}

std::uint64_t align(CpModel& model, int mode, const ModeLabels& labels) {
  const auto m = static_cast<std::size_t>(mode);
  if (m >= model.labels.size() || m >= model.factors.size()) return 0;
  const ModeLabels& own = model.labels[m];
  if (own.empty() || labels.empty() || own.size() != model.factors[m].rows) return 0;
  if (own.text() == labels.text() && own.ends() == labels.ends()) return 0;
  std::unordered_map<std::string_view, std::uint64_t> row_of;
  for (std::size_t i = 0; i < own.size(); ++i) row_of.emplace(own[i], i);
  Matrix aligned(labels.size(), model.factors[m].cols);
  std::uint64_t missing = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto found = row_of.find(labels[i]);
    if (found == row_of.end()) {
      ++missing;
      continue;
    }
    for (std::uint64_t r = 0; r < aligned.cols; ++r) aligned(i, r) = model.factors[m](found->second, r);
  }
  ModeLabels renamed = labels;
  renamed.set_name(own.name());
  model.factors[m] = std::move(aligned);
  model.labels[m] = std::move(renamed);
  return missing;
}

}  // namespace polyad
