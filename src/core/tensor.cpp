// SPDX-License-Identifier: MIT
#include "polyad/tensor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "backends/cpu/threads.hpp"
#include "core/format.hpp"
#include "polyad/error.hpp"

namespace polyad {

TensorBody::TensorBody(const FormatEntry& format, std::optional<int> mode) : format_(&format), mode_(mode) {
  static std::atomic<std::uint64_t> built{0};
  serial_ = ++built;
}

Tensor::Tensor() = default;
Tensor::Tensor(std::vector<std::unique_ptr<TensorBody>> bodies) : bodies_(std::move(bodies)) {}
Tensor::Tensor(Tensor&& other) noexcept = default;
Tensor& Tensor::operator=(Tensor&& other) noexcept = default;
Tensor::~Tensor() = default;

const FormatEntry& Tensor::format() const { return bodies_.at(0)->format(); }
int Tensor::order() const { return bodies_.at(0)->shape().order(); }
const std::vector<std::uint64_t>& Tensor::dims() const { return bodies_.at(0)->shape().dims; }
std::uint64_t Tensor::nnz() const { return bodies_.at(0)->shape().nnz; }
Precision Tensor::precision() const { return bodies_.at(0)->shape().precision; }

std::uint64_t Tensor::bytes() const {
  std::uint64_t sum = 0;
  for (const auto& b : bodies_) sum += b->bytes();
  return sum;
}

std::vector<Tensor::Part> Tensor::parts() const {
  std::vector<Part> all;
  for (const auto& b : bodies_) all.push_back({b->mode(), b->bytes()});
  return all;
}

TensorBody& Tensor::body(int mode) const {
  for (const auto& b : bodies_)
    if (b->mode() == mode) return *b;
  return *bodies_.at(0);
}

CooTensor Tensor::to_coo(const Context& context) const {
  const TensorBody& from = *bodies_.at(0);
  const TensorShape& shape = from.shape();
  CooTensor x = make_coo(shape.dims, shape.nnz, shape.precision, context);
  with_types(shape, [&]<class Index, class Value>() {
    cpu::parallel_ranges(context.thread_count(), shape.nnz, [&](std::uint64_t begin, std::uint64_t end) {
      NonzeroBlock<Index, Value> block(shape.order());
      while (begin < end) {
        const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(end - begin, block.capacity));
        from.decode(begin, count, block);
        for (std::size_t m = 0; m < shape.dims.size(); ++m) {
          Index* out = typed<Index>(x.indices[m]) + begin;
          for (std::size_t k = 0; k < count; ++k) out[k] = block.indices[m][k * block.index_stride];
        }
        std::copy_n(block.values, count, typed<Value>(x.values) + begin);
        begin += count;
      }
    });
  });
  return x;
}

const FormatClass& class_named(std::string_view name) {
  const FormatEntry& entry = format_named(name);  // says which there are when there is none
  const auto all = format_classes();
  return **std::find_if(all.begin(), all.end(), [&](const FormatClass* f) { return f->entry.name == entry.name; });
}

namespace {

void check_mode(const CooTensor& x, const FormatOptions& options) {
  if (options.mode && (*options.mode < 0 || *options.mode >= x.order()))
    throw usage_error(fmt::format("mode {} of a tensor with {} modes", *options.mode + 1, x.order()));
}

}  // namespace

Tensor build(const CooTensor& x, std::string_view format, const FormatOptions& options, const Context& context) {
  const FormatClass& chosen = class_named(format);
  check_mode(x, options);
  if (x.order() < 2)
    throw usage_error(fmt::format("format {}: a tensor of order {}; formats need at least 2 modes", format, x.order()));
  std::vector<std::unique_ptr<TensorBody>> bodies;
  if (chosen.entry.mode_specific && !options.mode) {
    FormatOptions one = options;
    if (chosen.narrows_values && !one.value_code)
      one.value_code = std::make_shared<ValueCode>(ValueCode::of(x, context));
    for (int mode = 0; mode < x.order(); ++mode) {
      one.mode = mode;
      bodies.push_back(chosen.build(x, one, context));
    }
  } else {
    bodies.push_back(chosen.build(x, options, context));
  }
  return Tensor(std::move(bodies));
}

StoragePrediction predict_storage(const CooTensor& x, const TensorStatistics& statistics, std::string_view format,
                                  const FormatOptions& options, const Context& context) {
  const FormatClass& chosen = class_named(format);
  check_mode(x, options);
  if (chosen.entry.mode_specific && !options.mode)
    throw usage_error(fmt::format("format {} is built for one mode; a prediction needs to be told which", format));
  return chosen.predict(x, statistics, options, context);
}

}  // namespace polyad
