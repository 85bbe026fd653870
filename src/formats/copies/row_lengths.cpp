// SPDX-License-Identifier: MIT
/// \file Rows of a copy in the order of their lengths: a processor foresees where a row ends when the one before ended
/// there too.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <variant>
#include <vector>

#include "backends/cpu/threads.hpp"
#include "formats/copies/copies.hpp"

namespace polyad {

bool SortedCopy::orders_rows(const TensorShape& shape, int mode, double occurring) {
  if (!lists_all(shape, mode, occurring)) return false;
  const auto output = static_cast<std::size_t>(mode);
  for (std::size_t m = 0; m < shape.dims.size(); ++m)
    if (m != output && shape.dims[m] * bytes_of(shape.precision) > most_near_bytes) return false;
  return shape.nnz / short_row < shape.dims[output];
}

void SortedCopy::order_by_length(const Context& context) {
  const bool have_begins = bytes_in(rows) == 0;  // all indices: these are the groups
  if (!have_begins || !orders_rows(tensor_shape, mode, static_cast<double>(begin.groups()))) return;
  by_length = Buffer<RowInBlock>(context, begin.groups(), "the order of rows by their length", Paging::plain);
  for (std::uint64_t i = 0; i < by_length.size(); ++i) by_length[i] = static_cast<RowInBlock>(i % block_rows);
  cpu::for_each_chunk(context.thread_count(), ends.size(), [&](std::uint64_t c, int) {
    OrderScratch scratch;
    for (std::uint64_t from = ends[c].first_row + 1, to = 0; from < ends[c].last_row; from = to) {
      to = std::min(ends[c].last_row, (from / block_rows + 1) * block_rows);
      order_rows(from, to, scratch);
    }
  });
}

void SortedCopy::order_rows(std::uint64_t from, std::uint64_t to, OrderScratch& scratch) {
  const std::uint64_t first = begin[from];
  const std::uint64_t nonzeros = begin[to] - first;
  if (nonzeros == 0) return;  // rows that do not occur are all alike
  const auto count = static_cast<std::size_t>(to - from);
  // A counting sort: those of one length stay as they are.
  std::vector<std::uint32_t>& begins = scratch.begins;
  std::vector<std::uint32_t>& place = scratch.place;
  begins.resize(count + 1);
  place.assign(2, 0);
  for (std::size_t i = 0; i <= count; ++i) begins[i] = static_cast<std::uint32_t>(begin[from + i] - first);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t length = begins[i + 1] - begins[i];
    if (length + 2 > place.size()) place.resize(length + 2, 0);
    ++place[length + 1];
  }
  std::partial_sum(place.begin(), place.end(), place.begin());
  const std::uint64_t block = from / block_rows * block_rows;
  RowInBlock* const order = by_length.data() + from;
  for (std::size_t i = 0; i < count; ++i)
    order[place[begins[i + 1] - begins[i]]++] = static_cast<RowInBlock>(from - block + i);
  const auto for_rows = [&](const auto& f) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t before = order[i] + block - from;
      f(i, begins[before], begins[before + 1]);
    }
  };
  const auto move = [&]<class E>(E* array) {
    array += first;
    scratch.room.resize(nonzeros * sizeof(E));
    std::memcpy(scratch.room.data(), array, scratch.room.size());
    for_rows([&](std::size_t, std::uint32_t z, std::uint32_t end) {
      for (; z < end; ++z) std::memcpy(array++, scratch.room.data() + z * sizeof(E), sizeof(E));
    });
  };
  for (NarrowBuffer& b : indices)
    std::visit(
        [&](auto& buffer) {
          if (!buffer.empty()) move(buffer.data());
        },
        b);
  values.visit_codes(move);
  std::uint64_t next = first;
  for_rows([&](std::size_t i, std::uint32_t z, std::uint32_t end) {
    begin.set(from + i, next);
    next += end - z;
  });
}

}  // namespace polyad
