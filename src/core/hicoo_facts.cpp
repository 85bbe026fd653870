// SPDX-License-Identifier: MIT
#include <cmath>
#include <numeric>

#include "backends/cpu/threads.hpp"
#include "polyad/hicoo.hpp"
#include "polyad/operations.hpp"

namespace polyad {

HicooFacts hicoo_facts(const CooTensor& x, const Context& context, const FormatOptions& options) {
  HicooFacts facts;
  facts.block_bits = options.block_bits > 0 ? options.block_bits : 7;
  facts.alpha_limit = (32.0 - 8) / (32 + 64.0 / x.order());
  const auto bits = static_cast<unsigned>(facts.block_bits);
  if (x.nnz() == 0) return facts;

  // The coordinates of the blocks, sorted: equal ones are one block.
  CooTensor blocks = clone(x, context);
  visit(blocks, [&](const auto& v) {
    for (int m = 0; m < v.order; ++m) {
      auto* indices = v.indices[static_cast<std::size_t>(m)];
      cpu::parallel_ranges(context.thread_count(), v.nnz, [&](std::uint64_t begin, std::uint64_t end) {
        for (std::uint64_t k = begin; k < end; ++k) indices[k] >>= bits;
      });
    }
  });
  blocks.sorted_by.clear();
  std::vector<int> modes(x.dims.size());
  std::iota(modes.begin(), modes.end(), 0);
  sort_nonzeros(blocks, modes, context);

  visit(std::as_const(blocks), [&](const auto& v) {
    const auto same = [&](std::uint64_t k) {
      for (int m = 0; m < v.order; ++m) {
        const auto* indices = v.indices[static_cast<std::size_t>(m)];
        if (indices[k] != indices[k - 1]) return false;
      }
      return true;
    };
    std::uint64_t count = 0;
    double logs = 0;  // of the nonzeros per block
    std::uint64_t begin = 0;
    for (std::uint64_t k = 1; k <= v.nnz; ++k) {
      if (k < v.nnz && same(k)) continue;
      ++count;
      logs += std::log(static_cast<double>(k - begin));
      begin = k;
    }
    facts.blocks = count;
    facts.alpha_b = static_cast<double>(count) / static_cast<double>(v.nnz);
    facts.mean_nonzeros = std::exp(logs / static_cast<double>(count));
    facts.c_b = facts.mean_nonzeros / static_cast<double>(1U << bits);
  });
  return facts;
}

}  // namespace polyad
