// SPDX-License-Identifier: MIT
/// \file The contract of an MTTKRP kernel:
///
///   out(k,:) = sum over nonzeros with i_mode = k of x * Hadamard product over m != mode of factors[m](i_m,:)
///
/// `out` is overwritten, padding included; factors are padded with zeros. Cost is counted in nanoseconds of one thread.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/format.hpp"
#include "kernels/kernel.hpp"
#include "polyad/context.hpp"
#include "polyad/kernels.hpp"
#include "polyad/matrix.hpp"

namespace polyad {

namespace gpu {
struct CutRequest;
struct PartGroup;
/// Gives the parts of a tensor for one kernel that runs on devices.
using Cutter = std::vector<PartGroup> (*)(const TensorBody& tensor, const CutRequest& request);
}  // namespace gpu

/// What a kernel is asked.
struct MttkrpQuestion {
  const TensorBody& tensor;
  int mode = 0;
  std::uint64_t rank = 0;
  const Context& context;

  [[nodiscard]] int threads() const { return context.thread_count(); }
  [[nodiscard]] std::uint64_t rows() const { return tensor.shape().dims[static_cast<std::size_t>(mode)]; }
};

/// The caller's update of rows, until a kernel takes it on.
template <class T>
struct PendingUpdate {
  RowUpdate<T>* update = nullptr;

  /// The update if there is one and it can have so many parts: whoever took it on gives it every row.
  [[nodiscard]] RowUpdate<T>* take_on(std::uint64_t parts) {
    if (update == nullptr || parts > update->most_parts()) return nullptr;
    update->begin(parts);
    return std::exchange(update, nullptr);
  }
};

/// What a kernel is given.
template <class T>
struct MttkrpRequest {
  TensorBody& tensor;
  std::span<const FactorMatrix<T>> factors;  // [order], that of `mode` is not read
  int mode = 0;
  FactorMatrix<T>& out;
  Workspace& workspace;
  const Context& context;
  PendingUpdate<T>& pending;  // rows are given to it afterwards, unless the kernel takes it on

  [[nodiscard]] int order() const { return tensor.shape().order(); }
  [[nodiscard]] std::uint64_t nnz() const { return tensor.shape().nnz; }
  [[nodiscard]] std::uint64_t stride() const { return out.stride(); }
  [[nodiscard]] int threads() const { return context.thread_count(); }
};

/// A line of kernels.list.
struct MttkrpKernel {
  KernelEntry entry;
  Answer (*ask)(const MttkrpQuestion&);
  void (*run_f32)(const MttkrpRequest<float>&);
  void (*run_f64)(const MttkrpRequest<double>&);
  gpu::Cutter cut = nullptr;  ///< of kernels that run on devices
};

/// All lines of kernels.list for MTTKRP.
[[nodiscard]] std::span<const MttkrpKernel* const> mttkrp_kernels();

/// What the purposes of a Workspace are.
enum WorkspacePurpose : int {
  private_outputs,
  boundary_rows,
  fibre_products,  ///< sweep: per fibre the sum of value * row of its leaves
  leaf_table,      ///< sweep, merged: products of the rows of merged modes
  leaf_sums,  ///< sweep: per merged leaf the sum of value * row of its fibre, one for each thread; merged: sums of a
              ///< merged mode
  chunk_products,  ///< sweep: fibre products of the chunk that a thread works on
  next_outputs,    ///< sweep: what threads have added up for the mode that comes next
  near_rows        ///< rows of the chunks that threads work on
};

/// Nanoseconds one thread takes for a row of `rank` columns in a loop over nonzeros, roughly: 1 ns per 16 columns and
/// factor read. Only the order of kernels matters.
[[nodiscard]] inline double row_cost(const MttkrpQuestion& q) {
  return static_cast<double>(q.tensor.shape().nnz) * static_cast<double>(q.tensor.shape().order()) *
         (1.0 + static_cast<double>(q.rank) / 16.0);
}

}  // namespace polyad
