// SPDX-License-Identifier: MIT
/// \file CP-ALS as the driver sees it.
///
/// The model is 2^exponent * sum_r lambda_r * A[0](:,r) o A[1](:,r) o ...; 2^exponent is the size of the tensor, so
/// that no square of a number overflows. Updating a mode n:
///
///   V = MTTKRP(n);  G = Hadamard product of A[m]'A[m], m != n;  A[n] = V * pinv(G) * diag(1 / lambda) * 2^-exponent
///
/// V is computed in the memory of A[n] (an MTTKRP does not read the factor of its own mode). As its rows become
/// complete they are solved, stored, and added to A[n]'A[n] and <X, M>; both may happen on a device (dense_part.hpp).
/// lambda is the scale of the iteration before: the columns keep lengths near 1 without a second pass. In the first
/// sweep, and when a length leaves [1/4, 4], the columns are normalised.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/counted.hpp"
#include "polyad/cp_als.hpp"
#include "polyad/kernels.hpp"
#include "solvers/cp_als/dense_part.hpp"
#include "solvers/cp_als/row_pass.hpp"
#include "solvers/driver.hpp"

namespace polyad::cp_als_detail {

/// A model in the making.
template <class T>
struct AlsState {
  std::vector<FactorMatrix<T>> factors;  // [order]
  std::vector<Small> grams;              // [order], A'A of each
  std::vector<double> lambda;            // [rank]
  double inner = 0;                      // <X, M> / 4^exponent
  bool inner_is_known = false;           // from the first update on
  int next_mode = 0;                     // to be updated
  bool first_sweep = true;
  std::optional<double> residual = {};  // squared, / 4^exponent, once it was asked for
};

template <class T>
class Als final : public Solver {
 public:
  Als(Tensor& x, const CpAlsOptions& options, const Context& context);

  void start(std::uint64_t restart) override;
  bool step(const std::function<bool()>& stop) override;
  [[nodiscard]] double fit() override;
  [[nodiscard]] double objective() override;
  [[nodiscard]] double loss() override;
  void keep_as_best() override;
  void take_best() override;
  void save(nlohmann::ordered_json& head, std::vector<io::StateArray>& arrays) override;
  void load(const io::StateFile& file) override;

  /// The model of the present state, which is used up. Arranged, unless modes are fixed: then components stay those of
  /// the model it began with.
  [[nodiscard]] CpModel model();
  /// What the user should know about the present state and the way to it.
  [[nodiscard]] std::vector<std::string> notes() const;
  /// Seconds spent outside the MTTKRPs.
  [[nodiscard]] double dense_seconds() const noexcept { return dense_seconds_ + dense_->seconds(); }
  /// Where the rows of each mode were solved.
  [[nodiscard]] std::vector<std::string_view> dense_places() const;

 private:
  [[nodiscard]] bool is_fixed(int mode) const;
  [[nodiscard]] bool is_nonnegative(int mode) const;
  void start_from_model(const Context& context);
  void start_from_sketch(const Context& context);
  void update(int mode);
  [[nodiscard]] Small gram_of_others(int mode) const;
  [[nodiscard]] int next_mode(int mode) const;
  [[nodiscard]] Small solution_of(int mode);
  [[nodiscard]] DescentOptions descent_of(int mode) const;
  void normalise_columns(int mode);
  [[nodiscard]] double squared_residual();
  [[nodiscard]] std::optional<double> careful_residual();
  void compute_inner();
  [[nodiscard]] double penalty() const;
  [[nodiscard]] std::vector<double> lengths() const;
  void add_arrays(const AlsState<T>& state, const std::string& prefix, nlohmann::ordered_json& head,
                  std::vector<io::StateArray>& arrays) const;
  void load_arrays(AlsState<T>& state, const std::string& prefix, const nlohmann::ordered_json& head,
                   const io::StateFile& file);

  Tensor& x_;
  CpAlsOptions options_;
  Context context_;  // without cancellation: a mode is always finished
  std::uint64_t rank_;
  std::size_t order_;
  Counted grams_counted_;
  Counted model_counted_;  // from the beginning: a model that does not fit is said before hours of work
  int exponent_ = 0;
  double norm_ = 0;            // of the tensor / 2^exponent
  bool tiny_as_zero_ = false;  // tiny_says_nothing of the tensor
  AlsState<T> state_;
  std::optional<AlsState<T>> best_;
  std::vector<FactorMatrix<T>> mttkrp_;  // [order], of the modes that must not be negative
  RowScratch<T> scratch_;
  Workspace workspace_;
  std::unique_ptr<DensePart<T>> dense_;
  double dense_seconds_ = 0;
  std::string truncation_;  // the sentence about the first singular Gram matrix
};

}  // namespace polyad::cp_als_detail
