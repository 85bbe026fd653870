// SPDX-License-Identifier: MIT
/// \file TTM on CFB, whose fibres become the rows of the result, and on any format by way of CFB.
#include "formats/cfb/cfb.hpp"
#include "kernels/mttkrp/nonzero_loop.hpp"
#include "kernels/ttm/request.hpp"

namespace polyad {

#define POLYAD_TTM(symbol) extern const TtmKernel symbol;
#include "lists/kernels.list"

namespace {

/// Nonzeros of a chunk; chunks do not depend on the number of threads, so neither do the sums.
constexpr std::uint64_t chunk_nonzeros = 8192;

/// matrix' with padded rows: the row of an index is what its nonzeros are multiplied by.
FactorMatrix<double> transposed(const Matrix& matrix, const Context& context) {
  FactorMatrix<double> t(context, matrix.cols, matrix.rows, "the transposed matrix of ttm");
  cpu::parallel_ranges(
      context.thread_count(), matrix.cols,
      [&](std::uint64_t begin, std::uint64_t end) {
        for (std::uint64_t i = begin; i < end; ++i)
          for (std::uint64_t j = 0; j < matrix.rows; ++j) t(i, j) = matrix(j, i);
      },
      256);
  return t;
}

/// Coordinates of the fibres, all values 1.
CooTensor fibre_coordinates(const Cfb& cfb, const Context& context) {
  std::vector<std::uint64_t> dims;
  const TensorShape& shape = cfb.shape();
  for (const int m : modes_without(shape.order(), cfb.mode)) dims.push_back(shape.dims[static_cast<std::size_t>(m)]);
  const std::size_t order = dims.size();
  CooTensor f = make_coo(std::move(dims), cfb.fibres(), shape.precision, shape.index_width(), context);
  f.duplicates_merged = true;
  for (std::size_t m = 0; m < order; ++m) f.sorted_by.push_back(static_cast<int>(m));
  with_types(shape, [&]<class Index, class Value>() {
    cpu::parallel_ranges(context.thread_count(), cfb.fibres(), [&](std::uint64_t begin, std::uint64_t end) {
      std::array<Index*, max_order> out = {};
      for (std::size_t m = 0; m < order; ++m) out[m] = typed<Index>(f.indices[m]) + begin;
      cfb.fibre_indices(begin, end, out);
      std::fill(typed<Value>(f.values) + begin, typed<Value>(f.values) + end, Value{1});
    });
  });
  return f;
}

/// rows(f,:) = sum over the nonzeros of fibre f of x * matrix(:, i)': the loop of MTTKRP with one factor, where the
/// fibre is the row of the output. Chunks share at most their first and last row.
template <class Index, class Value>
void add_fibres(const Cfb& cfb, const FactorMatrix<double>& factor, const MttkrpRequest<double>& r) {
  const std::uint64_t nnz = cfb.shape().nnz;
  const std::uint64_t chunks = (nnz + chunk_nonzeros - 1) / chunk_nonzeros;
  const auto* indices = typed<Index>(cfb.indices);
  const auto* values = typed<Value>(cfb.values);
  BoundaryRows<double> boundary(r, chunks);
  cpu::for_each_chunk(r.threads(), chunks, [&](std::uint64_t c, int) {
    const std::uint64_t begin = c * chunk_nonzeros;
    const std::uint64_t end = std::min(nnz, begin + chunk_nonzeros);
    const std::uint64_t first = cfb.begins.group_of(begin);
    std::array<Index, loop_nonzeros> rows;  // fibres counted from the first of the chunk: they always fit an Index
    std::array<double, loop_nonzeros> numbers;
    NonzeroLoop<Index, double> loop;
    loop.inputs = 1;
    loop.factors[0] = factor.data();
    loop.prefetched = factor.bytes() >= worth_prefetching ? 1 : 0;
    loop.rows = rows.data();
    loop.values = numbers.data();
    loop.stride = r.stride();
    loop.cols = r.out.cols();
    loop.runs = true;
    loop.sink = boundary.sink(c, first, cfb.begins.group_after(first, end - 1));
    loop.sink.out += first * r.stride();
    loop.sink.last_row -= first;
    loop.sink.first_row = 0;
    std::uint64_t fibre = first;
    for (std::uint64_t k = begin; k < end; k += loop_nonzeros) {
      loop.count = static_cast<std::size_t>(std::min<std::uint64_t>(end - k, loop_nonzeros));
      loop.available = static_cast<std::size_t>(std::min<std::uint64_t>(nnz - k, loop.count + prefetch_distance));
      loop.indices[0] = indices + k;
      for (std::size_t i = 0; i < loop.count; ++i) {
        while (cfb.begins[fibre + 1] <= k + i) ++fibre;
        rows[i] = static_cast<Index>(fibre - first);
        numbers[i] = static_cast<double>(values[k + i]);
      }
      add_nonzeros(loop);
    }
  });
  boundary.finish();
}

SemiSparseTensor ttm_of(const Cfb& cfb, const TtmRequest& t) {
  const FactorMatrix<double> factor = transposed(t.matrix, t.context);
  SemiSparseTensor y{t.mode, fibre_coordinates(cfb, t.context),
                     FactorMatrix<double>(t.context, cfb.fibres(), t.matrix.rows, "the rows of ttm")};
  Workspace workspace;
  PendingUpdate<double> nothing;
  const MttkrpRequest<double> request{t.x.body(t.mode), {}, t.mode, y.rows, workspace, t.context, nothing};
  with_types(cfb.shape(), [&]<class Index, class Value>() { add_fibres<Index, Value>(cfb, factor, request); });
  return y;
}

constexpr auto all_kernels = std::to_array<const TtmKernel*>({
#define POLYAD_TTM(symbol) &(symbol),
#include "lists/kernels.list"
});

}  // namespace

extern const TtmKernel ttm_cfb_fibres;
const TtmKernel ttm_cfb_fibres = {
    {{"ttm/cfb/fibres", "every non-empty fibre becomes a dense row"}, "ttm", "cfb", true},
    [](const TtmQuestion& q) {
      const auto* c = get_if<Cfb>(q.tensor);
      if (c == nullptr) return cannot("it works on cfb");
      if (c->mode != q.mode)
        return cannot(fmt::format("this cfb was built for mode {}, not for mode {}", c->mode + 1, q.mode + 1));
      return can(static_cast<double>(q.tensor.shape().nnz), "its fibres are the rows of the result");
    },
    [](const TtmRequest& r) { return ttm_of(*get_if<Cfb>(r.x.body(r.mode)), r); }};

extern const TtmKernel ttm_generic;
const TtmKernel ttm_generic = {{{"ttm/generic", "builds cfb for the mode, then as there"}, "ttm", "any", true},
                               [](const TtmQuestion& q) {
                                 return can(30 * static_cast<double>(q.tensor.shape().nnz) + 1e3,
                                            "works on every format");
                               },
                               [](const TtmRequest& r) {
                                 FormatOptions options;
                                 options.mode = r.mode;
                                 return ttm_of(Cfb::build(r.x.to_coo(r.context), options, r.context), r);
                               }};

SemiSparseTensor ttm(const Tensor& x, int mode, const Matrix& matrix, const Context& context) {
  if (mode < 0 || mode >= x.order())
    throw usage_error(fmt::format("ttm: mode {} of a tensor with {} modes", mode + 1, x.order()));
  const std::uint64_t dim = x.dims()[static_cast<std::size_t>(mode)];
  if (matrix.cols != dim)
    throw usage_error(fmt::format("ttm: a matrix of {} x {} for mode {}, whose length is {}; expected {} columns",
                                  matrix.rows, matrix.cols, mode + 1, dim, dim));
  if (matrix.rows == 0) throw usage_error("ttm: a matrix without rows; the result would be empty");
  Context here = context;
  here.devices.clear();  // it runs on the processor only
  const Chosen<TtmKernel> chosen =
      choose<TtmKernel>(all_kernels, TtmQuestion{x.body(mode), mode, here}, {}, here.deterministic);
  return chosen.kernel->run({x, mode, matrix, here});
}

}  // namespace polyad
