// SPDX-License-Identifier: MIT
/// \file The kernels of kernels.list as data.
#include "polyad/registry.hpp"

#include "kernels/mttkrp/request.hpp"

namespace polyad {

#define POLYAD_MTTKRP(symbol) extern const MttkrpKernel symbol;
#include "lists/kernels.list"

std::span<const KernelEntry> kernels() {
  static const std::vector<KernelEntry> all = {
#define POLYAD_MTTKRP(symbol) symbol.entry,
#include "lists/kernels.list"
  };
  return all;
}

}  // namespace polyad
