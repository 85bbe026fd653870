// SPDX-License-Identifier: MIT
#include "io/text_writer.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <string>

#include "backends/cpu/ordered_pipeline.hpp"
#include "io/text_numbers.hpp"

namespace polyad::io {

namespace {

// Text that stays in the L2 cache until it is handed over; blocks that are compressed by themselves want to be larger.
constexpr std::uint64_t plain_block = std::uint64_t{1} << 13U;
constexpr std::uint64_t compressed_block = std::uint64_t{1} << 16U;

struct Block {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::unique_ptr<char[]> text;
  std::size_t bytes = 0;
  std::string encoded;
};

/// Writes the lines of nonzeros [begin, end) at p and returns the end. What the loop reads is copied to locals first:
/// stores through a char* could change anything else, and everything would be loaded again for each number.
template <class Index, class Value>
char* format_lines(const CooView<Index, Value>& view, std::uint64_t begin, std::uint64_t end, std::uint64_t base,
                   char* p) {
  const int order = view.order;
  const std::array<Index*, max_order> indices = view.indices;
  Value* const values = view.values;
  for (std::uint64_t k = begin; k < end; ++k) {
    for (int m = 0; m < order; ++m) {
      p = format_index(p, static_cast<std::uint64_t>(indices[static_cast<std::size_t>(m)][k]) + base);
      *p++ = ' ';
    }
    p = format_value(p, values[k]);
    *p++ = '\n';
  }
  return p;
}

}  // namespace

void write_lines(const CooTensor& x, OutputFile& output, int base, const Context& context) {
  const std::size_t longest = static_cast<std::size_t>(x.order()) * 21 + 41;
  const std::uint64_t nonzeros_per_block = output.is_compressed() ? compressed_block : plain_block;
  std::uint64_t next = 0;
  visit(x, [&]<class Index, class Value>(const CooView<Index, Value>& v) {
    cpu::ordered_pipeline<Block>(
        v.nnz <= nonzeros_per_block ? 1 : context.thread_count(),
        [&](Block& block) {
          if (next == v.nnz) return false;
          block.begin = next;
          next = block.end = std::min(next + nonzeros_per_block, v.nnz);
          return true;
        },
        [&](Block& block) {
          if (!block.text) block.text = std::make_unique_for_overwrite<char[]>(longest * nonzeros_per_block);
          char* const end = format_lines(v, block.begin, block.end, static_cast<std::uint64_t>(base), block.text.get());
          block.bytes = static_cast<std::size_t>(end - block.text.get());
          if (output.is_compressed()) block.encoded = output.encode({block.text.get(), block.bytes});
        },
        [&](Block& block) {
          output.write_encoded(output.is_compressed() ? std::string_view(block.encoded)
                                                      : std::string_view(block.text.get(), block.bytes));
          context.report({"writing", block.end, v.nnz, "nonzeros"});
        });
  });
}

}  // namespace polyad::io
