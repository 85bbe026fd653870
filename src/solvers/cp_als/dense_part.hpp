// SPDX-License-Identifier: MIT
/// \file Where the dense part of an update runs. On the processor, V and A are the memory of the factor, and rows are
/// solved while the MTTKRP is under way. With one device, V stays there, and either becomes the factor there, so that
/// only sums over rows come to the host, or comes to the host, is solved there and goes back: whichever costs less.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "polyad/cp_als.hpp"
#include "polyad/kernels.hpp"
#include "polyad/tensor.hpp"
#include "solvers/cp_als/row_pass.hpp"

namespace polyad::cp_als_detail {

/// What an update makes of V.
template <class T>
struct RowTask {
  std::unique_ptr<RowSolver<T>> on_host;  // never null
  const Small* solution = nullptr;        // A = V * solution; null: something else, which only the host can
};

/// The steps of an update that read or write rows. For each mode: update, perhaps scale, finish.
template <class T>
class DensePart {
 public:
  DensePart() = default;
  DensePart(const DensePart&) = delete;
  DensePart& operator=(const DensePart&) = delete;
  virtual ~DensePart() = default;

  /// V of a mode, and the factor from it. \param out where V goes; A is put where the task puts it, or stays on the
  /// device
  [[nodiscard]] virtual RowSums update(std::span<const FactorMatrix<T>> factors, int mode, FactorMatrix<T>& out,
                                       const RowTask<T>& task) = 0;
  /// Column r of A times scale[r].
  virtual void scale(FactorMatrix<T>& factor, int mode, const std::vector<double>& scale) = 0;
  /// The factor of the mode is done.
  virtual void finish(const FactorMatrix<T>& factor, int mode) = 0;

  /// Brings to the host what is only on a device.
  virtual void bring(std::span<FactorMatrix<T>> factors) = 0;
  /// The caller has put other factors in the place of all, on the host.
  virtual void replaced() = 0;
  /// Where each mode was solved last: "host" or "device".
  [[nodiscard]] virtual std::vector<std::string_view> places() const = 0;
  /// Seconds that updates took beside the MTTKRPs.
  [[nodiscard]] double seconds() const noexcept { return seconds_; }

 protected:
  double seconds_ = 0;
};

/// For the devices of the context. The workspace's promise (keep_products) must have been made; it, the tensor and the
/// context must outlive what is returned.
template <class T>
[[nodiscard]] std::unique_ptr<DensePart<T>> make_dense_part(Tensor& x, const CpAlsOptions& options,
                                                            Workspace& workspace, const Context& context);

}  // namespace polyad::cp_als_detail
