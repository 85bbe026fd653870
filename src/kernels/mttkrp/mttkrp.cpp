// SPDX-License-Identifier: MIT
/// \file Which kernel does an MTTKRP, and the call to it.
#include <array>

#include "kernels/mttkrp/request.hpp"
#include "kernels/mttkrp/update_rows.hpp"
#include "polyad/kernels.hpp"

namespace polyad {

#define POLYAD_MTTKRP(symbol) extern const MttkrpKernel symbol;
#include "lists/kernels.list"

namespace {

constexpr auto all_kernels = std::to_array<const MttkrpKernel*>({
#define POLYAD_MTTKRP(symbol) &(symbol),
#include "lists/kernels.list"
});

Chosen<MttkrpKernel> chosen_for(const Tensor& x, int mode, std::uint64_t rank, const Context& context,
                                std::string_view kernel) {
  if (mode < 0 || mode >= x.order())
    throw usage_error(fmt::format("mttkrp: mode {} of a tensor with {} modes", mode + 1, x.order()));
  if (rank == 0) throw usage_error("mttkrp: rank 0; it must be at least 1");
  const MttkrpQuestion question{x.body(mode), mode, rank, context};
  return choose<MttkrpKernel>(all_kernels, question, kernel, context.deterministic);
}

template <class T>
void check_shapes(const Tensor& x, std::span<const FactorMatrix<T>> factors, int mode, const FactorMatrix<T>& out) {
  if (x.precision() != (sizeof(T) == 4 ? Precision::f32 : Precision::f64))
    throw usage_error(fmt::format("mttkrp: the tensor is {}, the factors are {}", name_of(x.precision()),
                                  sizeof(T) == 4 ? "f32" : "f64"));
  if (factors.size() != x.dims().size())
    throw usage_error(fmt::format("mttkrp: {} factors for a tensor of order {}", factors.size(), x.order()));
  for (std::size_t m = 0; m < factors.size(); ++m) {
    const FactorMatrix<T>& f = static_cast<int>(m) == mode ? out : factors[m];
    if (f.rows() != x.dims()[m] || f.cols() != out.cols())
      throw usage_error(fmt::format("mttkrp: the {} of mode {} is {} x {}, expected {} x {}",
                                    static_cast<int>(m) == mode ? "output" : "factor", m + 1, f.rows(), f.cols(),
                                    x.dims()[m], out.cols()));
  }
}

}  // namespace

std::span<const MttkrpKernel* const> mttkrp_kernels() { return all_kernels; }

KernelChoice mttkrp_choice(const Tensor& x, int mode, std::uint64_t rank, const Context& context,
                           std::string_view kernel) {
  Chosen<MttkrpKernel> chosen = chosen_for(x, mode, rank, context, kernel);
  return {chosen.kernel->entry.name, std::move(chosen.why)};
}

template <class T>
KernelChoice mttkrp(Tensor& x, std::span<const FactorMatrix<T>> factors, int mode, FactorMatrix<T>& out,
                    Workspace& workspace, const Context& context, std::string_view kernel, RowUpdate<T>* update) {
  Chosen<MttkrpKernel> chosen = chosen_for(x, mode, out.cols(), context, kernel);
  check_shapes(x, factors, mode, out);
  PendingUpdate<T> pending{update};
  const MttkrpRequest<T> request{x.body(mode), factors, mode, out, workspace, context, pending};
  if constexpr (sizeof(T) == 4) {
    chosen.kernel->run_f32(request);
  } else {
    chosen.kernel->run_f64(request);
  }
  if (pending.update != nullptr) update_rows(out, *pending.update, context);
  return {chosen.kernel->entry.name, std::move(chosen.why)};
}

template KernelChoice mttkrp(Tensor&, std::span<const FactorMatrix<float>>, int, FactorMatrix<float>&, Workspace&,
                             const Context&, std::string_view, RowUpdate<float>*);
template KernelChoice mttkrp(Tensor&, std::span<const FactorMatrix<double>>, int, FactorMatrix<double>&, Workspace&,
                             const Context&, std::string_view, RowUpdate<double>*);

}  // namespace polyad
