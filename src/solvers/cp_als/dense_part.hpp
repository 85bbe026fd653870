// SPDX-License-Identifier: MIT
/// \file Where the dense part of an update runs. On the processor, V and A are the memory of the factor. With one
/// device, V stays there, and either becomes the factor there, so that only sums over rows come to the host, or comes
/// to the host, is solved there and goes back: whichever costs less.
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

/// The steps of an update that read or write rows. For each mode: mttkrp, solve (or what else the caller does with the
/// rows on the host), perhaps scale, finish.
template <class T>
class DensePart {
 public:
  DensePart() = default;
  DensePart(const DensePart&) = delete;
  DensePart& operator=(const DensePart&) = delete;
  virtual ~DensePart() = default;

  /// V of a mode, into `out` or to where solve finds it. \param to_host the caller wants it in `out`
  virtual void mttkrp(std::span<const FactorMatrix<T>> factors, int mode, FactorMatrix<T>& out, bool to_host) = 0;
  /// A = V * solution. \param factor where mttkrp was told to put V; A is put there, or stays on the device
  [[nodiscard]] virtual RowSums solve(FactorMatrix<T>& factor, int mode, const Small& solution) = 0;
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
};

/// For the devices of the context. The workspace's promise (keep_products) must have been made; it, the tensor and the
/// context must outlive what is returned.
template <class T>
[[nodiscard]] std::unique_ptr<DensePart<T>> make_dense_part(Tensor& x, const CpAlsOptions& options,
                                                            Workspace& workspace, const Context& context);

}  // namespace polyad::cp_als_detail
