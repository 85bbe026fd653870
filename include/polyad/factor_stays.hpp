// SPDX-License-Identifier: MIT
/// \file MTTKRPs in turn without a decomposition, to measure them.
#pragma once

#include <cstdint>

#include "polyad/kernels.hpp"
#include "polyad/matrix.hpp"

namespace polyad {

/// An update that leaves the factor of the mode as it is: MTTKRPs in all modes in turn, asked for as CP-ALS asks for
/// them, without its solves.
template <class T>
class FactorStays final : public RowUpdate<T> {
 public:
  /// \param factor of the mode that is computed \param next see RowUpdate::next_mode
  FactorStays(const FactorMatrix<T>& factor, int next) : factor_(factor) { this->next_mode = next; }

  [[nodiscard]] std::uint64_t most_parts() const override { return std::uint64_t{1} << 30U; }
  void begin(std::uint64_t /*parts*/) override {}
  void take(std::uint64_t /*part*/, std::uint64_t /*begin*/, std::uint64_t /*end*/, T* /*rows*/) override {}
  [[nodiscard]] bool reads_rows() const override { return false; }
  [[nodiscard]] const FactorMatrix<T>& factor() const override { return factor_; }

 private:
  const FactorMatrix<T>& factor_;
};

}  // namespace polyad
