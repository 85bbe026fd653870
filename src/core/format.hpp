// SPDX-License-Identifier: MIT
/// \file What a storage format is. A format is an ordinary struct (concept Format) and one line in lists/formats.list;
/// the erased Tensor, conversion back to coordinates, the generic kernels, the round-trip tests and `info` come from
/// here.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/estimate.hpp"
#include "core/narrow_values.hpp"
#include "polyad/context.hpp"
#include "polyad/coo_tensor.hpp"
#include "polyad/registry.hpp"
#include "polyad/statistics.hpp"
#include "polyad/tensor.hpp"
#include "polyad/types.hpp"

namespace polyad {

/// What every built tensor knows of itself.
struct TensorShape {
  std::vector<std::uint64_t> dims;
  std::uint64_t nnz = 0;
  Precision precision = Precision::f64;

  [[nodiscard]] int order() const noexcept { return static_cast<int>(dims.size()); }
  [[nodiscard]] IndexWidth index_width() const { return width_for(dims); }
};

/// The shape of coordinates.
[[nodiscard]] inline TensorShape shape_of(const CooTensor& x) { return {x.dims, x.nnz(), x.precision()}; }

/// Some nonzeros as coordinates: what every format can give and what the loops over nonzeros read. A format points
/// `indices` and `values` into its own arrays when they hold plain coordinates, or decodes into the room of the block.
template <class Index, class Value>
struct NonzeroBlock {
  /// Nonzeros that fit the room: with 3 modes and f64 it takes 11 KiB, a third of L1.
  static constexpr std::size_t capacity = 544;

  std::array<const Index*, max_order> indices = {};  // [order][count], elements index_stride apart
  const Value* values = nullptr;                     // [count]
  std::size_t index_stride = 1;

  explicit NonzeroBlock(int order)
      : room_(std::make_unique_for_overwrite<Index[]>(capacity * static_cast<std::size_t>(order))),
        value_room_(std::make_unique_for_overwrite<Value[]>(capacity)) {}

  /// Room for the indices of a mode; decoding into it sets the pointer.
  [[nodiscard]] Index* index_room(int mode) {
    Index* at = room_.get() + capacity * static_cast<std::size_t>(mode);
    indices[static_cast<std::size_t>(mode)] = at;
    return at;
  }
  /// Room for the values; decoding into it sets the pointer.
  [[nodiscard]] Value* value_room() {
    values = value_room_.get();
    return value_room_.get();
  }

 private:
  std::unique_ptr<Index[]> room_;        // [order][capacity]
  std::unique_ptr<Value[]> value_room_;  // [capacity]
};

/// The element type of a Buffer inside a variant, known: `typed<float>(x.values)`.
template <class T, class Variant>
[[nodiscard]] const T* typed(const Variant& v) {
  return std::get<Buffer<T>>(v).data();
}
template <class T, class Variant>
[[nodiscard]] T* typed(Variant& v) {
  return std::get<Buffer<T>>(v).data();
}

/// Bytes of the Buffer inside a variant.
template <class Variant>
[[nodiscard]] std::uint64_t bytes_in(const Variant& v) {
  return std::visit([](const auto& buffer) { return static_cast<std::uint64_t>(buffer.bytes()); }, v);
}

/// A format: a struct that keeps a tensor of any order, index width and precision.
///
///   shape()   dims, nnz, precision
///   bytes()   of all its arrays, measured
///   decode(first, count, block)  the nonzeros first .. first + count of its own order (count <= block.capacity), for
///             Index = uint32_t when shape().index_width() is u32 (else uint64_t), and Value = the stored type
template <class F>
concept Format = std::movable<F> &&
    requires(const F& f, NonzeroBlock<std::uint32_t, float>& a, NonzeroBlock<std::uint64_t, double>& b) {
  { f.shape() } -> std::convertible_to<const TensorShape&>;
  { f.bytes() } -> std::same_as<std::uint64_t>;
  f.decode(std::uint64_t{}, std::size_t{}, a);
  f.decode(std::uint64_t{}, std::size_t{}, b);
};

/// A built tensor with its format erased.
class TensorBody {
 public:
  TensorBody(const FormatEntry& format, std::optional<int> mode);
  virtual ~TensorBody() = default;
  TensorBody(const TensorBody&) = delete;
  TensorBody& operator=(const TensorBody&) = delete;

  [[nodiscard]] const FormatEntry& format() const noexcept { return *format_; }
  /// The mode it was built for; unset when it serves all.
  [[nodiscard]] std::optional<int> mode() const noexcept { return mode_; }
  /// Different for every one that was built in this process: what was made from it can be told from what was not.
  [[nodiscard]] std::uint64_t serial() const noexcept { return serial_; }
  [[nodiscard]] virtual const TensorShape& shape() const = 0;
  [[nodiscard]] virtual std::uint64_t bytes() const = 0;
  /// Whether the order of its nonzeros is the same for any number of threads that built it. Formats whose order depends
  /// on them unless they are built with Context::deterministic have a member `reproducible`.
  [[nodiscard]] virtual bool reproducible() const = 0;
  /// The values alone, one after the other, where a format has them so; null where it does not: as numbers,
  [[nodiscard]] virtual const ValueBuffer* plain_values() const = 0;
  /// or in a code (`stored_values` of the format).
  [[nodiscard]] virtual const NarrowValues* narrow_values() const = 0;
  virtual void decode(std::uint64_t first, std::size_t count, NonzeroBlock<std::uint32_t, float>& block) const = 0;
  virtual void decode(std::uint64_t first, std::size_t count, NonzeroBlock<std::uint32_t, double>& block) const = 0;
  virtual void decode(std::uint64_t first, std::size_t count, NonzeroBlock<std::uint64_t, float>& block) const = 0;
  virtual void decode(std::uint64_t first, std::size_t count, NonzeroBlock<std::uint64_t, double>& block) const = 0;

 private:
  const FormatEntry* format_;
  std::optional<int> mode_;
  std::uint64_t serial_;
};

/// The body of one format.
template <Format F>
class BodyOf final : public TensorBody {
 public:
  BodyOf(const FormatEntry& format, std::optional<int> mode, F&& built)
      : TensorBody(format, mode), tensor(std::move(built)) {}

  [[nodiscard]] const TensorShape& shape() const override { return tensor.shape(); }
  [[nodiscard]] std::uint64_t bytes() const override { return tensor.bytes(); }
  [[nodiscard]] bool reproducible() const override {
    if constexpr (requires { tensor.reproducible; }) {
      return tensor.reproducible;
    } else {
      return true;
    }
  }
  [[nodiscard]] const ValueBuffer* plain_values() const override {
    if constexpr (requires {
                    { tensor.values } -> std::same_as<const ValueBuffer&>;
                  }) {
      const std::size_t count = std::visit([](const auto& v) { return v.size(); }, tensor.values);
      return count == tensor.shape().nnz ? &tensor.values : nullptr;
    } else {
      return nullptr;
    }
  }
  [[nodiscard]] const NarrowValues* narrow_values() const override {
    if constexpr (requires {
                    { tensor.stored_values() } -> std::same_as<const NarrowValues*>;
                  }) {
      return tensor.stored_values();
    } else {
      return nullptr;
    }
  }
  void decode(std::uint64_t first, std::size_t count, NonzeroBlock<std::uint32_t, float>& b) const override {
    tensor.decode(first, count, b);
  }
  void decode(std::uint64_t first, std::size_t count, NonzeroBlock<std::uint32_t, double>& b) const override {
    tensor.decode(first, count, b);
  }
  void decode(std::uint64_t first, std::size_t count, NonzeroBlock<std::uint64_t, float>& b) const override {
    tensor.decode(first, count, b);
  }
  void decode(std::uint64_t first, std::size_t count, NonzeroBlock<std::uint64_t, double>& b) const override {
    tensor.decode(first, count, b);
  }

  F tensor;
};

/// The struct inside a body, null when it is of another format.
template <Format F>
[[nodiscard]] F* get_if(TensorBody& body) {
  auto* found = dynamic_cast<BodyOf<F>*>(&body);
  return found ? &found->tensor : nullptr;
}
template <Format F>
[[nodiscard]] const F* get_if(const TensorBody& body) {
  const auto* found = dynamic_cast<const BodyOf<F>*>(&body);
  return found ? &found->tensor : nullptr;
}

/// A line of formats.list: what the registry calls. `options.mode` is set when the format is mode-specific.
struct FormatClass {
  FormatEntry entry;
  std::unique_ptr<TensorBody> (*build)(const CooTensor& x, const FormatOptions& options, const Context& context);
  StoragePrediction (*predict)(const CooTensor& x, const TensorStatistics& statistics, const FormatOptions& options,
                               const Context& context);
  /// What the planner compares; null: nothing but the generic kernel works on it.
  SweepEstimate (*estimate)(const EstimateRequest& request) = nullptr;
  /// Whether it has a use for FormatOptions::value_code.
  bool narrows_values = false;
  /// Where there is no estimate: nanoseconds of one thread for decoding a nonzero, beside the generic kernel's.
  double decode_ns = 0;
};

/// Wraps a built struct; for the `build` of a FormatClass.
template <Format F>
[[nodiscard]] std::unique_ptr<TensorBody> erased(const FormatClass& format, const FormatOptions& options, F&& tensor) {
  return std::make_unique<BodyOf<F>>(format.entry, format.entry.mode_specific ? options.mode : std::nullopt,
                                     std::forward<F>(tensor));
}

/// All lines of formats.list.
[[nodiscard]] std::span<const FormatClass* const> format_classes();
/// The line of a name; Error (usage) that says which there are.
[[nodiscard]] const FormatClass& class_named(std::string_view name);

/// Calls f.template operator()<Index, Value>() with the types of a shape: one dispatch, then typed loops.
template <class F>
decltype(auto) with_types(const TensorShape& shape, F&& f) {
  const bool wide = shape.index_width() == IndexWidth::u64;
  if (shape.precision == Precision::f32)
    return wide ? f.template operator()<std::uint64_t, float>() : f.template operator()<std::uint32_t, float>();
  return wide ? f.template operator()<std::uint64_t, double>() : f.template operator()<std::uint32_t, double>();
}

}  // namespace polyad
