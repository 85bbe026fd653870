// SPDX-License-Identifier: MIT
#include "solvers/cp_als/row_pass.hpp"

#include <hwy/cache_control.h>

#include <algorithm>
#include <chrono>

#include "backends/cpu/threads.hpp"
#include "core/row_parts.hpp"
#include "kernels/mttkrp/update_rows.hpp"
#include "solvers/cp_als/row_blocks.hpp"

namespace polyad::cp_als_detail {

namespace {

template <class T>
bool is_zero(const T* row, std::uint64_t rank) {
  for (std::uint64_t r = 0; r < rank; ++r)
    if (row[r] != 0) return false;
  return true;
}

/// Solves blocks of rows that are not zero, and adds up Gram matrix and inner products part by part.
template <class T>
class BlockSolver : public RowSolver<T> {
 public:
  /// \param v what the rows are like
  BlockSolver(const FactorMatrix<T>& v, RowScratch<T>& scratch, const Context& context, bool with_inner)
      : rank_(v.cols()),
        stride_(v.stride()),
        columns_(block_columns<T>(rank_)),
        scratch_(scratch),
        context_(context),
        with_inner_(with_inner) {}

  [[nodiscard]] std::uint64_t most_parts() const override { return most_summed_parts(columns_); }
  void begin(std::uint64_t parts) override {
    parts_ = parts;
    if (scratch_.parts.size() < parts) scratch_.parts.resize(parts);
    for (Part& p : scratch_.parts) {
      p.rows = 0;
      p.seconds = 0;
    }
    Buffer<double>& sums = scratch_.sums;
    const std::uint64_t size = std::max<std::uint64_t>(1, parts) * part_size();
    if (sums.size() < size) {
      sums = {};
      sums = Buffer<double>(context_, size, "sums over the rows of a factor", Paging::plain);
    } else {
      std::fill_n(sums.data(), size, 0.0);
    }
  }
  void take(std::uint64_t part, std::uint64_t begin, std::uint64_t end, T* rows) override {
    const auto start = std::chrono::steady_clock::now();
    Part& p = scratch_.parts[part];
    std::uint64_t i = begin;
    while (end - i >= block_rows && solve_there(i, rows + (i - begin) * stride_, part)) i += block_rows;
    if (i > begin) hwy::FlushStream();  // once for all of them: it waits for what was written past the caches
    // On the bounds of cache lines: rows of 64 bytes that straddle two of them would cost twice.
    if (i < end && p.memory.empty()) p.memory.assign(2 * block_rows * columns_, T{0});
    Block<T> block = waiting(p);
    while (i < end) {
      i = fill({rows + (i - begin) * stride_, stride_}, i, end, block);
      solve(block);
      block.solved = block.count;
      if (block.count == block_rows) add_up(part, block);
    }
    p.rows = block.count;
    p.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  [[nodiscard]] RowSums sums() override {
    RowSums sums{Small(rank_), std::vector<double>(rank_)};
    for (std::uint64_t p = 0; p < parts_; ++p) {
      Block<T> rest = waiting(scratch_.parts[p]);
      add_up(p, rest);
      scratch_.parts[p].rows = 0;
      const double* part = scratch_.sums.data() + p * part_size();
      for (std::uint64_t r = 0; r < rank_; ++r)
        for (std::uint64_t s = 0; s <= r; ++s) sums.gram(r, s) += part[r * columns_ + s];
      for (std::uint64_t r = 0; r < rank_; ++r) sums.inner[r] += part[columns_ * columns_ + r];
    }
    for (std::uint64_t r = 0; r < rank_; ++r)
      for (std::uint64_t s = 0; s < r; ++s) sums.gram(s, r) = sums.gram(r, s);
    return sums;
  }
  [[nodiscard]] double seconds() const override {
    double sum = 0;
    for (const Part& p : scratch_.parts) sum += p.seconds;
    return sum;
  }

 protected:
  /// Takes rows into the block: V of rows begin .. end is `from`. Returns the first that was not looked at.
  [[nodiscard]] virtual std::uint64_t fill(Rows<T> from, std::uint64_t begin, std::uint64_t end,
                                           Block<T>& block) const = 0;
  /// Solves block_rows rows from begin on without packing them: V and then A are `rows`. Adds to inner. False, and
  /// nothing is done, when it cannot.
  [[nodiscard]] virtual bool solve_unpacked(std::uint64_t /*begin*/, T* /*rows*/, double* /*inner*/) const {
    return false;
  }
  /// Makes `after` of the rows that are not solved, and stores it.
  virtual void solve(const Block<T>& block) const = 0;

 private:
  using Part = typename RowScratch<T>::Part;

  [[nodiscard]] std::uint64_t part_size() const { return columns_ * columns_ + columns_; }
  [[nodiscard]] Block<T> waiting(Part& p) const {
    T* after = p.memory.empty() ? nullptr : p.memory.data() + block_rows * columns_;
    return {p.rows, p.rows, columns_, p.memory.data(), after, p.indices.data()};
  }
  [[nodiscard]] bool solve_there(std::uint64_t begin, T* rows, std::uint64_t part) {
    double* gram = scratch_.sums.data() + part * part_size();
    if (!solve_unpacked(begin, rows, gram + columns_ * columns_)) return false;
    add_gram({block_rows, block_rows, columns_, nullptr, rows, nullptr}, gram);
    return true;
  }
  void add_up(std::uint64_t part, Block<T>& block) {
    if (block.count == 0) return;
    double* gram = scratch_.sums.data() + part * part_size();
    add_gram(block, gram);
    if (with_inner_) add_inner(block, gram + columns_ * columns_);
    block.count = block.solved = 0;
  }

  std::uint64_t rank_;
  std::uint64_t stride_;
  std::uint64_t columns_;
  RowScratch<T>& scratch_;
  const Context& context_;
  bool with_inner_;
  std::uint64_t parts_ = 0;
};

template <class T>
class LeastSquares final : public BlockSolver<T> {
 public:
  LeastSquares(FactorMatrix<T>& rows, const Small& solution, RowScratch<T>& scratch, const Context& context)
      : BlockSolver<T>(rows, scratch, context, true), rows_(rows) {
    const std::uint64_t columns = block_columns<T>(rows.cols());
    rounded_.assign(columns * columns, T{0});
    for (std::uint64_t r = 0; r < rows.cols(); ++r)
      for (std::uint64_t s = 0; s < rows.cols(); ++s) rounded_[r * columns + s] = static_cast<T>(solution(r, s));
  }
  [[nodiscard]] const FactorMatrix<T>& factor() const override { return rows_; }

 protected:
  [[nodiscard]] std::uint64_t fill(Rows<T> from, std::uint64_t begin, std::uint64_t end,
                                   Block<T>& block) const override {
    const std::uint64_t next = load({from.data, from.stride}, begin, end, block, block.before);
    if (from.data != rows_.row(begin))  // rows of zeros are not solved
      std::fill_n(rows_.row(begin), (next - begin) * rows_.stride(), T{0});
    return next;
  }
  [[nodiscard]] bool solve_unpacked(std::uint64_t begin, T* rows, double* inner) const override {
    const std::uint64_t columns = block_columns<T>(rows_.cols());
    if (rows_.stride() != columns || !is_mostly_filled({rows, columns}, block_rows) ||
        !solve_in_place(rows, block_rows, columns, rounded_.data(), inner))
      return false;
    if (rows != rows_.row(begin)) copy_past_cache({rows, columns}, block_rows, rows_.row(begin));
    return true;
  }
  void solve(const Block<T>& block) const override {
    multiply(block, rounded_.data());
    store(block, Rows<T>{rows_.data(), rows_.stride()});
  }

 private:
  FactorMatrix<T>& rows_;
  LargeVector<T> rounded_;
};

/// Adds up A'A alone.
template <class T>
class Untouched final : public BlockSolver<T> {
 public:
  Untouched(const FactorMatrix<T>& rows, RowScratch<T>& scratch, const Context& context)
      : BlockSolver<T>(rows, scratch, context, false), rows_(rows) {}
  [[nodiscard]] const FactorMatrix<T>& factor() const override { return rows_; }

 protected:
  [[nodiscard]] std::uint64_t fill(Rows<T> from, std::uint64_t begin, std::uint64_t end,
                                   Block<T>& block) const override {
    return load({from.data, from.stride}, begin, end, block, block.after);
  }
  void solve(const Block<T>& /*block*/) const override {}

 private:
  const FactorMatrix<T>& rows_;
};

template <class T>
class Descent final : public BlockSolver<T> {
 public:
  Descent(FactorMatrix<T>& factor, const DescentOptions& options, RowScratch<T>& scratch, const Context& context)
      : BlockSolver<T>(factor, scratch, context, true), factor_(factor), options_(options) {}
  [[nodiscard]] const FactorMatrix<T>& factor() const override { return factor_; }

 protected:
  [[nodiscard]] std::uint64_t fill(Rows<T> from, std::uint64_t begin, std::uint64_t end,
                                   Block<T>& block) const override {
    const std::uint64_t rank = factor_.cols();
    std::uint64_t i = begin;
    for (; i < end && block.count < block_rows; ++i) {
      const T* v = from.data + (i - begin) * from.stride;
      if (is_zero(v, rank)) {  // the minimum is 0
        std::fill_n(factor_.row(i), rank, T{0});
        continue;
      }
      std::copy_n(v, rank, block.before + block.count * block.columns);
      std::copy_n(factor_.row(i), rank, block.after + block.count * block.columns);
      block.indices[block.count++] = i;
    }
    return i;
  }
  void solve(const Block<T>& block) const override {
    const std::uint64_t rank = factor_.cols();
    const Small& gram = options_.gram;
    std::vector<double> a(gram.columns);
    std::vector<double> gradient(gram.columns);
    for (std::uint64_t k = block.solved; k < block.count; ++k) {
      const T* before = block.before + k * block.columns;
      T* after = block.after + k * block.columns;
      for (std::uint64_t r = 0; r < rank; ++r) {
        gradient[r] = static_cast<double>(before[r]) * options_.v_scale;
        a[r] = static_cast<double>(after[r]) * options_.start_scale[r];
      }
      for (std::uint64_t s = 0; s < rank; ++s)
        if (a[s] != 0)
          for (std::uint64_t r = 0; r < rank; ++r) gradient[r] -= a[s] * gram(s, r);
      descend(a.data(), gradient.data(), gram.values.data(), gram.columns, rank, options_.sweeps);
      for (std::uint64_t r = 0; r < rank; ++r) after[r] = static_cast<T>(a[r] * options_.end_scale[r]);
    }
    store(block, Rows<T>{factor_.data(), factor_.stride()});
  }

 private:
  FactorMatrix<T>& factor_;
  DescentOptions options_;
};

}  // namespace

template <class T>
std::unique_ptr<RowSolver<T>> least_squares(FactorMatrix<T>& rows, const Small& solution, RowScratch<T>& scratch,
                                            const Context& context) {
  return std::make_unique<LeastSquares<T>>(rows, solution, scratch, context);
}

template <class T>
std::unique_ptr<RowSolver<T>> nonnegative_descent(FactorMatrix<T>& factor, const DescentOptions& options,
                                                  RowScratch<T>& scratch, const Context& context) {
  return std::make_unique<Descent<T>>(factor, options, scratch, context);
}

template <class T>
RowSums solve_rows(FactorMatrix<T>& rows, const Small& solution, const Context& context) {
  RowScratch<T> scratch;
  LeastSquares<T> solver(rows, solution, scratch, context);
  update_rows(rows, solver, context);
  return solver.sums();
}

template <class T>
Small gram_of(const FactorMatrix<T>& rows, const Context& context) {
  RowScratch<T> scratch;
  Untouched<T> sums(rows, scratch, context);
  // They are only read.
  update_rows(const_cast<FactorMatrix<T>&>(rows), sums, context);  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  return sums.sums().gram;
}

template <class T>
void scale_columns(FactorMatrix<T>& rows, const std::vector<double>& scale, const Context& context) {
  cpu::parallel_ranges(
      context.thread_count(), rows.rows(),
      [&](std::uint64_t begin, std::uint64_t end) {
        for (std::uint64_t i = begin; i < end; ++i)
          for (std::uint64_t r = 0; r < rows.cols(); ++r)
            rows(i, r) = static_cast<T>(static_cast<double>(rows(i, r)) * scale[r]);
      },
      1U << 10U);
}

#define POLYAD_INSTANTIATE(T)                                                                                         \
  template std::unique_ptr<RowSolver<T>> least_squares(FactorMatrix<T>&, const Small&, RowScratch<T>&,                \
                                                       const Context&);                                               \
  template std::unique_ptr<RowSolver<T>> nonnegative_descent(FactorMatrix<T>&, const DescentOptions&, RowScratch<T>&, \
                                                             const Context&);                                         \
  template RowSums solve_rows(FactorMatrix<T>&, const Small&, const Context&);                                        \
  template Small gram_of(const FactorMatrix<T>&, const Context&);                                                     \
  template void scale_columns(FactorMatrix<T>&, const std::vector<double>&, const Context&);
POLYAD_INSTANTIATE(float)
POLYAD_INSTANTIATE(double)
#undef POLYAD_INSTANTIATE

}  // namespace polyad::cp_als_detail
