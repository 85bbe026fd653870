// SPDX-License-Identifier: MIT
/// \file The factor match score of Acar, Dunlavy, Kolda and Morup, "Scalable tensor factorizations for incomplete data"
/// (2011). The Tensor Toolbox's score() has the same formula, but pairs components greedily.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/column_norms.hpp"
#include "polyad/cp_model.hpp"
#include "polyad/error.hpp"

namespace polyad {

namespace {

/// The cosine of every column of a with every column of b.
std::vector<double> cosines_of(const Matrix& a, const std::vector<ColumnNorm>& norms_a, const Matrix& b,
                               const std::vector<ColumnNorm>& norms_b) {
  std::vector<double> cosines(a.cols * b.cols);  // [a.cols][b.cols]
  std::vector<double> row(b.cols);
  for (std::uint64_t i = 0; i < a.rows; ++i) {
    for (std::uint64_t q = 0; q < b.cols; ++q) row[q] = b(i, q) * norms_b[q].scale;
    for (std::uint64_t p = 0; p < a.cols; ++p) {
      const double value = a(i, p) * norms_a[p].scale;
      if (value == 0) continue;  // most of a sparse factor
      for (std::uint64_t q = 0; q < b.cols; ++q) cosines[p * b.cols + q] += value * row[q];
    }
  }
  for (std::uint64_t p = 0; p < a.cols; ++p)
    for (std::uint64_t q = 0; q < b.cols; ++q) {
      double& cosine = cosines[p * b.cols + q];
      cosine /= norms_a[p].norm * norms_b[q].norm;
      cosine = std::isnan(cosine) ? 0 : std::clamp(cosine, -1.0, 1.0);  // 0/0: a column of zeros
    }
  return cosines;
}

/// The column of each row in the assignment with the largest sum of gains, exactly: Dijkstra's shortest augmenting path
/// for one row after the other, on costs made non-negative by prices (Jonker and Volgenant 1987). O(rows^2 * cols);
/// rows <= cols.
/// \param gains [rows][cols], 0 to 1
std::vector<std::size_t> best_assignment(const std::vector<double>& gains, std::size_t rows, std::size_t cols) {
  constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
  std::vector<double> row_prices(rows);
  std::vector<double> col_prices(cols);
  std::vector<std::size_t> row_of(cols, none);
  for (std::size_t start = 0; start < rows; ++start) {
    std::vector<double> distance(cols, std::numeric_limits<double>::infinity());
    std::vector<std::size_t> before(cols, none);  // the column before this one on the path; none: it begins here
    std::vector<char> is_final(cols, 0);
    std::size_t row = start;
    std::size_t from = none;
    std::size_t nearest = none;
    double length = 0;
    do {
      nearest = none;
      for (std::size_t j = 0; j < cols; ++j) {
        if (is_final[j] != 0) continue;
        const double longer = length + (1 - gains[row * cols + j]) - row_prices[row] - col_prices[j];
        if (longer < distance[j]) {
          distance[j] = longer;
          before[j] = from;
        }
        if (nearest == none || distance[j] < distance[nearest]) nearest = j;
      }
      is_final[nearest] = 1;
      length = distance[nearest];
      from = nearest;
      row = row_of[nearest];
    } while (row != none);

    row_prices[start] += length;
    for (std::size_t j = 0; j < cols; ++j) {
      if (is_final[j] == 0 || row_of[j] == none) continue;
      row_prices[row_of[j]] += length - distance[j];
      col_prices[j] -= length - distance[j];
    }
    for (std::size_t j = nearest; j != none; j = before[j]) row_of[j] = before[j] == none ? start : row_of[before[j]];
  }
  std::vector<std::size_t> col_of(rows, none);
  for (std::size_t j = 0; j < cols; ++j)
    if (row_of[j] != none) col_of[row_of[j]] = j;
  return col_of;
}

/// 1 - |a - b| / max(a, b) of the magnitudes: the smaller by the larger.
double ratio(WideNumber a, WideNumber b) {
  if (a.mantissa == 0 && b.mantissa == 0) return 1;
  if (a.mantissa == 0 || b.mantissa == 0) return 0;
  const auto difference = static_cast<int>(std::clamp<std::int64_t>(a.exponent - b.exponent, -4000, 4000));
  const double quotient = std::ldexp(std::abs(a.mantissa / b.mantissa), difference);
  return quotient > 1 ? 1 / quotient : quotient;
}

}  // namespace

ModelScore score(const CpModel& a, const CpModel& b) {
  check_columns(a);
  check_columns(b);
  const auto rows = [](const Matrix& factor) { return factor.rows; };
  if (!std::ranges::equal(a.factors, b.factors, {}, rows, rows))
    throw usage_error(
        fmt::format("the models are {} and {}, expected equal dims to compare them", shape_of(a), shape_of(b)));

  std::vector<std::vector<ColumnNorm>> norms_a;
  std::vector<std::vector<ColumnNorm>> norms_b;
  std::vector<std::vector<double>> cosines;  // per mode [a.rank()][b.rank()]
  std::vector<double> congruences(a.rank() * b.rank(), 1.0);
  for (std::size_t m = 0; m < a.factors.size(); ++m) {
    norms_a.push_back(column_norms(a.factors[m]));
    norms_b.push_back(column_norms(b.factors[m]));
    cosines.push_back(cosines_of(a.factors[m], norms_a[m], b.factors[m], norms_b[m]));
    for (std::size_t k = 0; k < congruences.size(); ++k) congruences[k] *= cosines[m][k];
  }
  const std::vector<WideNumber> lengths_a = signed_lengths(a, norms_a);
  const std::vector<WideNumber> lengths_b = signed_lengths(b, norms_b);

  const bool is_wide = a.rank() <= b.rank();  // best_assignment wants the smaller rank as rows
  const std::size_t fewer = std::min(a.rank(), b.rank());
  const std::size_t more = std::max(a.rank(), b.rank());
  std::vector<double> gains(fewer * more);
  for (std::size_t i = 0; i < fewer; ++i)
    for (std::size_t j = 0; j < more; ++j)
      gains[i * more + j] = std::abs(congruences[is_wide ? i * more + j : j * fewer + i]);
  const std::vector<std::size_t> partner = best_assignment(gains, fewer, more);

  ModelScore result;
  for (std::size_t i = 0; i < fewer; ++i) {
    ComponentMatch match;
    match.a = is_wide ? i : partner[i];
    match.b = is_wide ? partner[i] : i;
    const std::size_t k = match.a * b.rank() + match.b;
    match.congruence = congruences[k];
    match.score = std::abs(match.congruence) * ratio(lengths_a[match.a], lengths_b[match.b]);
    for (const std::vector<double>& mode : cosines) match.cosines.push_back(mode[k]);
    result.score += match.score;
    result.matches.push_back(std::move(match));
  }
  if (fewer > 0) result.score /= static_cast<double>(fewer);
  std::ranges::sort(result.matches, {}, &ComponentMatch::a);
  return result;
}

}  // namespace polyad
