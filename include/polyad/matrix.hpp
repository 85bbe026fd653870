// SPDX-License-Identifier: MIT
/// \file Factor matrices as the kernels want them: one row per index, rows padded to whole vectors, on huge pages.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>

#include "polyad/buffer.hpp"
#include "polyad/context.hpp"

namespace polyad {

/// Columns of a row in memory: 4 for ranks up to 4, else the next multiple of 8. Kernels work on blocks of 4, 8, 16 and
/// 32 columns, so no rank needs a loop for the rest.
[[nodiscard]] constexpr std::uint64_t padded_columns(std::uint64_t cols) { return cols <= 4 ? 4 : (cols + 7) / 8 * 8; }

/// Dense matrix, row-major, rows padded with zeros to `stride` columns. Move-only, like the Buffer it lies in.
template <class T>
class FactorMatrix {
 public:
  /// No rows.
  FactorMatrix() = default;
  /// All zero; counted in the context's budget.
  FactorMatrix(const Context& context, std::uint64_t rows, std::uint64_t cols,
               std::string_view purpose = "a factor matrix")
      : rows_(rows),
        cols_(cols),
        stride_(padded_columns(cols)),
        values_(context, rows > ~std::size_t{0} / stride_ ? ~std::size_t{0} : rows * stride_, purpose) {}
  /// A matrix in memory that belongs to someone else and outlives it: rows of padded_columns(cols) elements.
  [[nodiscard]] static FactorMatrix view(T* data, std::uint64_t rows, std::uint64_t cols) {
    FactorMatrix m;
    m.rows_ = rows;
    m.cols_ = cols;
    m.stride_ = padded_columns(cols);
    m.values_ = Buffer<T>::view(std::shared_ptr<const void>(data, [](const void*) {}), data, rows * m.stride_);
    return m;
  }

  [[nodiscard]] std::uint64_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::uint64_t cols() const noexcept { return cols_; }
  /// Elements from one row to the next.
  [[nodiscard]] std::uint64_t stride() const noexcept { return stride_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return values_.bytes(); }
  [[nodiscard]] T* data() noexcept { return values_.data(); }
  [[nodiscard]] const T* data() const noexcept { return values_.data(); }
  /// Row i, `cols()` numbers and the padding.
  [[nodiscard]] T* row(std::uint64_t i) noexcept { return values_.data() + i * stride_; }
  [[nodiscard]] const T* row(std::uint64_t i) const noexcept { return values_.data() + i * stride_; }
  /// Entry of row i, column r.
  [[nodiscard]] T& operator()(std::uint64_t i, std::uint64_t r) noexcept { return row(i)[r]; }
  [[nodiscard]] T operator()(std::uint64_t i, std::uint64_t r) const noexcept { return row(i)[r]; }

 private:
  std::uint64_t rows_ = 0;
  std::uint64_t cols_ = 0;
  std::uint64_t stride_ = 0;
  Buffer<T> values_;  // [rows][stride]
};

}  // namespace polyad
