// SPDX-License-Identifier: MIT
/// \file The kernels of kernels.list as data.
#include "polyad/registry.hpp"

#include "kernels/mttkrp/request.hpp"
#include "kernels/scalar/scalar.hpp"
#include "kernels/ttm/request.hpp"
#include "kernels/ttv/request.hpp"

namespace polyad {

#define POLYAD_MTTKRP(symbol) extern const MttkrpKernel symbol;
#define POLYAD_TTV(symbol) extern const TtvKernel symbol;
#define POLYAD_TTM(symbol) extern const TtmKernel symbol;
#define POLYAD_SCALAR(symbol) extern const ScalarKernel symbol;
#include "lists/kernels.list"

std::span<const KernelEntry> kernels() {
  static const std::vector<KernelEntry> all = {
#define POLYAD_MTTKRP(symbol) (symbol).entry,
#define POLYAD_TTV(symbol) (symbol).entry,
#define POLYAD_TTM(symbol) (symbol).entry,
#define POLYAD_SCALAR(symbol) (symbol).entry,
#include "lists/kernels.list"
  };
  return all;
}

}  // namespace polyad
