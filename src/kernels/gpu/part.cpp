// SPDX-License-Identifier: MIT
#include "kernels/gpu/part.hpp"

#include <algorithm>

namespace polyad::gpu {

std::vector<std::uint64_t> head_of(const Part& part, std::span<const std::uint64_t> factor_rows) {
  std::vector<std::uint64_t> head = part.numbers;
  std::uint64_t at = 0;
  for (const auto& a : part.arrays) {
    head.push_back(at);
    at += (a.size() + slot_alignment - 1) / slot_alignment * slot_alignment;
  }
  head.insert(head.end(), factor_rows.begin(), factor_rows.end());
  return head;
}

GroupBalance balance_of(const PartGroup& group) {
  GroupBalance b;
  std::uint64_t nnz = 0;
  for (const Part& p : group.parts) {
    b.groups += p.groups;
    nnz += p.nnz;
    b.heaviest = std::max(b.heaviest, group.heaviest(p));
  }
  if (b.groups > 0) b.mean = static_cast<double>(nnz) / static_cast<double>(b.groups);
  return b;
}

}  // namespace polyad::gpu
