// SPDX-License-Identifier: MIT
#include "polyad/generate.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "backends/cpu/threads.hpp"
#include "generate/cells.hpp"
#include "generate/clusters.hpp"
#include "generate/portable_math.hpp"
#include "generate/random.hpp"
#include "generate/shape.hpp"

namespace polyad {

namespace {

using namespace synthetic;

/// Replaces the zeros by values about 1 with a heavy upper tail: exp(0.7 g), g nearly normal, rounded to four decimals
/// so that they are short as text; from 0.0885 to 11.3. g is the sum of four uniforms scaled to mean 0 and variance 1.
void draw_values(CooTensor& x, Precision precision, const Context& context) {
  const std::uint64_t nnz = x.nnz();
  const portable::Key key(context.seed, "generate/values");
  const auto fill = [&]<class Value>(Buffer<Value> values) {
    cpu::parallel_ranges(context.thread_count(), nnz, [&](std::uint64_t begin, std::uint64_t end) {
      for (std::uint64_t k = begin; k < end; ++k) {
        const portable::Block b = portable::block_at(key, 0, k);
        const std::uint64_t sum = std::uint64_t{b[0]} + b[1] + b[2] + b[3];
        const double g = (static_cast<double>(sum) * 0x1.0p-32 - 2) * 1.7320508;
        values[k] = static_cast<Value>(std::floor(portable::exp(0.7 * g) * 10000 + 0.5) / 10000);
      }
    });
    x.values = std::move(values);
  };
  x.values = Buffer<float>();  // first, so that both are never held
  if (precision == Precision::f32) {
    fill(Buffer<float>(context, nnz, "generated values"));
  } else {
    fill(Buffer<double>(context, nnz, "generated values"));
  }
}

/// Exactly options.nnz > 0 coordinates, sorted; values 0.
CooTensor draw_coordinates(const GenerateOptions& options, const Context& context) {
  const std::uint64_t nnz = options.nnz;
  const std::uint64_t cells = cell_count(options.dims);
  // More than half of the cells: chance would hit the same ones again and again.
  if (nnz > cells / 2) return choose_cells(options.dims, nnz, context);

  const bool is_numbered = cells <= std::uint64_t{1} << 63U;
  const bool is_uniform = options.burst == 1 && std::ranges::all_of(options.skew, [](double a) { return a == 0; });
  if (is_uniform && is_numbered) {
    CooTensor x = draw_cells(options.dims, 0, nnz - 1, context);
    append_last_cell(x);
    make_set(x, context);
    return x;
  }

  CooTensor x = draw_clusters(options, 0, nnz + nnz / 50 + 16, context);
  append_last_cell(x);
  double drawn = static_cast<double>(x.nnz());
  make_set(x, context);
  double accepted = static_cast<double>(x.nnz());
  std::uint64_t visited = 0;  // of the sequence of draw_cells
  // A round that misses is followed by one of the right size for the share that the round before brought in. When fewer
  // than one in eight are new (strong skew on few cells), the rest is filled from all cells alike: with more than half
  // of them free that ends soon, and for certain, since no cell is visited twice.
  bool is_stuck = false;
  for (std::uint64_t round = 1; x.nnz() < nnz; ++round) {
    const std::uint64_t have = x.nnz();
    context.report({"generating", have, nnz, "nonzeros"});
    const double need = static_cast<double>(nnz - have);
    is_stuck = is_stuck || accepted < drawn / 8;
    const double rate = is_stuck ? 1 - static_cast<double>(have) / static_cast<double>(cells) : accepted / drawn;
    std::uint64_t batch = static_cast<std::uint64_t>(std::min(need / rate * 1.05, static_cast<double>(nnz) / 2)) + 16;
    CooTensor more;
    if (is_stuck) {
      if (is_numbered) batch = std::min(batch, cells - 1 - visited);
      more = draw_cells(options.dims, visited, batch, context);
      visited += batch;
    } else {
      more = draw_clusters(options, round, batch, context);
    }
    drawn = static_cast<double>(more.nnz());
    make_set(more, context);
    unite(x, more, context);
    accepted = static_cast<double>(x.nnz() - have);
  }
  thin(x, nnz, context);
  return x;
}

}  // namespace

CooTensor generate(const GenerateOptions& given, const Context& context) {
  const GenerateOptions options = completed(given);
  context.report({"generating", 0, options.nnz, "nonzeros"});
  CooTensor x =
      options.nnz == 0 ? make_coo(options.dims, 0, Precision::f32, context) : draw_coordinates(options, context);
  draw_values(x, options.precision, context);
  x.sorted_by.resize(options.dims.size());
  std::iota(x.sorted_by.begin(), x.sorted_by.end(), 0);
  x.duplicates_merged = true;
  context.report({"generating", options.nnz, options.nnz, "nonzeros"});
  return x;
}

}  // namespace polyad
