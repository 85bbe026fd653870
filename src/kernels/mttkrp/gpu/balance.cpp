// SPDX-License-Identifier: MIT
/// \file How equal the work of groups is, from the parts themselves.
#include <limits>

#include "kernels/mttkrp/gpu/cutters.hpp"
#include "polyad/error.hpp"

namespace polyad {

std::vector<GroupBalance> mttkrp_balance(const Tensor& x, int mode, std::string_view kernel) {
  for (const MttkrpKernel* k : mttkrp_kernels()) {
    if (k->entry.name != kernel || k->cut == nullptr) continue;
    const TensorBody& body = x.body(mode);
    const Context context;
    const Answer answer = k->ask({body, mode, 1, context});
    if (!answer.can) throw usage_error(fmt::format("kernel {} cannot do this: {}", kernel, answer.reason));
    gpu::CutRequest request;
    request.mode = mode;
    request.stride = 4;
    request.most_bytes = std::numeric_limits<std::uint64_t>::max();
    std::vector<GroupBalance> all;
    for (const gpu::PartGroup& group : k->cut(body, request)) all.push_back(gpu::balance_of(group));
    return all;
  }
  throw usage_error(fmt::format("there is no kernel '{}' that runs on devices", kernel));
}

}  // namespace polyad
