// SPDX-License-Identifier: MIT
#include "formats/hocfs/hocfs.hpp"

#include <fmt/format.h>

#include "backends/cpu/threads.hpp"
#include "polyad/error.hpp"
#include "polyad/sizes.hpp"

namespace polyad {

namespace {

/// Elements of the slices before each when every row is as long as the longest of its slice; the last is their sum.
/// Unset when that is 2^62 or more, which no memory holds.
std::optional<std::vector<std::uint64_t>> padded_begins(const SortedFibres& s, const Context& context) {
  const std::uint64_t slices = s.tree.inner_slices();
  constexpr std::uint64_t most = std::uint64_t{1} << 62U;
  std::vector<std::uint64_t> begins(slices + 1);
  cpu::parallel_ranges(
      context.thread_count(), slices,
      [&](std::uint64_t first, std::uint64_t last) {
        for (std::uint64_t i = first; i < last; ++i) {
          std::uint64_t longest = 0;
          const std::uint64_t end = s.tree.first_fibre(i + 1);
          for (std::uint64_t f = s.tree.first_fibre(i); f < end; ++f) longest = std::max(longest, s.begins.count(f));
          const std::uint64_t rows = end - s.tree.first_fibre(i);
          begins[i + 1] = rows > 0 && longest > most / rows ? most : longest * rows;
        }
      },
      256);
  for (std::uint64_t i = 1; i <= slices; ++i) {
    if (begins[i] >= most - begins[i - 1]) return std::nullopt;
    begins[i] += begins[i - 1];
  }
  return begins;
}

/// Why the padded slices would be too large; empty when they are not.
std::string ell_refusal(const std::optional<std::vector<std::uint64_t>>& begins, std::uint64_t nnz, int mode) {
  if (begins && begins->back() <= HocfsEll::most_padding * nnz + HocfsEll::free_padding) return {};
  return fmt::format(
      "format hocfs-ell, mode {}: rows padded to the longest of their slice would be {} elements for {} nonzeros; at "
      "most {} per nonzero are held (hocfs-csr pads nothing)",
      mode + 1, begins ? readable_count(begins->back()) : "more than 2^62", readable_count(nnz),
      HocfsEll::most_padding);
}

/// Copies the rows of CSR to their places and pads them.
template <class Index, class Value>
void fill_rows(HocfsEll& ell, const SortedFibres& s, const Context& context) {
  const auto* from_index = typed<Index>(s.indices);
  const auto* from_value = typed<Value>(s.values);
  const std::uint64_t elements = ell.elements();
  Buffer<Index> aj(context, elements, "the padded indices of format hocfs-ell");
  Buffer<Value> av(context, elements, "the padded values of format hocfs-ell");
  // Fibres by their nonzeros, so that a few long ones are spread over the threads too; pages come zeroed.
  cpu::parallel_ranges(
      context.thread_count(), ell.tree.fibres(),
      [&](std::uint64_t first, std::uint64_t last) {
        std::uint64_t slice = ell.tree.slice_of(first);
        for (std::uint64_t f = first; f < last; ++f) {
          while (f >= ell.tree.first_fibre(slice + 1)) ++slice;
          const HocfsEll::Row row = ell.row(slice, f);
          const std::uint64_t begin = s.begins[f];
          const std::uint64_t count = s.begins[f + 1] - begin;
          for (std::uint64_t e = 0; e < count; ++e) {
            aj[row.begin + e * row.stride] = from_index[begin + e];
            av[row.begin + e * row.stride] = from_value[begin + e];
          }
          for (std::uint64_t e = count; e < row.length; ++e) {
            aj[row.begin + e * row.stride] = static_cast<Index>(~Index{0});
            av[row.begin + e * row.stride] = Value{0};
          }
          const std::uint64_t distance = HocfsEll::mark_distance;
          for (std::uint64_t m = (begin + distance - 1) / distance; m * distance < begin + count; ++m)
            ell.marks[m] = {f, m * distance - begin};
        }
      },
      1024);
  ell.indices = std::move(aj);
  ell.values = std::move(av);
}

}  // namespace

HocfsCsr HocfsCsr::build(const CooTensor& x, const FormatOptions& options, const Context& context) {
  return {shape_of(x), sorted_fibres(x, options.mode.value_or(0), context)};
}

std::uint64_t HocfsCsr::bytes() const {
  return parts.tree.bytes() + parts.begins.bytes() + bytes_in(parts.indices) + bytes_in(parts.values);
}

HocfsEll HocfsEll::build(const CooTensor& x, const FormatOptions& options, const Context& context) {
  const int mode = options.mode.value_or(0);
  HocfsEll ell;
  ell.tensor_shape = shape_of(x);
  SortedFibres s = sorted_fibres(x, mode, context);
  const auto begins = padded_begins(s, context);
  if (const std::string why = ell_refusal(begins, x.nnz(), mode); !why.empty()) throw Error(ErrorKind::limit, why);
  ell.tree = std::move(s.tree);
  s.tree = {};
  ell.slice_elements = Offsets(context, begins->size(), begins->back(), "the slice pointers of format hocfs-ell");
  for (std::uint64_t i = 0; i < begins->size(); ++i) ell.slice_elements.set(i, (*begins)[i]);
  ell.marks = Buffer<Mark>(context, (x.nnz() + mark_distance - 1) / mark_distance, "the marks of format hocfs-ell");
  with_types(ell.tensor_shape, [&]<class Index, class Value>() { fill_rows<Index, Value>(ell, s, context); });
  return ell;
}

std::uint64_t HocfsEll::bytes() const {
  return tree.bytes() + slice_elements.bytes() + bytes_in(indices) + bytes_in(values) + marks.bytes();
}

extern const FormatClass hocfs_csr_format;
const FormatClass hocfs_csr_format = {
    {{"hocfs-csr", "non-empty slices, their non-empty rows in CSR"},
     "Yang, Li, Li 2019 (HOCFS)",
     true,
     "products with a vector along one mode; slices are independent pieces of work"},
    [](const CooTensor& x, const FormatOptions& options, const Context& context) {
      return erased(hocfs_csr_format, options, HocfsCsr::build(x, options, context));
    },
    [](const CooTensor& x, const TensorStatistics& statistics, const FormatOptions& options, const Context& context) {
      const FibreTreeSize size = fibre_tree_size(x, statistics, options.mode.value_or(0), context);
      const auto nnz = static_cast<double>(x.nnz());
      const auto per_nonzero = static_cast<double>(bytes_of(width_for(x.dims)) + bytes_of(x.precision()));
      return StoragePrediction{
          2 * size.slices + 2 * size.fibres + 2 * nnz,
          size.bytes + (size.fibres + 1) * static_cast<double>(Offsets::width_of(x.nnz())) + nnz * per_nonzero,
          "2S + 2F + 2*nnz",
          {}};
    },
    nullptr,
    false,
    /*decode_ns=*/8};

extern const FormatClass hocfs_ell_format;
const FormatClass hocfs_ell_format = {
    {{"hocfs-ell", "non-empty slices, their non-empty rows padded to the longest (ELL)"},
     "Yang, Li, Li 2019 (HOCFS)",
     true,
     "products with a vector along one mode when the fibres of a slice are about equally long"},
    [](const CooTensor& x, const FormatOptions& options, const Context& context) {
      return erased(hocfs_ell_format, options, HocfsEll::build(x, options, context));
    },
    // The padding depends on which fibres share a slice, which no count tells: the nonzeros are sorted for it.
    [](const CooTensor& x, const TensorStatistics& statistics, const FormatOptions& options, const Context& context) {
      const int mode = options.mode.value_or(0);
      const FibreTreeSize size = fibre_tree_size(x, statistics, mode, context);
      const SortedFibres s = sorted_fibres(x, mode, context);
      const auto begins = padded_begins(s, context);
      const auto elements = static_cast<double>(begins ? begins->back() : std::uint64_t{1} << 62U);
      const auto inner = static_cast<double>(s.tree.inner_slices());
      const std::uint64_t marks = (x.nnz() + HocfsEll::mark_distance - 1) / HocfsEll::mark_distance;
      const auto per_element = static_cast<double>(bytes_of(width_for(x.dims)) + bytes_of(x.precision()));
      return StoragePrediction{
          2 * size.slices + inner + size.fibres + 2 * elements,
          size.bytes + (inner + 1) * static_cast<double>(Offsets::width_of(begins ? begins->back() : ~0ULL)) +
              elements * per_element + static_cast<double>(marks * sizeof(HocfsEll::Mark)),
          "2S + S' + F + 2P (S' innermost slices, P padded elements)", ell_refusal(begins, x.nnz(), mode)};
    },
    nullptr,
    false,
    /*decode_ns=*/16};

}  // namespace polyad
