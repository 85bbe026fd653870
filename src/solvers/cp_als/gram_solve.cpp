// SPDX-License-Identifier: MIT
#include "solvers/cp_als/gram_solve.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <limits>

namespace polyad::cp_als_detail {

namespace {

using Dense = Eigen::MatrixXd;

Eigen::Index at(std::uint64_t i) { return static_cast<Eigen::Index>(i); }

Dense dense_of(const Small& m) {
  Dense out(at(m.rank), at(m.rank));
  for (std::uint64_t r = 0; r < m.rank; ++r)
    for (std::uint64_t s = 0; s < m.rank; ++s) out(at(r), at(s)) = m(r, s);
  return out;
}

/// Below this reciprocal condition an inverse by Cholesky has lost half of its digits.
constexpr double least_condition = 1e-8;

}  // namespace

PseudoInverse pseudo_inverse(const Small& gram, double ridge, double smallest) {
  const std::uint64_t rank = gram.rank;
  Dense scaled = dense_of(gram);
  scaled.diagonal().array() += ridge;
  std::vector<double> length(rank);  // 0: a component that vanished
  for (std::uint64_t r = 0; r < rank; ++r) length[r] = std::sqrt(std::max(0.0, scaled(at(r), at(r))));
  for (std::uint64_t r = 0; r < rank; ++r)
    for (std::uint64_t s = 0; s < rank; ++s)
      scaled(at(r), at(s)) =
          length[r] > 0 && length[s] > 0 ? scaled(at(r), at(s)) / (length[r] * length[s]) : static_cast<double>(r == s);

  PseudoInverse out{Small(rank), 0};
  Dense inverse;
  const Eigen::LLT<Dense> cholesky(scaled);
  if (cholesky.info() == Eigen::Success && cholesky.rcond() > least_condition) {
    inverse = cholesky.solve(Dense::Identity(at(rank), at(rank)));
  } else {
    const Eigen::SelfAdjointEigenSolver<Dense> eigen(scaled);
    const Eigen::VectorXd& values = eigen.eigenvalues();  // rising
    const double limit =
        values(at(rank - 1)) * std::max(smallest, static_cast<double>(rank) * std::numeric_limits<double>::epsilon());
    Eigen::VectorXd reciprocal(at(rank));
    for (std::uint64_t r = 0; r < rank; ++r) {
      const bool keep = values(at(r)) > limit;
      reciprocal(at(r)) = keep ? 1 / values(at(r)) : 0;
      if (!keep) ++out.truncated;
    }
    inverse = eigen.eigenvectors() * reciprocal.asDiagonal() * eigen.eigenvectors().transpose();
  }
  for (std::uint64_t r = 0; r < rank; ++r)
    for (std::uint64_t s = 0; s < rank; ++s)
      if (length[r] > 0 && length[s] > 0)
        out.matrix(r, s) = (inverse(at(r), at(s)) + inverse(at(s), at(r))) / (2 * length[r] * length[s]);
  return out;
}

SymmetricEigen eigenvectors(const Small& symmetric) {
  const std::uint64_t rank = symmetric.rank;
  const Eigen::SelfAdjointEigenSolver<Dense> eigen(dense_of(symmetric));
  SymmetricEigen out{std::vector<double>(rank), Small(rank)};
  for (std::uint64_t c = 0; c < rank; ++c) {
    const Eigen::Index from = at(rank - 1 - c);
    out.values[c] = eigen.eigenvalues()(from);
    for (std::uint64_t r = 0; r < rank; ++r) out.vectors(r, c) = eigen.eigenvectors()(at(r), from);
  }
  return out;
}

}  // namespace polyad::cp_als_detail
