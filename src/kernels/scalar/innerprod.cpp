// SPDX-License-Identifier: MIT
/// \file <X, M>: the loop of MTTKRP with all factors and one row of output, then the weights.
#include <numeric>
#include <vector>

#include "kernels/mttkrp/nonzero_loop.hpp"
#include "kernels/scalar/scalar.hpp"

namespace polyad {

extern const ScalarKernel innerprod_generic;
const ScalarKernel innerprod_generic = {
    {{"innerprod/generic", "decodes blocks, multiplies all factor rows in registers, sums in fixed chunks"},
     "innerprod",
     "any",
     true}};

namespace {

constexpr std::uint64_t chunk_nonzeros = 8192;

void check_shapes(const Tensor& x, const CpModel& model) {
  if (model.order() != x.order())
    throw usage_error(fmt::format("innerprod: a model of order {} and a tensor of order {}", model.order(), x.order()));
  for (std::size_t m = 0; m < model.factors.size(); ++m) {
    const Matrix& a = model.factors[m];
    if (a.rows != x.dims()[m] || a.cols != model.rank())
      throw usage_error(fmt::format("innerprod: the factor of mode {} is {} x {}, expected {} x {}", m + 1, a.rows,
                                    a.cols, x.dims()[m], model.rank()));
  }
}

std::vector<FactorMatrix<double>> padded_factors(const CpModel& model, const Context& context) {
  std::vector<FactorMatrix<double>> all;
  for (const Matrix& a : model.factors) {
    FactorMatrix<double>& f = all.emplace_back(context, a.rows, a.cols);
    cpu::parallel_ranges(
        context.thread_count(), a.rows,
        [&](std::uint64_t begin, std::uint64_t end) {
          for (std::uint64_t i = begin; i < end; ++i) std::copy_n(a.values.data() + i * a.cols, a.cols, f.row(i));
        },
        1024);
  }
  return all;
}

/// sums[c][r] = sum over the nonzeros of chunk c of x * product over all modes of factors(i, r).
template <class Index, class Value>
void sum_chunks(const TensorBody& x, const std::vector<FactorMatrix<double>>& factors, FactorMatrix<double>& sums,
                const Context& context) {
  const TensorShape& shape = x.shape();
  NonzeroLoop<Index, double> plan;
  plan.inputs = shape.order();
  std::vector<std::size_t> modes(factors.size());  // the largest factor first: those are prefetched
  std::iota(modes.begin(), modes.end(), std::size_t{0});
  std::stable_sort(modes.begin(), modes.end(),
                   [&](std::size_t a, std::size_t b) { return factors[a].rows() > factors[b].rows(); });
  for (std::size_t i = 0; i < modes.size(); ++i) {
    plan.factors[i] = factors[modes[i]].data();
    if (factors[modes[i]].bytes() >= worth_prefetching) ++plan.prefetched;
  }
  plan.stride = sums.stride();
  plan.cols = sums.cols();
  plan.runs = true;
  cpu::parallel_ranges(
      context.thread_count(), sums.rows(),
      [&](std::uint64_t first, std::uint64_t last) {
        NonzeroBlock<Index, Value> block(shape.order());
        std::vector<Index> rows;  // zeros: all go to one row
        std::array<double, loop_nonzeros> numbers;
        NonzeroLoop<Index, double> loop = plan;
        loop.values = numbers.data();
        loop.sink.stride = sums.stride();
        for (std::uint64_t c = first; c < last; ++c) {
          loop.sink.out = sums.row(c);
          const std::uint64_t end = std::min(shape.nnz, (c + 1) * chunk_nonzeros);
          for (std::uint64_t k = c * chunk_nonzeros; k < end; k += loop_nonzeros) {
            loop.count = static_cast<std::size_t>(std::min<std::uint64_t>(end - k, loop_nonzeros));
            loop.available =
                static_cast<std::size_t>(std::min<std::uint64_t>(shape.nnz - k, loop.count + prefetch_distance));
            x.decode(k, loop.available, block);
            for (std::size_t i = 0; i < modes.size(); ++i) loop.indices[i] = block.indices[modes[i]];
            loop.index_stride = block.index_stride;
            rows.resize(loop.available * block.index_stride);
            loop.rows = rows.data();
            std::copy_n(block.values, loop.count, numbers.data());
            add_nonzeros(loop);
          }
        }
      },
      1);
}

}  // namespace

double innerprod(const Tensor& x, const CpModel& model, const Context& context) {
  check_shapes(x, model);
  if (x.nnz() == 0 || model.rank() == 0) return 0;
  const std::vector<FactorMatrix<double>> factors = padded_factors(model, context);
  FactorMatrix<double> sums(context, (x.nnz() + chunk_nonzeros - 1) / chunk_nonzeros, model.rank(),
                            "the partial sums of innerprod");
  const TensorBody& body = x.body(0);
  with_types(body.shape(), [&]<class Index, class Value>() { sum_chunks<Index, Value>(body, factors, sums, context); });
  double total = 0;
  for (std::uint64_t c = 0; c < sums.rows(); ++c)
    for (std::uint64_t r = 0; r < sums.cols(); ++r) total += model.weights[r] * sums(c, r);
  return total;
}

}  // namespace polyad
