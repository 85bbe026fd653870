// SPDX-License-Identifier: MIT
/// \file The dense part of CP-ALS on a device: the output of an MTTKRP stays there, becomes the factor of its mode
/// there, and only sums over rows come to the host. For one device: the outputs of several are added on the host.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/gpu/runner.hpp"
#include "polyad/context.hpp"
#include "polyad/kernels.hpp"
#include "polyad/matrix.hpp"

namespace polyad::gpu {

/// While it lives, MTTKRPs with this workspace leave their output on the device; what they were given as `out` is not
/// touched.
class OutputStays {
 public:
  OutputStays(Workspace& workspace, const Context& context) : states_(states_of(workspace, context)) {
    states_.output_stays = true;
  }
  ~OutputStays() { states_.output_stays = false; }
  OutputStays(const OutputStays&) = delete;
  OutputStays& operator=(const OutputStays&) = delete;

 private:
  DeviceStates& states_;
};

/// Sums over the rows of a factor A that was solved from V.
struct DenseSums {
  std::vector<double> gram;   ///< [rank][rank], A'A
  std::vector<double> inner;  ///< [rank], sum of V(i,r) * A(i,r)
};

/// The factor of a mode on the device of a Workspace, and the output of the MTTKRP that ran last. MTTKRPs of this
/// Workspace must have been of the same dims and rank since the factors were put there.
template <class T>
class DenseRows {
 public:
  DenseRows(Workspace& workspace, const Context& context, std::span<const std::uint64_t> dims, int mode,
            std::uint64_t rank);

  /// Takes the memory that solve needs, in any mode; false when that is more than a quarter of what the factors and the
  /// output leave: the tensor needs room as well. To be called before the MTTKRP, so that a tensor that passes through
  /// the device leaves it free.
  [[nodiscard]] bool reserve();
  /// A = V * W becomes the factor of the mode on the device. \param columns of W in memory, row by row
  [[nodiscard]] DenseSums solve(std::span<const double> w, std::uint64_t columns);
  /// Column r of the factor times scale[r].
  void scale(std::span<const double> scale);

  /// Copies V to the host.
  void read_output(FactorMatrix<T>& to);
  /// Copies the factor to the host.
  void read_factor(FactorMatrix<T>& to);
  /// Copies the factor from the host.
  void write_factor(const FactorMatrix<T>& from);
  /// What lies on the device is the factor as of Workspace::version: MTTKRPs need not copy it.
  void set_current();

 private:
  [[nodiscard]] std::uint64_t block() const;
  [[nodiscard]] std::uint64_t tiles() const { return (stride_ + tile_ - 1) / tile_; }
  [[nodiscard]] std::uint64_t pairs() const { return tiles() * (tiles() + 1) / 2; }
  [[nodiscard]] std::uint64_t numbers_of_chunk() const { return 2 * tile_ * tile_ * (pairs() + tiles()); }
  /// Chunks of rows, where work-groups cut them: a function of the shape and of `tile_` alone.
  [[nodiscard]] std::uint64_t most_chunks() const;
  [[nodiscard]] std::uint64_t chunk_rows() const;
  [[nodiscard]] std::uint64_t chunks() const { return (rows_ + chunk_rows() - 1) / chunk_rows(); }
  [[nodiscard]] View factors() { return state_.room("the factors", 0); }
  [[nodiscard]] View factor() { return {factors().memory, first_row_ * stride_ * sizeof(T)}; }
  [[nodiscard]] View output() { return state_.room("the output", 0); }
  [[nodiscard]] KernelPtr kernel(std::string_view function);
  void run(std::string_view function, const Grid& grid);
  void put_numbers(std::span<const T> numbers);
  template <class F>
  void finished(const F& put_into_queue);
  [[nodiscard]] DenseSums add_up(std::span<const T> partial) const;

  Workspace& workspace_;
  DeviceState& state_;
  int mode_;
  std::uint64_t rows_;
  std::uint64_t first_row_ = 0;
  std::uint64_t all_rows_ = 0;
  std::uint64_t longest_;  // mode
  std::uint64_t rank_;
  std::uint64_t stride_;
  std::uint64_t tile_;
  std::array<std::uint64_t, 4> head_ = {};
};

}  // namespace polyad::gpu
