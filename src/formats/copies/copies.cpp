// SPDX-License-Identifier: MIT
#include "formats/copies/copies.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "backends/cpu/threads.hpp"
#include "formats/copies/row_sort.hpp"
#include "formats/padded_buffer.hpp"

namespace polyad {

namespace {

constexpr std::string_view purpose = "a copy of the tensor sorted by a mode";

/// The rows that begin among nonzeros begin .. end. Level 0 is the output mode.
template <class Nonzeros>
RowsOfPart rows_of(const Nonzeros& nonzeros, std::uint64_t begin, std::uint64_t end) {
  RowsOfPart found;
  const auto add = [&](std::uint64_t z) {
    found.rows.push_back(nonzeros.template index<std::uint64_t>(0, z));
    found.begin.push_back(z);
  };
  if (begin == 0) add(begin++);
  std::array<std::uint8_t, 1024> levels;
  for (std::uint64_t z = begin; z < end; z += levels.size()) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(levels.size(), end - z));
    nonzeros.new_levels(z, count, 1, levels.data());
    for (std::size_t i = 0; i < count; ++i)
      if (levels[i] == 0) add(z + i);
  }
  return found;
}

/// Nonzeros as the sort by rows reads them. \tparam Nonzeros a form of SortedNonzeros
template <class Index, class Code, class Nonzeros>
class NarrowedNonzeros final : public RowSource<Index, Code> {
 public:
  /// \param level to sort by
  NarrowedNonzeros(const Nonzeros& nonzeros, std::size_t level, const ValueCode& code)
      : nonzeros_(nonzeros), level_(level), code_(code) {}

  void copy_rows(std::uint64_t begin, std::size_t count, std::uint32_t* to) const override {
    nonzeros_.copy_indices(level_, begin, count, to);
  }
  void copy_indices(std::size_t level, std::uint64_t begin, std::size_t count, Index* to) const override {
    nonzeros_.copy_indices(level, begin, count, to);
  }
  void copy_codes(std::uint64_t begin, std::size_t count, Code* to) const override {
    encode_values(
        code_, count, [&](std::size_t i) { return nonzeros_.value(begin + i); }, to);
  }

 private:
  const Nonzeros& nonzeros_;
  std::size_t level_;
  ValueCode code_;
};

SortedCopy::NarrowBuffer buffer_of(std::uint64_t bytes, std::size_t count, const Context& context) {
  constexpr std::size_t padding = SortedCopy::padding;
  if (bytes == 2) return padded_buffer<std::uint16_t>(count, padding, purpose, context);
  if (bytes == 3) return padded_buffer<Index24>(count, padding, purpose, context);
  if (bytes == 4) return padded_buffer<std::uint32_t>(count, padding, purpose, context);
  return padded_buffer<std::uint64_t>(count, padding, purpose, context);
}

/// Where every index begins: at its first nonzero, or where that would be.
void set_all_begins(const std::vector<RowsOfPart>& chunks, SortedCopy& to, const Context& context) {
  const std::uint64_t dim = to.tensor_shape.dims[static_cast<std::size_t>(to.mode)];
  to.begin = Offsets(context, dim + 1, to.tensor_shape.nnz, purpose);
  std::vector<std::uint64_t> next(chunks.size() + 1, 0);  // the first index that chunks before have not set
  for (std::size_t c = 0; c < chunks.size(); ++c)
    next[c + 1] = chunks[c].rows.empty() ? next[c] : chunks[c].rows.back() + 1;
  cpu::for_each_chunk(context.thread_count(), chunks.size(), [&](std::uint64_t c, int) {
    std::uint64_t row = next[c];
    for (std::size_t i = 0; i < chunks[c].rows.size(); ++i) {
      to.begin.fill(row, chunks[c].rows[i] + 1, chunks[c].begin[i]);
      row = chunks[c].rows[i] + 1;
    }
  });
  to.begin.fill(next.back(), dim + 1, to.tensor_shape.nnz);
}

/// The rows of all chunks, one after the other.
void join_rows(const std::vector<RowsOfPart>& chunks, SortedCopy& to, const Context& context) {
  std::vector<std::uint64_t> first(chunks.size() + 1, 0);
  for (std::size_t c = 0; c < chunks.size(); ++c) first[c + 1] = first[c] + chunks[c].rows.size();
  if (SortedCopy::lists_all(to.tensor_shape, to.mode, static_cast<double>(first.back())))
    return set_all_begins(chunks, to, context);
  to.begin = Offsets(context, first.back() + 1, to.tensor_shape.nnz, purpose);
  to.begin.set(first.back(), to.tensor_shape.nnz);
  const auto join = [&]<class Index>(Buffer<Index> rows) {
    cpu::for_each_chunk(context.thread_count(), chunks.size(), [&](std::uint64_t c, int) {
      for (std::size_t i = 0; i < chunks[c].rows.size(); ++i) {
        rows[first[c] + i] = static_cast<Index>(chunks[c].rows[i]);
        to.begin.set(first[c] + i, chunks[c].begin[i]);
      }
    });
    to.rows = std::move(rows);
  };
  if (to.tensor_shape.index_width() == IndexWidth::u64) {
    join(Buffer<std::uint64_t>(context, first.back(), purpose, Paging::plain));
  } else {
    join(Buffer<std::uint32_t>(context, first.back(), purpose, Paging::plain));
  }
}

}  // namespace

std::uint64_t SortedCopy::index_bytes(const std::vector<std::uint64_t>& dims, int mode) {
  std::uint64_t longest = 0;
  for (std::size_t m = 0; m < dims.size(); ++m)
    if (static_cast<int>(m) != mode) longest = std::max(longest, dims[m]);
  return longest <= std::uint64_t{1} << 16U   ? 2
         : longest <= Index24::count          ? 3
         : longest <= std::uint64_t{1} << 32U ? 4
                                              : 8;
}

double SortedCopy::predicted_bytes(const CooTensor& x, int mode, double rows, const ValueCode& code) {
  const auto nnz = static_cast<double>(x.nnz());
  const auto index = static_cast<double>(index_bytes(x.dims, mode));
  const double others = static_cast<double>(x.order()) - 1;
  const bool all = lists_all(shape_of(x), mode, rows);
  const double begins = (all ? static_cast<double>(x.dims[static_cast<std::size_t>(mode)]) : rows) + 1;
  return NarrowValues::predicted_bytes(code, nnz) + others * (nnz + static_cast<double>(padding)) * index +
         (all ? 0 : rows * static_cast<double>(bytes_of(width_for(x.dims)))) +
         (orders_rows(shape_of(x), mode, rows) ? static_cast<double>(sizeof(RowInBlock)) * (begins - 1) : 0) +
         begins * static_cast<double>(Offsets::width_of(x.nnz())) +
         static_cast<double>(chunks_of(x.nnz()) * sizeof(ChunkEnds));
}

std::uint64_t SortedCopy::bytes() const {
  std::uint64_t sum = values.bytes() + bytes_in(rows) + begin.bytes() + ends.bytes() + by_length.bytes();
  for (const NarrowBuffer& b : indices) sum += bytes_in(b);
  return sum;
}

SortedCopy SortedCopy::with_room(const SortedNonzeros& nonzeros, int mode, const CooTensor& x, const ValueCode& code,
                                 const Context& context) {
  SortedCopy s;
  s.tensor_shape = shape_of(x);
  s.mode = mode;
  s.indices.resize(s.tensor_shape.dims.size());
  const std::uint64_t width = index_bytes(x.dims, mode);
  for (const int m : nonzeros.mode_order())
    if (m != mode) s.indices[static_cast<std::size_t>(m)] = buffer_of(width, x.nnz(), context);
  s.values = NarrowValues(context, code, x.nnz(), purpose);
  return s;
}

template <class Fill>
void SortedCopy::fill(const SortedNonzeros& nonzeros, const Fill& fill_arrays) {
  const auto with_code = [&]<class Code>(const auto& source, Code) {
    const auto with_indices = [&]<class Index>(Index) {
      NarrowArrays<Index> to;
      for (std::size_t l = 0; l < nonzeros.mode_order().size(); ++l)
        if (const int m = nonzeros.mode_order()[l]; m != mode)
          to.indices[l] = typed<Index>(indices[static_cast<std::size_t>(m)]);
      to.values = &values;
      fill_arrays(source, to, Code{});
    };
    const std::uint64_t width = index_bytes(tensor_shape.dims, mode);
    if (width == 2) return with_indices(std::uint16_t{});
    if (width == 3) return with_indices(Index24{});
    if (width == 4) return with_indices(std::uint32_t{});
    with_indices(std::uint64_t{});
  };
  nonzeros.visit([&]<class Source>(const Source& source) {
    if constexpr (std::is_same_v<typename Source::value_type, double>) {
      if (values.code().bytes == sizeof(double)) return with_code(source, std::uint64_t{});
    }
    with_code(source, std::uint32_t{});
  });
}

void SortedCopy::find_ends(const Context& context) {
  ends = Buffer<ChunkEnds>(context, chunks(), "the rows of chunks", Paging::plain);
  std::uint64_t row = 0;
  for (std::uint64_t c = 0; c < ends.size(); ++c) {
    ends[c].first_row = begin.group_after(row, c * chunk_nonzeros);
    row = begin.group_after(ends[c].first_row, std::min((c + 1) * chunk_nonzeros, tensor_shape.nnz) - 1);
    ends[c].last_row = row;
  }
}

void SortedCopy::finish(const Context& context) {
  find_ends(context);
  order_by_length(context);
}

SortedCopy SortedCopy::from(const SortedNonzeros& sorted, const CooTensor& x, const ValueCode& code,
                            const Context& context) {
  SortedCopy s = with_room(sorted, sorted.mode_order()[0], x, code, context);
  const std::uint64_t chunks = s.chunks();
  std::vector<RowsOfPart> found(chunks);
  s.fill(sorted, [&]<class Index, class Code>(const auto& nonzeros, const NarrowArrays<Index>& to, Code) {
    cpu::for_each_chunk(context.thread_count(), chunks, [&](std::uint64_t c, int) {
      const std::uint64_t from_nonzero = c * chunk_nonzeros;
      const std::uint64_t end = std::min(x.nnz(), from_nonzero + chunk_nonzeros);
      for (std::size_t l = 1; l < sorted.mode_order().size(); ++l) {
        Index* out = to.indices[l];
        for (std::uint64_t z = from_nonzero; z < end; ++z) out[z] = nonzeros.template index<Index>(l, z);
      }
      std::array<Code, 512> codes;
      for (std::uint64_t z = from_nonzero; z < end; z += codes.size()) {
        const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(codes.size(), end - z));
        encode_values(
            s.values.code(), count, [&](std::size_t i) { return nonzeros.value(z + i); }, codes.data());
        to.values->put(z, count, codes.data());
      }
      found[c] = rows_of(nonzeros, from_nonzero, end);
    });
  });
  join_rows(found, s, context);
  s.finish(context);
  return s;
}

SortedCopy SortedCopy::sorted(const SortedNonzeros& nonzeros, int mode, const CooTensor& x, const ValueCode& code,
                              const Context& context) {
  const auto level =
      static_cast<std::size_t>(std::ranges::find(nonzeros.mode_order(), mode) - nonzeros.mode_order().begin());
  {
    SortedCopy s = with_room(nonzeros, mode, x, code, context);
    std::vector<RowsOfPart> found;
    context.report({"sorting", 0, x.nnz(), "nonzeros"});
    s.fill(nonzeros, [&]<class Index, class Code>(const auto& source, const NarrowArrays<Index>& to, Code) {
      const NarrowedNonzeros<Index, Code, std::remove_cvref_t<decltype(source)>> narrowed(source, level,
                                                                                          s.values.code());
      found =
          sort_by_rows(narrowed, x.nnz(), {level, x.dims.size(), x.dims[static_cast<std::size_t>(mode)]}, to, context);
    });
    context.report({"sorting", x.nnz(), x.nnz(), "nonzeros"});
    if (!found.empty() || x.nnz() == 0) {
      join_rows(found, s, context);
      s.finish(context);
      return s;
    }
  }
  radix::Scratch scratch;
  return from(SortedNonzeros(nonzeros, mode, context, scratch), x, code, context);
}

SortedCopy SortedCopy::build(const CooTensor& x, const FormatOptions& options, const Context& context) {
  const int mode = options.mode.value_or(0);
  std::vector<int> order = {mode};
  for (int m = 0; m < x.order(); ++m)
    if (m != mode) order.push_back(m);
  // By the output mode alone: nonzeros of a row may come in any order.
  radix::Scratch unused;
  const SortedNonzeros as_they_are(x, order, 0, context, unused);
  const bool in_order = x.sorted_by.empty() ? radix::is_sorted_by(x, {&mode, 1}, context) : x.sorted_by[0] == mode;
  const ValueCode code = value_code(x, options, context);
  return in_order ? from(as_they_are, x, code, context) : sorted(as_they_are, mode, x, code, context);
}

extern const FormatClass copies_format;
const FormatClass copies_format = {
    {{"copies", "a copy per mode, sorted by it, with indices of 2 or 3 bytes where they fit"},
     "polyad's own; sorted copies per mode are as old as SPLATT (Smith et al., IPDPS 2015)",
     true,
     "nonzeros anywhere, modes of up to 65,536 indices: sums stay in registers, little is read beside the rows"},
    [](const CooTensor& x, const FormatOptions& options, const Context& context) {
      return erased(copies_format, options, SortedCopy::build(x, options, context));
    },
    [](const CooTensor& x, const TensorStatistics& statistics, const FormatOptions& options,
       const Context& context) -> StoragePrediction {
      const int mode = options.mode.value_or(0);
      const auto rows = static_cast<double>(statistics.modes[static_cast<std::size_t>(mode)].slices.count);
      const auto nnz = static_cast<double>(x.nnz());
      const auto index = static_cast<double>(SortedCopy::index_bytes(x.dims, mode));
      const double indices = SortedCopy::lists_all(shape_of(x), mode, rows)
                                 ? static_cast<double>(x.dims[static_cast<std::size_t>(mode)])
                                 : 2 * rows;
      return {nnz * static_cast<double>(x.order() - 1) * index / 4 + indices,
              SortedCopy::predicted_bytes(x, mode, rows, ValueCode::of(x, context)),
              "index/4*nnz*(N-1) + min(2*S, I)",
              {}};
    },
    [](const EstimateRequest& q) {
      SweepEstimate e;
      for (int n = 0; n < q.sample.order(); ++n) {
        const double rows = q.sample.occurring(n);
        e.bytes += SortedCopy::predicted_bytes(q.sample.tensor(), n, rows, q.sample.value_code());
        e.ns += sorted_copy_ns(q, n, rows, SortedCopy::orders_rows(shape_of(q.sample.tensor()), n, rows));
      }
      e.build_ns = 13 * q.sample.nnz() * q.sample.order();
      e.build_bytes = bytes_from_sorted(q, e.bytes);
      e.deterministic = true;
      e.why = "one narrow copy per mode, sorted by it: sums stay in registers";
      return e;
    },
    true};

}  // namespace polyad
