// SPDX-License-Identifier: MIT
#include "kernels/gpu/part.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "polyad/error.hpp"

namespace polyad::gpu {

std::vector<std::uint64_t> head_of(const Part& part, std::span<const std::uint64_t> factor_rows) {
  std::vector<std::uint64_t> head = part.numbers;
  std::uint64_t at = 0;
  for (const auto& a : part.arrays) {
    head.push_back(at);
    at += aligned(a.size());
  }
  head.insert(head.end(), factor_rows.begin(), factor_rows.end());
  return head;
}

std::vector<std::size_t> share_out(std::span<const std::uint64_t> nnz, std::size_t devices) {
  const auto all = static_cast<double>(std::max<std::uint64_t>(1, std::reduce(nnz.begin(), nnz.end())));
  std::vector<std::size_t> device_of;
  double before = 0;
  for (const std::uint64_t own : nnz) {
    // Where the middle of the part is.
    const double middle = before + static_cast<double>(own) / 2;
    device_of.push_back(std::min(static_cast<std::size_t>(middle / all * static_cast<double>(devices)), devices - 1));
    before += static_cast<double>(own);
  }
  return device_of;
}

void check_numbers(const Facts& facts, std::size_t bytes) {
  if (bytes == sizeof(double) && !facts.has_f64)
    throw usage_error(fmt::format("{} ({}) has no double precision; take --precision f32, or another device",
                                  facts.name, facts.description));
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
