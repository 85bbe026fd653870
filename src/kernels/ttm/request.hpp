// SPDX-License-Identifier: MIT
/// \file The contract of a TTM kernel:
///
///   Y(i without i_mode, j) = sum of x * matrix(j, i_mode)
///
/// a dense row per non-empty fibre of the mode, in f64 whatever the precision of the tensor.
#pragma once

#include <cstdint>

#include "core/format.hpp"
#include "kernels/kernel.hpp"
#include "polyad/context.hpp"
#include "polyad/kernels.hpp"

namespace polyad {

/// What a kernel is asked.
struct TtmQuestion {
  const TensorBody& tensor;
  int mode = 0;
  const Context& context;
};

/// What a kernel is given.
struct TtmRequest {
  const Tensor& x;
  int mode = 0;
  const Matrix& matrix;  // J x dims[mode]
  const Context& context;
};

/// A line of kernels.list.
struct TtmKernel {
  KernelEntry entry;
  Answer (*ask)(const TtmQuestion&);
  SemiSparseTensor (*run)(const TtmRequest&);
};

}  // namespace polyad
