// SPDX-License-Identifier: MIT
/// \file The interchange form of a sparse tensor: coordinates and values, structure of arrays.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "polyad/buffer.hpp"
#include "polyad/context.hpp"
#include "polyad/error.hpp"
#include "polyad/labels.hpp"
#include "polyad/types.hpp"

namespace polyad {

/// Indices of one mode, 0-based.
using IndexBuffer = std::variant<Buffer<std::uint32_t>, Buffer<std::uint64_t>>;
/// Values of the nonzeros.
using ValueBuffer = std::variant<Buffer<float>, Buffer<double>>;

/// A CooTensor with its types known: what loops work on. Pointers stay valid while the tensor lives and keeps its size.
template <class Index, class Value>
struct CooView {
  using index_type = Index;
  using value_type = Value;

  int order = 0;
  std::uint64_t nnz = 0;
  std::span<const std::uint64_t> dims;         // [order]
  std::array<Index*, max_order> indices = {};  // [order][nnz]
  Value* values = nullptr;                     // [nnz]
};

/// A sparse tensor as coordinates: plain data, any order from 1 to 32. Every format is built from it and returns to it.
struct CooTensor {
  std::vector<std::uint64_t> dims;   ///< length of each mode
  std::vector<IndexBuffer> indices;  ///< per mode nnz indices, 0-based, all of one width
  ValueBuffer values;                ///< nnz values
  /// Modes by which the nonzeros are known to be sorted, most significant first; empty when nothing is known.
  std::vector<int> sorted_by;
  /// True when it is known that no coordinate occurs twice.
  bool duplicates_merged = false;
  /// Names and labels per mode; empty, or one per mode (each may be empty).
  std::vector<ModeLabels> labels;

  /// Number of modes.
  [[nodiscard]] int order() const noexcept { return static_cast<int>(dims.size()); }
  /// Number of stored nonzeros.
  [[nodiscard]] std::uint64_t nnz() const noexcept {
    return std::visit([](const auto& v) { return static_cast<std::uint64_t>(v.size()); }, values);
  }
  /// Width of the stored indices.
  [[nodiscard]] IndexWidth index_width() const noexcept {
    return !indices.empty() && indices[0].index() == 1 ? IndexWidth::u64 : IndexWidth::u32;
  }
  /// Type of the stored values.
  [[nodiscard]] Precision precision() const noexcept { return values.index() == 0 ? Precision::f32 : Precision::f64; }
  /// Bytes of the index and value arrays.
  [[nodiscard]] std::uint64_t bytes() const noexcept {
    return nnz() * (dims.size() * bytes_of(index_width()) + bytes_of(precision()));
  }
  /// Index of nonzero k in a mode, whatever the width. For tests and printing, not for loops.
  [[nodiscard]] std::uint64_t index(int mode, std::uint64_t k) const {
    return std::visit([&](const auto& b) { return static_cast<std::uint64_t>(b[k]); },
                      indices[static_cast<std::size_t>(mode)]);
  }
  /// Value of nonzero k. For tests and printing, not for loops.
  [[nodiscard]] double value(std::uint64_t k) const {
    return std::visit([&](const auto& b) { return static_cast<double>(b[k]); }, values);
  }
  /// Name of a mode, "mode K" (from 1) when it has none.
  [[nodiscard]] std::string mode_name(int mode) const;
};

/// The index width that dims need.
[[nodiscard]] IndexWidth width_for(std::span<const std::uint64_t> dims);

/// A tensor of the given shape and types with room for nnz nonzeros (zeroed); counted in the context's budget.
[[nodiscard]] CooTensor make_coo(std::vector<std::uint64_t> dims, std::uint64_t nnz, Precision precision,
                                 const Context& context);

/// The same with indices of a width of the caller's choice, which must hold the dims.
[[nodiscard]] CooTensor make_coo(std::vector<std::uint64_t> dims, std::uint64_t nnz, Precision precision,
                                 IndexWidth width, const Context& context);

/// Calls f with the CooView of the tensor's types: one dispatch, then typed loops.
template <class F>
decltype(auto) visit(CooTensor& x, F&& f) {
  return std::visit(
      [&]<class Value>(Buffer<Value>& values) -> decltype(auto) {
        const auto call = [&]<class Index>(std::type_identity<Index>) -> decltype(auto) {
          CooView<Index, Value> v;
          v.order = x.order();
          v.nnz = values.size();
          v.dims = x.dims;
          for (std::size_t m = 0; m < x.dims.size(); ++m) v.indices[m] = std::get<Buffer<Index>>(x.indices[m]).data();
          v.values = values.data();
          return std::forward<F>(f)(v);
        };
        if (x.index_width() == IndexWidth::u64) return call(std::type_identity<std::uint64_t>{});
        return call(std::type_identity<std::uint32_t>{});
      },
      x.values);
}

/// The same for a tensor that is only read.
template <class F>
decltype(auto) visit(const CooTensor& x, F&& f) {
  return visit(const_cast<CooTensor&>(x),
               [&]<class Index, class Value>(const CooView<Index, Value>& v) -> decltype(auto) {
                 CooView<const Index, const Value> c;
                 c.order = v.order;
                 c.nnz = v.nnz;
                 c.dims = v.dims;
                 for (int m = 0; m < v.order; ++m)
                   c.indices[static_cast<std::size_t>(m)] = v.indices[static_cast<std::size_t>(m)];
                 c.values = v.values;
                 return std::forward<F>(f)(c);
               });
}

}  // namespace polyad
