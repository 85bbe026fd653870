// SPDX-License-Identifier: MIT
/// \file Which kernel does a TTV, and the call to it.
#include <array>

#include "kernels/ttv/request.hpp"
#include "polyad/kernels.hpp"

namespace polyad {

#define POLYAD_TTV(symbol) extern const TtvKernel symbol;
#include "lists/kernels.list"

namespace {

constexpr auto all_kernels = std::to_array<const TtvKernel*>({
#define POLYAD_TTV(symbol) &(symbol),
#include "lists/kernels.list"
});

}  // namespace

void check_ttv(const Tensor& x, int mode, std::span<const double> vector) {
  if (mode < 0 || mode >= x.order())
    throw usage_error(fmt::format("ttv: mode {} of a tensor with {} modes", mode + 1, x.order()));
  const std::uint64_t dim = x.dims()[static_cast<std::size_t>(mode)];
  if (vector.size() != dim)
    throw usage_error(
        fmt::format("ttv: a vector of {} numbers for mode {}, whose length is {}", vector.size(), mode + 1, dim));
}

CooTensor ttv(const Tensor& x, int mode, std::span<const double> vector, const Context& context,
              std::string_view kernel, KernelChoice* choice) {
  check_ttv(x, mode, vector);
  const TensorBody& body = x.body(mode);
  Chosen<TtvKernel> chosen =
      choose<TtvKernel>(all_kernels, TtvQuestion{body, mode, context}, kernel, context.deterministic);
  context.report({"multiplying", 0, x.nnz(), "nonzeros"});
  CooTensor y = chosen.kernel->run({body, mode, vector, context});
  context.report({"multiplying", x.nnz(), x.nnz(), "nonzeros"});
  if (choice != nullptr) *choice = {chosen.kernel->entry.name, std::move(chosen.why)};
  return y;
}

}  // namespace polyad
