// SPDX-License-Identifier: MIT
// check_file(): goes through a file to the end and lists everything wrong or worth knowing, with its line.
#include <fmt/format.h>

#include <algorithm>

#include "io/dialect.hpp"
#include "io/read_options.hpp"
#include "polyad/error.hpp"
#include "polyad/operations.hpp"
#include "polyad/statistics.hpp"

namespace polyad {

namespace {

std::string coordinate(const CooTensor& x, std::uint64_t k) {
  std::string text;
  for (int m = 0; m < x.order(); ++m) text += fmt::format("{}{}", m > 0 ? " " : "", x.index(m, k) + 1);
  return text;
}

/// Lists duplicates: sorts the coordinates with the number of each nonzero as its value (exact below 2^53).
void list_duplicates(const CooTensor& x, const std::vector<std::uint64_t>& line_of, std::uint64_t most,
                     std::vector<Problem>& problems, const Context& context) {
  CooTensor order = copy_as(x, Precision::f64, context);
  auto& number = std::get<Buffer<double>>(order.values);
  for (std::uint64_t k = 0; k < order.nnz(); ++k) number[k] = static_cast<double>(k);
  order.sorted_by.clear();
  std::vector<int> modes(static_cast<std::size_t>(x.order()));
  for (std::size_t m = 0; m < modes.size(); ++m) modes[m] = static_cast<int>(m);
  sort_nonzeros(order, modes, context);
  visit(std::as_const(order), [&](const auto& v) {
    const auto same = [&](std::uint64_t a, std::uint64_t b) {
      for (int m = 0; m < v.order; ++m)
        if (v.indices[static_cast<std::size_t>(m)][a] != v.indices[static_cast<std::size_t>(m)][b]) return false;
      return true;
    };
    std::uint64_t first = 0;
    std::uint64_t listed = 0;
    for (std::uint64_t k = 1; k < v.nnz && listed < most; ++k) {
      if (!same(first, k)) {
        first = k;
        continue;
      }
      const auto here = static_cast<std::uint64_t>(v.values[k]);
      const auto before = static_cast<std::uint64_t>(v.values[first]);
      ++listed;
      if (line_of.empty()) {
        problems.push_back({false, 0,
                            fmt::format("nonzero {} has the same indices ({}) as nonzero {}", here + 1,
                                        coordinate(x, here), before + 1)});
      } else {
        problems.push_back({false, line_of[here],
                            fmt::format("the same indices ({}) as in line {}", coordinate(x, here), line_of[before])});
      }
    }
  });
}

}  // namespace

CheckReport check_file(const std::string& path, const ReadOptions& options, std::uint64_t most,
                       const Context& context) {
  CheckReport report;
  io::InputStream input(path, context.cancelled);
  const io::Dialect& dialect = io::choose_dialect(input, options);
  report.read.dialect = dialect.name;
  report.read.compression = input.compression();
  report.read.file_bytes = input.file_bytes().value_or(0);

  io::ProblemCollector collector;
  collector.most = most;
  CooTensor x;
  if (dialect.header != nullptr) {
    const io::TextHeader header = dialect.header(input, options, report.read);
    x = io::read_text(input, header, options, context, report.read, &collector);
    // A mirrored entry has no line of its own.
    if (header.layout.symmetry != io::Symmetry::none) collector.line_of.clear();
  } else {
    x = dialect.read(input, options, context, report.read);
  }
  report.errors = collector.errors;
  report.problems = std::move(collector.problems);
  io::attach_labels(x, path, options, report.read);

  const TensorStatistics s = statistics(x, context);
  report.duplicates = s.duplicates;
  report.zeros = s.zeros;
  for (const ModeStatistics& mode : s.modes) report.empty_slices.push_back(mode.dim - mode.slices.count);
  if (s.duplicates > 0) list_duplicates(x, collector.line_of, most, report.problems, context);
  std::uint64_t listed = 0;
  for (std::uint64_t k = 0; s.zeros > 0 && k < x.nnz() && listed < std::min(most, s.zeros); ++k) {
    if (x.value(k) != 0) continue;
    ++listed;
    const bool lines = !collector.line_of.empty();
    report.problems.push_back({false, lines ? collector.line_of[k] : 0,
                               lines
                                   ? fmt::format("the value is zero (at {})", coordinate(x, k))
                                   : fmt::format("the value of nonzero {} is zero (at {})", k + 1, coordinate(x, k))});
  }
  // Errors come before notes when there is not room for all; what is listed is in the order of lines.
  std::ranges::stable_sort(report.problems, std::ranges::greater{}, &Problem::is_error);
  if (report.problems.size() > most) report.problems.resize(most);
  std::ranges::stable_sort(report.problems, {}, &Problem::line);
  if (report.errors == 0) report.tensor = std::move(x);
  return report;
}

}  // namespace polyad
