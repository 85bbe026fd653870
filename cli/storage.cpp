// SPDX-License-Identifier: MIT
#include "storage.hpp"

#include <algorithm>
#include <cmath>

namespace polyad::cli {

namespace {

StorageRow row_of(const CooTensor& x, const TensorStatistics& s, const FormatEntry& format, std::optional<int> mode,
                  Measuring measuring, const Context& context) {
  StorageRow row;
  row.format = format.name;
  row.mode = mode;
  FormatOptions options;
  options.mode = mode;
  try {
    row.predicted = predict_storage(x, s, format.name, options, context);
    row.refused = row.predicted->refusal;
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::limit) throw;
    row.refused = e.what();
  }
  if (!row.refused.empty()) return row;
  // A megabyte more, so that the smallest tensors are measured too.
  const bool moderate = row.predicted->bytes <= 16.0 * static_cast<double>(x.bytes()) + 1e6;
  if (measuring == Measuring::none || (measuring == Measuring::moderate && !moderate)) return row;
  try {
    row.measured = build(x, format.name, options, context).bytes();
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::limit) throw;  // else the memory is enough to predict, not to build
  }
  return row;
}

std::uint64_t rounded(double bytes) { return static_cast<std::uint64_t>(std::llround(bytes)); }

}  // namespace

std::vector<StorageRow> storage_of(const CooTensor& x, const TensorStatistics& s, Measuring measuring,
                                   const Context& context) {
  std::vector<StorageRow> rows;
  if (x.order() < 2) return rows;
  std::uint64_t total = 0;
  for (const FormatEntry& f : formats()) total += f.mode_specific ? static_cast<std::uint64_t>(x.order()) : 1;
  for (const FormatEntry& f : formats())
    for (int m = 0; m < (f.mode_specific ? x.order() : 1); ++m) {
      context.report({"measuring storage", rows.size(), total, "structures"});
      rows.push_back(row_of(x, s, f, f.mode_specific ? std::optional(m) : std::nullopt, measuring, context));
    }
  return rows;
}

Json describe(const std::vector<StorageRow>& rows) {
  Json all = Json::array();
  for (const StorageRow& r : rows) {
    Json row = {{"format", r.format}, {"mode", r.mode ? Json(*r.mode + 1) : Json()}};
    const bool fits = r.refused.empty();
    row["bytes"] = !fits ? Json() : Json(r.measured ? *r.measured : rounded(r.predicted->bytes));
    row["words"] = r.predicted ? Json(r.predicted->words) : Json();
    row["predicted_bytes"] = r.predicted ? Json(rounded(r.predicted->bytes)) : Json();
    row["formula"] = r.predicted ? Json(r.predicted->formula) : Json();
    row["measured"] = r.measured.has_value();
    if (!fits) row["refused"] = r.refused;
    all.push_back(std::move(row));
  }
  return all;
}

void print_table(const std::vector<StorageRow>& rows, const CooTensor& x, Session& session) {
  if (rows.empty()) return;
  const auto per_nonzero = [&](double bytes) {
    return x.nnz() == 0 ? std::string("-") : fmt::format("{:.2f}", bytes / static_cast<double>(x.nnz()));
  };
  std::size_t width = 6;
  for (const StorageRow& r : rows) width = std::max(width, r.format.size());
  session.print("\n  {:<{}}  {:>4}  {:>12}  {:>12}  {:>9}  {:>15}\n", "format", width, "mode", "bytes", "predicted",
                "per nnz", "paper's words");
  for (const StorageRow& r : rows) {
    const std::string mode = r.mode ? fmt::format("{}", *r.mode + 1) : "all";
    if (!r.refused.empty()) {
      session.print("  {:<{}}  {:>4}  refused: {}\n", r.format, width, mode, r.refused);
      continue;
    }
    session.print("  {:<{}}  {:>4}  {:>12}  {:>12}  {:>9}  {:>15}\n", r.format, width, mode,
                  r.measured ? readable_bytes(*r.measured) : "-", readable_bytes(rounded(r.predicted->bytes)),
                  per_nonzero(r.measured ? static_cast<double>(*r.measured) : r.predicted->bytes),
                  readable_count(rounded(r.predicted->words)));
  }
}

}  // namespace polyad::cli
