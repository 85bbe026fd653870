// SPDX-License-Identifier: MIT
/// \file The contract of a TTV kernel:
///
///   Y(i without i_mode) = sum of x * vector[i_mode]
///
/// Y is a CooTensor of order N - 1 without duplicates, sorted by its modes, in the precision of the tensor; sums that
/// are 0 stay. Cost is counted in nanoseconds of one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "backends/cpu/threads.hpp"
#include "core/format.hpp"
#include "formats/fibre_rows.hpp"
#include "kernels/kernel.hpp"
#include "polyad/context.hpp"
#include "polyad/kernels.hpp"

namespace polyad {

/// What a kernel is asked.
struct TtvQuestion {
  const TensorBody& tensor;
  int mode = 0;
  const Context& context;

  [[nodiscard]] double nnz() const { return static_cast<double>(tensor.shape().nnz); }
};

/// What a kernel is given.
struct TtvRequest {
  const TensorBody& tensor;
  int mode = 0;
  std::span<const double> vector;  // [dims[mode]]
  const Context& context;

  [[nodiscard]] const TensorShape& shape() const { return tensor.shape(); }
  [[nodiscard]] int threads() const { return context.thread_count(); }
};

/// A line of kernels.list.
struct TtvKernel {
  KernelEntry entry;
  Answer (*ask)(const TtvQuestion&);
  CooTensor (*run)(const TtvRequest&);
};

/// Error (usage) when the tensor has no such mode or the vector is not as long as it.
void check_ttv(const Tensor& x, int mode, std::span<const double> vector);

/// The answer of a kernel on a format that is built for one mode.
[[nodiscard]] inline Answer ask_for_mode(const TtvQuestion& q, std::string_view format, int built_for, double cost,
                                         std::string reason) {
  if (built_for != q.mode)
    return cannot(fmt::format("this {} was built for mode {}, not for mode {}", format, built_for + 1, q.mode + 1));
  return can(cost, std::move(reason));
}

/// The vector in the precision of the tensor, so that a gather reads what it multiplies.
template <class T>
[[nodiscard]] Buffer<T> vector_as(const TtvRequest& r) {
  Buffer<T> v(r.context, r.vector.size(), "the vector of ttv");
  cpu::parallel_ranges(r.threads(), r.vector.size(), [&](std::uint64_t begin, std::uint64_t end) {
    std::transform(r.vector.begin() + static_cast<std::ptrdiff_t>(begin),
                   r.vector.begin() + static_cast<std::ptrdiff_t>(end), v.data() + begin,
                   [](double x) { return static_cast<T>(x); });
  });
  return v;
}

/// An empty result with room for `nnz` sums, its indices as wide as the tensor's.
[[nodiscard]] inline CooTensor ttv_result(const TtvRequest& r, std::uint64_t nnz) {
  std::vector<std::uint64_t> dims;
  for (const int m : modes_without(r.shape().order(), r.mode))
    dims.push_back(r.shape().dims[static_cast<std::size_t>(m)]);
  const std::size_t order = dims.size();
  CooTensor y = make_coo(std::move(dims), nnz, r.shape().precision, r.shape().index_width(), r.context);
  y.duplicates_merged = true;
  for (std::size_t m = 0; m < order; ++m) y.sorted_by.push_back(static_cast<int>(m));
  return y;
}

}  // namespace polyad
