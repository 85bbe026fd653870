// SPDX-License-Identifier: MIT
/// \file Frobenius norms of tensors and models. Squares of numbers beyond 1e154 and below 1e-154 leave the range of
/// f64, so both scale by powers of two where needed, which changes no digit.
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "core/format.hpp"
#include "kernels/mttkrp/output.hpp"
#include "kernels/scalar/scalar.hpp"

namespace polyad {

extern const ScalarKernel norm_generic;
const ScalarKernel norm_generic = {
    {{"norm/generic", "Frobenius norm: sums of squares in fixed chunks, decoded where values are not in a row"},
     "norm",
     "any",
     true}};

namespace {

constexpr std::uint64_t chunk_nonzeros = 8192;
constexpr std::size_t block_nonzeros = 512;

struct Squares {
  double sum = 0;      // of (value * scale)^2
  double largest = 0;  // absolute value; NaN does not count, it shows in the sum

  void add(const Squares& other) {
    sum += other.sum;
    largest = std::max(largest, other.largest);
  }
};

/// Eight sums side by side: one would wait for every addition. Arrays of them, which compilers keep in vectors.
template <class Value>
Squares squares_of(const Value* values, std::size_t n, double scale) {
  constexpr std::size_t lanes = 8;
  std::array<double, lanes> sums = {};
  std::array<double, lanes> largest = {};
  const auto add = [&](std::size_t lane, Value value) {
    const double v = static_cast<double>(value);
    sums[lane] += (v * scale) * (v * scale);
    largest[lane] = std::max(largest[lane], std::abs(v));
  };
  std::size_t k = 0;
  for (; k + lanes <= n; k += lanes)
    for (std::size_t i = 0; i < lanes; ++i) add(i, values[k + i]);
  for (std::size_t i = 0; k + i < n; ++i) add(i, values[k + i]);
  Squares all;
  for (std::size_t i = 0; i < lanes; ++i) all.add({sums[i], largest[i]});
  return all;
}

/// Chunks are summed in their order, whoever computed them.
Squares squares_of(const TensorBody& x, double scale, const Context& context) {
  const TensorShape& shape = x.shape();
  const std::uint64_t chunks = (shape.nnz + chunk_nonzeros - 1) / chunk_nonzeros;
  std::vector<Squares> parts(chunks);
  // values_from(k, count) are some of the values, whether the format has to decode them or has them in a row: in any
  // case each comes once.
  const auto add_blocks = [&](std::uint64_t first, std::uint64_t last, const auto& values_from) {
    for (std::uint64_t c = first; c < last; ++c) {
      const std::uint64_t end = std::min(shape.nnz, (c + 1) * chunk_nonzeros);
      for (std::uint64_t k = c * chunk_nonzeros; k < end; k += block_nonzeros) {
        const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(end - k, block_nonzeros));
        parts[c].add(squares_of(values_from(k, count), count, scale));
      }
    }
  };
  with_types(shape, [&]<class Index, class Value>() {
    cpu::parallel_ranges(
        context.thread_count(), chunks,
        [&](std::uint64_t first, std::uint64_t last) {
          if (const ValueBuffer* plain = x.plain_values()) {
            std::visit(
                [&](const auto& values) {
                  add_blocks(first, last, [&](std::uint64_t k, std::size_t) { return values.data() + k; });
                },
                *plain);
            return;
          }
          if (const NarrowValues* narrow = x.narrow_values()) {
            std::array<Value, block_nonzeros> room;
            add_blocks(first, last,
                       [&](std::uint64_t k, std::size_t count) { return narrow->get(k, count, room.data()); });
            return;
          }
          NonzeroBlock<Index, Value> block(shape.order());
          add_blocks(first, last, [&](std::uint64_t k, std::size_t count) {
            x.decode(k, count, block);
            return block.values;
          });
        },
        1);
  });
  Squares all;
  for (const Squares& s : parts) all.add(s);
  return all;
}

}  // namespace

double norm(const Tensor& x, const Context& context) {
  const TensorBody& body = x.body(0);
  const Squares plain = squares_of(body, 1, context);
  // Between these no sum of squares overflows (n < 1e28), and squares that underflow are below the last digit.
  const bool in_range = plain.largest > 1e-130 && plain.largest < 1e140;
  if (in_range || plain.largest == 0 || std::isinf(plain.largest)) return std::sqrt(plain.sum);
  const int exponent = std::clamp(std::ilogb(plain.largest), -1000, 1000);  // 2^-exponent is no infinity
  const Squares scaled = squares_of(body, std::ldexp(1.0, -exponent), context);
  return std::ldexp(std::sqrt(scaled.sum), exponent);
}

namespace {

/// Exponent of the largest number of a column, 0 for a column of zeros.
std::vector<int> column_exponents(const Matrix& a) {
  std::vector<double> largest(a.cols);
  for (std::uint64_t i = 0; i < a.rows; ++i)
    for (std::uint64_t r = 0; r < a.cols; ++r) largest[r] = std::max(largest[r], std::abs(a(i, r)));
  std::vector<int> exponents(a.cols);
  for (std::uint64_t r = 0; r < a.cols; ++r)
    if (largest[r] > 0 && std::isfinite(largest[r])) exponents[r] = std::ilogb(largest[r]);
  return exponents;
}

/// product *= A'A entry by entry, A with its columns scaled by 2^-exponents. Chunks of rows on all threads, added in
/// their order.
void times_gram(const Matrix& a, const std::vector<int>& exponents, std::vector<double>& product) {
  constexpr std::uint64_t chunk_rows = 4096;
  const std::uint64_t rank = a.cols;
  const std::uint64_t chunks = (a.rows + chunk_rows - 1) / chunk_rows;
  // In rounds of a few chunks, so that memory does not grow with the rows.
  constexpr std::uint64_t round = 64;
  std::vector<double> gram(rank * rank);
  std::vector<std::vector<double>> parts(std::min(round, chunks));
  for (std::uint64_t base = 0; base < chunks; base += round) {
    const std::uint64_t some = std::min(round, chunks - base);
    cpu::for_each_chunk(default_threads(), some, [&](std::uint64_t c, int) {
      std::vector<double>& part = parts[c];
      part.assign(rank * rank, 0.0);
      std::vector<double> row(rank);
      const std::uint64_t end = std::min(a.rows, (base + c + 1) * chunk_rows);
      for (std::uint64_t i = (base + c) * chunk_rows; i < end; ++i) {
        for (std::uint64_t r = 0; r < rank; ++r) row[r] = std::ldexp(a(i, r), -exponents[r]);
        for (std::uint64_t r = 0; r < rank; ++r)
          for (std::uint64_t s = 0; s <= r; ++s) part[r * rank + s] += row[r] * row[s];
      }
    });
    for (std::uint64_t c = 0; c < some; ++c)
      for (std::size_t e = 0; e < gram.size(); ++e) gram[e] += parts[c][e];
  }
  for (std::size_t e = 0; e < gram.size(); ++e) product[e] *= gram[e];
}

}  // namespace

double norm(const CpModel& model) {
  const std::uint64_t rank = model.rank();
  std::vector<double> product(rank * rank, 1.0);  // lower triangle
  std::vector<long> exponents(rank);              // of the component: its weight and its columns
  std::vector<double> weights(rank);
  for (const Matrix& a : model.factors) {
    if (a.cols != rank)
      throw usage_error(fmt::format("norm: a factor has {} columns and the model {} weights", a.cols, rank));
    const std::vector<int> of_columns = column_exponents(a);
    times_gram(a, of_columns, product);
    for (std::uint64_t r = 0; r < rank; ++r) exponents[r] += of_columns[r];
  }
  long top = std::numeric_limits<long>::min();
  for (std::uint64_t r = 0; r < rank; ++r) {
    int exponent = 0;
    weights[r] = std::frexp(model.weights[r], &exponent);
    exponents[r] += exponent;
    if (weights[r] != 0 && product[r * rank + r] != 0) top = std::max(top, exponents[r]);
  }
  if (top == std::numeric_limits<long>::min()) return 0;
  // A component more than 2^2000 below the largest is 0 beside it.
  for (std::uint64_t r = 0; r < rank; ++r)
    weights[r] = std::ldexp(weights[r], static_cast<int>(std::clamp(exponents[r] - top, -2000L, 0L)));
  double sum = 0;
  for (std::uint64_t r = 0; r < rank; ++r)
    for (std::uint64_t s = 0; s <= r; ++s) sum += (r == s ? 1 : 2) * weights[r] * weights[s] * product[r * rank + s];
  return std::ldexp(std::sqrt(std::max(sum, 0.0)), static_cast<int>(std::clamp(top, -4000L, 4000L)));
}

}  // namespace polyad
