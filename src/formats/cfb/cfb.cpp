// SPDX-License-Identifier: MIT
#include "formats/cfb/cfb.hpp"

#include "backends/cpu/threads.hpp"
#include "formats/coo/coo.hpp"
#include "formats/runs.hpp"
#include "polyad/operations.hpp"

namespace polyad {

namespace {

/// Bytes of the id of a fibre, as one number or as indices.
std::uint64_t id_bytes(const std::vector<std::uint64_t>& dims, int mode) {
  const std::optional<std::uint64_t> rows = rows_without(dims, mode);
  return rows ? Offsets::width_of(*rows) : (dims.size() - 1) * bytes_of(width_for(dims));
}

template <class Index>
void set_fibres(Cfb& c, const std::array<Index*, max_order>& indices, std::uint64_t nnz, const Context& context) {
  const std::vector<std::uint64_t>& dims = c.tensor_shape.dims;
  const std::vector<int> modes = mode_last(c.tensor_shape.order(), c.mode);
  const std::array<int, 1> prefix = {static_cast<int>(modes.size()) - 1};
  const Runs<Index> runs(indices, nnz, modes, prefix, context);
  const std::uint64_t fibres = runs.count(0);
  const std::span<const int> others(modes.data(), modes.size() - 1);
  constexpr std::string_view purpose = "the fibre ids of format cfb";
  const auto with_ids = [&]<class Id>(Buffer<Id> ids) {
    auto offsets = runs.offsets([&](std::size_t, std::uint64_t f, std::uint64_t k) {
      std::uint64_t id = 0;
      for (const int m : others) id = id * dims[static_cast<std::size_t>(m)] + indices[static_cast<std::size_t>(m)][k];
      ids[f] = static_cast<Id>(id);
    });
    c.begins = std::move(offsets[0]);
    c.ids = std::move(ids);
  };
  const std::optional<std::uint64_t> rows = rows_without(dims, c.mode);
  if (rows && Offsets::width_of(*rows) == 4) return with_ids(Buffer<std::uint32_t>(context, fibres, purpose));
  if (rows) return with_ids(Buffer<std::uint64_t>(context, fibres, purpose));
  for (std::size_t m = 0; m < others.size(); ++m) c.coords.emplace_back(Buffer<Index>(context, fibres, purpose));
  auto offsets = runs.offsets([&](std::size_t, std::uint64_t f, std::uint64_t k) {
    for (std::size_t m = 0; m < others.size(); ++m)
      typed<Index>(c.coords[m])[f] = indices[static_cast<std::size_t>(others[m])][k];
  });
  c.begins = std::move(offsets[0]);
}

}  // namespace

std::uint64_t Cfb::bytes() const {
  std::uint64_t sum = begins.bytes() + bytes_in(indices) + bytes_in(values);
  if (const auto* narrow = std::get_if<Buffer<std::uint32_t>>(&ids)) sum += narrow->bytes();
  if (const auto* wide = std::get_if<Buffer<std::uint64_t>>(&ids)) sum += wide->bytes();
  for (const IndexBuffer& b : coords) sum += bytes_in(b);
  return sum;
}

Cfb Cfb::build(const CooTensor& x, const FormatOptions& options, const Context& context) {
  Cfb c;
  c.tensor_shape = shape_of(x);
  c.mode = options.mode.value_or(0);
  CooTensor sorted = narrowest_copy(x, context);
  sort_nonzeros(sorted, mode_last(x.order(), c.mode), context);
  visit(sorted,
        [&]<class Index, class Value>(const CooView<Index, Value>& v) { set_fibres(c, v.indices, v.nnz, context); });
  c.indices = std::move(sorted.indices[static_cast<std::size_t>(c.mode)]);
  c.values = std::move(sorted.values);
  return c;
}

extern const FormatClass cfb_format;
const FormatClass cfb_format = {
    {{"cfb", "compressed fibres in buckets: non-empty fibres of one mode, (index, value) each"},
     "Yang, Li, Li 2019 (HOCFS)",
     true,
     "the smallest for products along one mode with a vector or a matrix"},
    [](const CooTensor& x, const FormatOptions& options, const Context& context) {
      return erased(cfb_format, options, Cfb::build(x, options, context));
    },
    [](const CooTensor& x, const TensorStatistics& statistics, const FormatOptions& options, const Context&) {
      const int mode = options.mode.value_or(0);
      const auto fibres = static_cast<double>(statistics.modes[static_cast<std::size_t>(mode)].fibres.count);
      const auto nnz = static_cast<double>(x.nnz());
      const auto per_nonzero = static_cast<double>(bytes_of(width_for(x.dims)) + bytes_of(x.precision()));
      return StoragePrediction{2 * fibres + 2 * nnz,
                               (fibres + 1) * static_cast<double>(Offsets::width_of(x.nnz())) +
                                   fibres * static_cast<double>(id_bytes(x.dims, mode)) + nnz * per_nonzero,
                               "2F + 2*nnz",
                               {}};
    },
    nullptr,
    false,
    /*decode_ns=*/8};

}  // namespace polyad
