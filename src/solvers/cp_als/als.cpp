// SPDX-License-Identifier: MIT
#include "solvers/cp_als/als.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "backends/cpu/tiny_numbers.hpp"
#include "polyad/error.hpp"
#include "polyad/factors.hpp"
#include "solvers/cp_als/gram_solve.hpp"

namespace polyad::cp_als_detail {

namespace {

/// Sweeps over the columns per update of a mode that must not be negative. The MTTKRP is the expensive part: a few
/// sweeps more bring a better row for nothing.
constexpr int descent_sweeps = 4;

/// A component this much shorter than the tensor is taken as 0: when it comes back, its factor is divided by this
/// scale, and the squares of that have to be numbers. In f32 it is below the last digit anyway, but for a random start,
/// which may have next to nothing in common with a tensor of many long modes.
template <class T>
double vanished(bool first_sweep) {
  if (sizeof(T) == 8) return 1e-30;
  return first_sweep ? 1e-18 : 1e-12;
}

/// Products in f32 make an error of some 1e-7 ||X||^2 in the squared residual. Below this share of ||X||^2 (fit 0.99)
/// it would show in the fifth digit of the fit: near 1 the fit would be known to 3e-4 only.
constexpr double doubtful = 1e-4;

/// Whether subnormal numbers may be taken as 0: what matters is far from them. Entries of columns of length 1 are some
/// 1 / sqrt(dim), so rows of an MTTKRP are made of numbers of the size of norm / sqrt(product of the dims); the matrix
/// that they are multiplied with has entries of the size of 1 / norm. Both have to be 2^(min_exponent / 2) or more: in
/// f32 2^-62, seven digits are 2^-24 of it.
template <class T>
bool tiny_says_nothing(double norm, std::span<const std::uint64_t> dims) {
  double smallest = std::log2(norm);
  for (const std::uint64_t d : dims) smallest -= 0.5 * std::log2(static_cast<double>(std::max<std::uint64_t>(1, d)));
  const double limit = 0.5 * std::numeric_limits<T>::min_exponent;
  return smallest >= limit && -std::log2(norm) >= limit;
}

std::size_t at(int mode) { return static_cast<std::size_t>(mode); }

std::uint64_t model_bytes(const Tensor& x, std::uint64_t rank) {
  std::uint64_t rows = 0;
  for (const std::uint64_t d : x.dims()) rows += d;
  const std::uint64_t row = rank * sizeof(double);
  return rows > std::numeric_limits<std::uint64_t>::max() / 2 / row ? std::numeric_limits<std::uint64_t>::max() / 2
                                                                    : rows * row;
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

bool has(const std::vector<int>& modes, int mode) { return std::ranges::count(modes, mode) > 0; }

}  // namespace

template <class T>
Als<T>::Als(Tensor& x, const CpAlsOptions& options, const Context& context)
    : x_(x),
      options_(options),
      context_(context),
      rank_(options.rank),
      order_(x.dims().size()),
      // One of each mode, and those that an update has in hand.
      grams_counted_(context, (order_ + 8) * small_columns(rank_) * small_columns(rank_) * sizeof(double),
                     "the Gram matrices"),
      model_counted_(context, model_bytes(x, rank_), "the model") {
  context_.cancelled = {};
  context_.observer = {};
  const double size = polyad::norm(x, context);
  if (!std::isfinite(size))
    throw Error(ErrorKind::input, "the tensor's norm is larger than a number can be; its values have to be scaled");
  if (size > 0 && size < 4 * static_cast<double>(std::numeric_limits<T>::min()))
    throw Error(ErrorKind::input, fmt::format("the tensor's norm, {:.2g}, is smaller than {} can work with; its values "
                                              "have to be scaled{}",
                                              size, name_of(x.precision()), sizeof(T) == 4 ? ", or read as f64" : ""));
  // Squares of it have to be numbers.
  if (options.l2 > 0 && size > 0 && size < 1e-140)
    throw Error(ErrorKind::input,
                fmt::format("the tensor's norm, {:.2g}, is too small for a ridge; its values have to be scaled", size));
  // The ridge is about the numbers themselves, so with one nothing is scaled.
  if (size > 0 && options.l2 == 0) exponent_ = std::ilogb(size);
  norm_ = std::ldexp(size, -exponent_);
  tiny_as_zero_ = tiny_says_nothing<T>(size, x.dims());
  mttkrp_.resize(order_);
  workspace_.keep_products();  // what changes a factor says so
  for (const int mode : options_.fixed) workspace_.set_fixed(mode);
  dense_ = make_dense_part<T>(x_, options_, workspace_, context_);
}

template <class T>
bool Als<T>::is_fixed(int mode) const {
  return has(options_.fixed, mode);
}

template <class T>
bool Als<T>::is_nonnegative(int mode) const {
  return has(options_.nonnegative, mode);
}

template <class T>
bool Als<T>::step(const std::function<bool()>& stop) {
  const int order = static_cast<int>(order_);
  const auto next_free = [&](int mode) {
    while (mode < order && is_fixed(mode)) ++mode;
    return mode;
  };
  for (int mode = next_free(state_.next_mode); mode < order;) {
    update(mode);
    mode = next_free(mode + 1);
    state_.next_mode = mode;
    if (mode < order && stop()) return false;
  }
  state_.next_mode = 0;
  state_.first_sweep = false;
  return true;
}

template <class T>
void Als<T>::update(int mode) {
  const cpu::TinyNumbersAsZero tiny(tiny_as_zero_);
  const auto begin = std::chrono::steady_clock::now();
  const bool nonnegative = is_nonnegative(mode);
  FactorMatrix<T>& factor = state_.factors[at(mode)];
  // Where the MTTKRP goes, and becomes the factor unless that must not be negative.
  FactorMatrix<T>& home = nonnegative ? mttkrp_[at(mode)] : factor;
  if (nonnegative && home.rows() == 0) home = FactorMatrix<T>(context_, factor.rows(), rank_);
  FactorMatrix<T> out = std::move(home);
  Small solution;
  RowTask<T> task;
  if (nonnegative) {
    task.on_host = nonnegative_descent<T>(factor, descent_of(mode), scratch_, context_);
  } else {
    solution = solution_of(mode);
    task.on_host = least_squares<T>(out, solution, scratch_, context_);
    task.solution = &solution;
  }
  task.on_host->next_mode = next_mode(mode);
  dense_seconds_ += seconds_since(begin);
  RowSums sums = dense_->update(state_.factors, mode, out, task);

  const auto solved = std::chrono::steady_clock::now();
  home = std::move(out);
  state_.grams[at(mode)] = std::move(sums.gram);
  state_.residual.reset();
  state_.inner = 0;
  state_.inner_is_known = true;
  const double scale = std::ldexp(1.0, -exponent_);
  for (std::uint64_t r = 0; r < rank_; ++r) state_.inner += state_.lambda[r] * (sums.inner[r] * scale);
  double squares = 0;
  for (std::uint64_t r = 0; r < rank_; ++r) squares += state_.grams[at(mode)](r, r);
  if (!std::isfinite(state_.inner) || !std::isfinite(squares))
    throw Error(ErrorKind::input, fmt::format("mode {}: sums of the tensor's values are larger than {} can hold",
                                              mode + 1, name_of(x_.precision())));
  if (options_.l2 == 0) normalise_columns(mode);
  dense_->finish(factor, mode);
  dense_seconds_ += seconds_since(solved);
}

/// The mode that is updated after this one, from the factor as the rows are solved; -1 when that is scaled afterwards.
template <class T>
int Als<T>::next_mode(int mode) const {
  if (state_.first_sweep && options_.l2 == 0) return -1;
  const int order = static_cast<int>(order_);
  int next = mode;
  do next = (next + 1) % order;
  while (is_fixed(next));
  return next == mode ? -1 : next;
}

/// Hadamard product of the Gram matrices of all modes but one (-1: of all).
template <class T>
Small Als<T>::gram_of_others(int mode) const {
  Small product(rank_);
  for (std::uint64_t r = 0; r < rank_; ++r)
    for (std::uint64_t s = 0; s < rank_; ++s) product(r, s) = 1;
  for (std::size_t m = 0; m < order_; ++m)
    if (static_cast<int>(m) != mode)
      for (std::size_t e = 0; e < product.values.size(); ++e) product.values[e] *= state_.grams[m].values[e];
  return product;
}

/// What V is multiplied with: pinv(G) * diag(1 / lambda) * 2^-exponent.
template <class T>
Small Als<T>::solution_of(int mode) {
  // Values in f32 say nothing about directions that are shorter than their rounding.
  const double smallest = sizeof(T) == 4 ? std::numeric_limits<float>::epsilon() : 0;
  PseudoInverse inverse = pseudo_inverse(gram_of_others(mode), options_.l2, smallest);
  if (inverse.truncated > 0 && truncation_.empty())
    truncation_ = fmt::format(
        "the Gram matrix of mode {} is singular: {} of {} directions were left out (the data do not determine so many "
        "components; the model is one of several equally good ones)",
        mode + 1, inverse.truncated, rank_);
  const double scale = std::ldexp(1.0, -exponent_);
  for (std::uint64_t r = 0; r < rank_; ++r)
    for (std::uint64_t s = 0; s < rank_; ++s) inverse.matrix(r, s) *= scale / state_.lambda[s];
  return std::move(inverse.matrix);
}

template <class T>
DescentOptions Als<T>::descent_of(int mode) const {
  DescentOptions descent;
  descent.v_scale = std::ldexp(1.0, -exponent_);
  descent.gram = gram_of_others(mode);
  for (std::uint64_t r = 0; r < rank_; ++r) descent.gram(r, r) += options_.l2;
  descent.start_scale = state_.lambda;
  for (std::uint64_t r = 0; r < rank_; ++r) descent.end_scale.push_back(1 / state_.lambda[r]);
  descent.sweeps = descent_sweeps;
  return descent;
}

/// Column lengths 1 where they are not near it; lambda takes them. Columns of zeros stay.
template <class T>
void Als<T>::normalise_columns(int mode) {
  Small& gram = state_.grams[at(mode)];
  std::vector<double> scale(rank_, 1.0);
  bool needed = false;
  for (std::uint64_t r = 0; r < rank_; ++r) {
    const double length = std::sqrt(gram(r, r));
    const bool near = length >= 0.25 && length <= 4;
    if (length == 0) continue;
    if (state_.lambda[r] * length < vanished<T>(state_.first_sweep)) {
      scale[r] = 0;
      state_.lambda[r] = 1;
      needed = true;
      continue;
    }
    if (near && !state_.first_sweep) continue;
    scale[r] = 1 / length;
    state_.lambda[r] *= length;
    needed = true;
  }
  if (!needed) return;
  dense_->scale(state_.factors[at(mode)], mode, scale);
  for (std::uint64_t r = 0; r < rank_; ++r)
    for (std::uint64_t s = 0; s < rank_; ++s) gram(r, s) *= scale[r] * scale[s];
}

/// ||X - M||^2 / 4^exponent = ||X||^2 + ||M||^2 - 2 <X, M>. Rounding may make it a little less than 0.
template <class T>
double Als<T>::squared_residual() {
  if (state_.residual) return *state_.residual;
  if (!state_.inner_is_known) compute_inner();
  const Small product = gram_of_others(-1);
  double squared_model = 0;
  for (std::uint64_t r = 0; r < rank_; ++r)
    for (std::uint64_t s = 0; s < rank_; ++s) squared_model += state_.lambda[r] * state_.lambda[s] * product(r, s);
  double residual = std::max(0.0, norm_ * norm_ + squared_model - 2 * state_.inner);
  if (sizeof(T) == 4 && residual < doubtful * norm_ * norm_) residual = careful_residual().value_or(residual);
  state_.residual = residual;
  return residual;
}

/// The same with every product and sum in double, one pass over the nonzeros; nothing when there is no memory for it.
template <class T>
std::optional<double> Als<T>::careful_residual() {
  try {
    dense_->bring(state_.factors);
    CpModel model;
    model.weights = state_.lambda;
    for (const FactorMatrix<T>& factor : state_.factors) model.factors.push_back(matrix_of(factor, context_));
    const double size = polyad::norm(model);
    return std::max(0.0, norm_ * norm_ + size * size - 2 * std::ldexp(innerprod(x_, model, context_), -exponent_));
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::limit) throw;
    return std::nullopt;
  }
}

/// <X, M> of a start that nothing has been updated of: V of the first mode times its factor.
template <class T>
void Als<T>::compute_inner() {
  const FactorMatrix<T>& factor = state_.factors[0];
  FactorMatrix<T> v(context_, factor.rows(), rank_);
  mttkrp<T>(x_, std::span<const FactorMatrix<T>>(state_.factors), 0, v, workspace_, context_);
  std::vector<double> sums(rank_);
  for (std::uint64_t i = 0; i < v.rows(); ++i)
    for (std::uint64_t r = 0; r < rank_; ++r)
      sums[r] += static_cast<double>(v(i, r)) * static_cast<double>(factor(i, r));
  state_.inner = 0;
  for (std::uint64_t r = 0; r < rank_; ++r) state_.inner += std::ldexp(state_.lambda[r] * sums[r], -exponent_);
  state_.inner_is_known = true;
}

template <class T>
double Als<T>::fit() {
  return norm_ > 0 ? 1 - std::sqrt(squared_residual()) / norm_ : 1;
}

/// l2 / 2 * sum over modes of ||A||^2.
template <class T>
double Als<T>::penalty() const {
  double sum = 0;
  for (const Small& gram : state_.grams)
    for (std::uint64_t r = 0; r < rank_; ++r) sum += options_.l2 / 2 * gram(r, r);
  return sum;
}

template <class T>
double Als<T>::objective() {
  return std::ldexp(squared_residual(), 2 * exponent_) / 2 + penalty();
}

template <class T>
double Als<T>::loss() {
  return squared_residual() / 2 + penalty();  // with a ridge the exponent is 0
}

template <class T>
void Als<T>::keep_as_best() {
  dense_->bring(state_.factors);
  best_ = std::move(state_);
}

template <class T>
void Als<T>::take_best() {
  state_ = std::move(*best_);
  best_.reset();
  dense_->replaced();
}

template <class T>
std::vector<std::string_view> Als<T>::dense_places() const {
  std::vector<std::string_view> places = dense_->places();
  for (const int mode : options_.fixed) places[at(mode)] = "fixed";
  return places;
}

/// lambda times the lengths of the columns: what the weights of the arranged model will be, / 2^exponent.
template <class T>
std::vector<double> Als<T>::lengths() const {
  std::vector<double> all(rank_);
  for (std::uint64_t r = 0; r < rank_; ++r) {
    all[r] = std::abs(state_.lambda[r]);
    for (const Small& gram : state_.grams) all[r] *= std::sqrt(gram(r, r));
  }
  return all;
}

template <class T>
std::vector<std::string> Als<T>::notes() const {
  std::vector<std::string> all;
  if (!truncation_.empty()) all.push_back(truncation_);
  const std::vector<double> length = lengths();
  // Components in the order in which the user will see them.
  std::vector<std::uint64_t> shown(rank_);
  std::iota(shown.begin(), shown.end(), std::uint64_t{0});
  if (options_.fixed.empty())
    std::ranges::stable_sort(shown, [&](std::uint64_t a, std::uint64_t b) { return length[a] > length[b]; });

  std::uint64_t empty = 0;
  for (const double l : length) empty += l == 0 ? 1 : 0;
  if (empty > 0 && norm_ > 0)
    all.push_back(
        fmt::format("{} of {} components are zero: the others already describe what they could", empty, rank_));

  // The congruence is the cosine between two components. Degeneracy: components that grow without bound and cancel each
  // other (Kolda, Bader: Tensor decompositions and applications, 2009, section 3.3). One pair is enough to say it.
  bool degenerate = false;
  bool alike = false;
  for (std::uint64_t i = 0; i < rank_; ++i)
    for (std::uint64_t j = i + 1; j < rank_; ++j) {
      const std::uint64_t r = shown[i];
      const std::uint64_t s = shown[j];
      if (length[r] == 0 || length[s] == 0) continue;
      double congruence = state_.lambda[r] * state_.lambda[s] < 0 ? -1 : 1;
      for (const Small& gram : state_.grams) congruence *= gram(r, s) / std::sqrt(gram(r, r) * gram(s, s));
      if (!degenerate && congruence < -0.9 && length[r] * length[s] > norm_ * norm_) {
        all.push_back(fmt::format(
            "components {} and {} cancel each other (congruence {:.4f}) and are longer than the tensor: the "
            "decomposition is degenerate; a lower rank, l2 or nonnegative may help",
            i + 1, j + 1, congruence));
        degenerate = true;
      } else if (!alike && !degenerate && std::abs(congruence) > 0.99) {
        all.push_back(
            fmt::format("components {} and {} are nearly the same (congruence {:.4f}): read them as one, or "
                        "take a lower rank",
                        i + 1, j + 1, congruence));
        alike = true;
      }
    }
  return all;
}

template <class T>
CpModel Als<T>::model() {
  dense_->bring(state_.factors);
  workspace_.clear();
  mttkrp_.clear();
  scratch_ = {};
  CpModel model;
  for (FactorMatrix<T>& factor : state_.factors) {
    model.factors.push_back(matrix_of(factor, context_));
    factor = {};
  }
  for (const int mode : options_.fixed)  // to the last digit, also when the factors are f32
    model.factors[at(mode)] = options_.initial->factors[at(mode)];
  if (options_.fixed.empty()) {
    for (const double l : state_.lambda) model.weights.push_back(std::ldexp(l, exponent_));
    arrange(model, context_);
    return model;
  }
  for (std::uint64_t r = 0; r < rank_; ++r) {
    double weight = state_.lambda[r];
    for (std::size_t m = 0; m < order_; ++m) {
      const double length = std::sqrt(state_.grams[m](r, r));
      if (is_fixed(static_cast<int>(m))) continue;
      weight *= length;
      if (length == 0) continue;  // the component vanished
      for (std::uint64_t i = 0; i < model.factors[m].rows; ++i) model.factors[m](i, r) /= length;
    }
    model.weights.push_back(std::ldexp(weight, exponent_));
  }
  return model;
}

template <class T>
void Als<T>::add_arrays(const AlsState<T>& state, const std::string& prefix, nlohmann::ordered_json& head,
                        std::vector<io::StateArray>& arrays) const {
  head = {{"next_mode", state.next_mode},
          {"first_sweep", state.first_sweep},
          {"inner", state.inner},
          {"inner_is_known", state.inner_is_known}};
  arrays.push_back({prefix + "lambda", io::bytes_of_array(state.lambda, rank_)});
  for (std::size_t m = 0; m < order_; ++m) {
    const FactorMatrix<T>& factor = state.factors[m];
    arrays.push_back({fmt::format("{}factor {}", prefix, m + 1),
                      std::as_bytes(std::span(factor.data(), factor.rows() * factor.stride()))});
    arrays.push_back({fmt::format("{}gram {}", prefix, m + 1),
                      io::bytes_of_array(state.grams[m].values, state.grams[m].values.size())});
  }
}

template <class T>
void Als<T>::save(nlohmann::ordered_json& head, std::vector<io::StateArray>& arrays) {
  dense_->bring(state_.factors);
  head["truncation"] = truncation_;
  add_arrays(state_, "", head["state"], arrays);
  if (best_) add_arrays(*best_, "best ", head["best"], arrays);
}

template <class T>
void Als<T>::load_arrays(AlsState<T>& state, const std::string& prefix, const nlohmann::ordered_json& head,
                         const io::StateFile& file) {
  state = {};
  state.next_mode = std::clamp(head.at("next_mode").get<int>(), 0, static_cast<int>(order_));
  state.first_sweep = head.at("first_sweep").get<bool>();
  state.inner = head.at("inner").get<double>();
  state.inner_is_known = head.at("inner_is_known").get<bool>();
  state.lambda.resize(rank_);
  file.copy(prefix + "lambda", std::as_writable_bytes(std::span(state.lambda)));
  for (std::size_t m = 0; m < order_; ++m) {
    FactorMatrix<T>& factor = state.factors.emplace_back(context_, x_.dims()[m], rank_);
    file.copy(fmt::format("{}factor {}", prefix, m + 1),
              std::as_writable_bytes(std::span(factor.data(), factor.rows() * factor.stride())));
    Small& gram = state.grams.emplace_back(rank_);
    file.copy(fmt::format("{}gram {}", prefix, m + 1), std::as_writable_bytes(std::span(gram.values)));
  }
}

template <class T>
void Als<T>::load(const io::StateFile& file) {
  const nlohmann::ordered_json& head = file.head().at("solver");
  truncation_ = head.at("truncation").get<std::string>();
  load_arrays(state_, "", head.at("state"), file);
  dense_->replaced();
  best_.reset();
  if (head.contains("best")) load_arrays(best_.emplace(), "best ", head.at("best"), file);
}

template class Als<float>;
template class Als<double>;

}  // namespace polyad::cp_als_detail
