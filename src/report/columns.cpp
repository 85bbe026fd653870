// SPDX-License-Identifier: MIT
#include "report/columns.hpp"

#include <algorithm>

namespace polyad::report {

std::vector<Line> lines(const Matrix& a, std::span<const std::uint64_t> sequence, std::uint64_t points) {
  std::vector<Line> out(a.cols);
  const auto row_at = [&](std::uint64_t place) {
    return a.values.data() + (sequence.empty() ? place : sequence[place]) * a.cols;
  };
  const auto put = [&](std::uint64_t r, std::uint64_t place, double value) {
    out[r].places.push_back(place);
    out[r].values.push_back(value);
  };
  struct Extreme {
    std::uint64_t place = 0;
    double value = 0;
  };
  std::vector<Extreme> lowest(a.cols);
  std::vector<Extreme> highest(a.cols);
  const std::uint64_t buckets = a.rows <= points ? a.rows : std::max<std::uint64_t>(points / 2, 1);
  std::uint64_t begin = 0;
  for (std::uint64_t b = 0; b < buckets; ++b) {
    const std::uint64_t end = begin + a.rows / buckets + (b < a.rows % buckets ? 1 : 0);
    for (std::uint64_t place = begin; place < end; ++place) {
      const double* row = row_at(place);
      for (std::uint64_t r = 0; r < a.cols; ++r) {
        if (place == begin || row[r] < lowest[r].value) lowest[r] = {place, row[r]};
        if (place == begin || row[r] > highest[r].value) highest[r] = {place, row[r]};
      }
    }
    for (std::uint64_t r = 0; r < a.cols; ++r) {
      Extreme first = lowest[r];
      Extreme last = highest[r];
      if (last.place < first.place) std::swap(first, last);
      if (b == 0 && first.place != begin) put(r, begin, row_at(begin)[r]);
      put(r, first.place, first.value);
      if (last.place != first.place) put(r, last.place, last.value);
      if (b + 1 == buckets && last.place != end - 1) put(r, end - 1, row_at(end - 1)[r]);
    }
    begin = end;
  }
  return out;
}

}  // namespace polyad::report
