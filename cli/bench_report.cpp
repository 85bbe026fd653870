// SPDX-License-Identifier: MIT
#include "bench_report.hpp"

#include <algorithm>
#include <cmath>

#include "svg.hpp"

namespace polyad::cli {

namespace {

constexpr std::size_t page = 100;  // columns of a terminal

/// Four digits in at most six characters.
std::string four_digits(double v) {
  if (v >= 999.95) return v >= 1e6 ? fmt::format("{:.1e}", v) : fmt::format("{:.0f}", v);
  return fmt::format("{:.{}f}", v, v >= 99.995 ? 1 : v >= 9.9995 ? 2 : 3);
}

std::string ms(double seconds) { return four_digits(seconds * 1e3); }

Json describe(const Times& t) { return {{"min", t.min}, {"median", t.median}}; }

/// Speed of `modes` runs in `seconds`.
struct Speed {
  double gflops = 0;
  double gbs = 0;
};
Speed speed_of(const BenchReport& r, double seconds, std::size_t modes) {
  const double runs = seconds > 0 ? static_cast<double>(modes) / seconds / 1e9 : 0;
  return {r.flops * runs, r.traffic * runs};
}

/// Six characters for any mode.
std::string mode_heading(int mode) { return fmt::format("mode{:>2}", mode + 1); }

/// MTTKRPs or TTVs in one sweep.
std::size_t runs_of(const BenchReport& r) { return r.operation == "cpd" ? r.dims.size() : r.modes.size(); }

std::string title(const BenchReport& r) {
  if (r.operation == "cpd") return fmt::format("Iterations of CP-ALS of rank {}", r.rank);
  return r.operation == "mttkrp" ? fmt::format("MTTKRP of rank {}", r.rank) : "TTV";
}

std::string circumstances(const BenchReport& r) {
  return fmt::format("{}: {}, {} nonzeros, {}, {} thread{}", r.file, readable_dims(r.dims), readable_count(r.nnz),
                     r.precision, r.threads, r.threads == 1 ? "" : "s");
}

void print_mode_block(const BenchReport& r, std::size_t begin, std::size_t end, std::size_t width, Session& session) {
  session.print("\n  {:<{}}", "ms", width);
  for (std::size_t k = begin; k < end; ++k) session.print(" {:>6}", mode_heading(r.modes[k]));
  session.print("\n");
  for (const FormatResult& f : r.results) {
    if (!f.refused.empty()) continue;
    session.print("{} {:<{}}", &f == r.best() ? "*" : " ", f.label(), width);
    for (std::size_t k = begin; k < end; ++k) session.print(" {:>6}", ms(f.modes[k].seconds.min));
    session.print("\n");
  }
}

}  // namespace

Times times_of(std::vector<double> seconds) {
  if (seconds.empty()) return {};
  std::ranges::sort(seconds);
  const std::size_t n = seconds.size();
  return {seconds[0], n % 2 == 1 ? seconds[n / 2] : (seconds[n / 2 - 1] + seconds[n / 2]) / 2};
}

const FormatResult* BenchReport::best() const {
  const FormatResult* found = nullptr;
  for (const FormatResult& f : results)
    if (f.refused.empty() && (found == nullptr || f.sweep.min < found->sweep.min)) found = &f;
  return found;
}

Json describe(const BenchReport& r) {
  Json rows = Json::array();
  const auto speed = [&](Json& row, double seconds, std::size_t modes) {
    const Speed s = speed_of(r, seconds, modes);
    row["gflops"] = s.gflops;
    row["gbs"] = s.gbs;
    row["stream_share"] = r.stream_gbs ? Json(s.gbs / *r.stream_gbs) : Json();
  };
  for (const FormatResult& f : r.results) {
    if (!f.refused.empty()) {
      Json row = {{"format", f.format}, {"mode", "all"}, {"refused", f.refused}};
      if (!f.kernel.empty()) row["kernel"] = f.kernel;
      rows.push_back(std::move(row));
      continue;
    }
    for (const ModeResult& m : f.modes) {
      Json row = {{"format", f.format}, {"kernel", m.kernel}, {"mode", m.mode + 1}, {"seconds", describe(m.seconds)}};
      speed(row, m.seconds.min, 1);
      row["why"] = m.why;
      for (const GroupBalance& b : m.balance)
        row["groups"].push_back(
            {{"groups", b.groups}, {"heaviest", b.heaviest}, {"mean", b.mean}, {"ratio", b.ratio()}});
      rows.push_back(std::move(row));
    }
    Json row = {{"format", f.format}, {"mode", "all"}, {"seconds", describe(f.sweep)}};
    if (!f.kernel.empty()) row["kernel"] = f.kernel;
    row["build_seconds"] = f.build_seconds;
    row["bytes"] = f.bytes;
    speed(row, f.sweep.min, runs_of(r));
    rows.push_back(std::move(row));
  }
  return {{"tensor", {{"file", r.file}, {"order", r.dims.size()}, {"dims", r.dims}, {"nnz", r.nnz}}},
          {"rank", r.rank},
          {"threads", r.threads},
          {"precision", r.precision},
          {"kernel", r.operation},
          {"stream_gbs", r.stream_gbs ? Json(*r.stream_gbs) : Json()},
          {"results", std::move(rows)}};
}

namespace {

/// Devices: the nonzeros of the heaviest work-group over the mean, mode by mode; of several kernels the one with most
/// work-groups.
void print_balance(const BenchReport& r, std::size_t width, Session& session) {
  const auto has_balance = [](const FormatResult& f) {
    return f.refused.empty() && !f.modes.empty() &&
           std::ranges::none_of(f.modes, [](const ModeResult& m) { return m.balance.empty(); });
  };
  if (std::ranges::none_of(r.results, has_balance)) return;
  session.print("\nnonzeros of the heaviest work-group over the mean\n");
  for (const FormatResult& f : r.results) {
    if (!has_balance(f)) continue;
    session.print("  {:<{}}", f.label(), width);
    for (const ModeResult& m : f.modes)
      session.print(" {:>6}", four_digits(std::ranges::max_element(m.balance, {}, &GroupBalance::groups)->ratio()));
    session.print("\n");
  }
}

}  // namespace

void print_table(const BenchReport& r, Session& session) {
  session.print("{}; {}\n", title(r), circumstances(r));
  if (r.stream_gbs) session.print("memory bandwidth {:.1f} GB/s (STREAM triad, the same threads)\n", *r.stream_gbs);
  std::size_t width = 9;
  for (const FormatResult& f : r.results) width = std::max(width, f.label().size());

  // Name, modes, then eight columns: with more modes than fit the line they get lines of their own below.
  constexpr std::size_t fixed = 7 + 6 + 7 + 7 + 7 + 7 + 7 + 6;
  const std::size_t room = page > fixed + width + 2 ? (page - fixed - width - 2) / 7 : 0;
  const std::size_t inside = r.modes.size() <= room ? r.modes.size() : 0;
  session.print("\n  {:<{}}", "", width);
  for (std::size_t k = 0; k < inside; ++k) session.print(" {:>6}", mode_heading(r.modes[k]));
  session.print(" {:>6} {:>5} {:>6} {:>6} {:>6} {:>6} {:>6} {:>5}\n", "all", "times", "GFLOP", "GB", "% of", "build",
                "build", "bytes");
  session.print("  {:<{}}", "format", width);
  for (std::size_t k = 0; k < inside; ++k) session.print(" {:>6}", "ms");
  session.print(" {:>6} {:>5} {:>6} {:>6} {:>6} {:>6} {:>6} {:>5}\n", "ms", "best", "per s", "per s", "STREAM", "s",
                "sweeps", "/nnz");
  const FormatResult* best = r.best();
  for (const FormatResult& f : r.results) {
    if (!f.refused.empty()) {
      session.print("  {:<{}} refused: {}\n", f.label(), width, f.refused);
      continue;
    }
    const Speed s = speed_of(r, f.sweep.min, runs_of(r));
    session.print("{} {:<{}}", &f == best ? "*" : " ", f.label(), width);
    for (std::size_t k = 0; k < inside; ++k) session.print(" {:>6}", ms(f.modes[k].seconds.min));
    session.print(" {:>6} {:>5} {:>6} {:>6} {:>6} {:>6} {:>6} {:>5}\n", ms(f.sweep.min),
                  fmt::format("{:.2f}", best->sweep.min > 0 ? f.sweep.min / best->sweep.min : 1), four_digits(s.gflops),
                  four_digits(s.gbs), r.stream_gbs ? fmt::format("{:.0f}", 100 * s.gbs / *r.stream_gbs) : "-",
                  four_digits(f.build_seconds), f.sweep.min > 0 ? four_digits(f.build_seconds / f.sweep.min) : "-",
                  r.nnz > 0 ? fmt::format("{:.1f}", static_cast<double>(f.bytes) / static_cast<double>(r.nnz)) : "-");
  }
  if (inside == 0) {
    const std::size_t columns = std::max<std::size_t>(1, (page - 2 - std::min(width, page - 9)) / 7);
    for (std::size_t begin = 0; begin < r.modes.size(); begin += columns)
      print_mode_block(r, begin, std::min(r.modes.size(), begin + columns), width, session);
  }
  print_balance(r, width, session);
  session.print("\n{}\n", r.operation != "ttv"
                              ? "GFLOP: nnz*R*N a mode. GB: nnz*((N*R+3)*value + N*index) bytes a mode, as if caches "
                                "kept nothing."
                              : "GFLOP: 2*nnz a mode. GB: nnz*(2*value + N*index) bytes a mode.");
  if (best != nullptr && r.operation == "cpd")
    session.print("* {} is the fastest: {} ms an iteration\n", best->label(), ms(best->sweep.min));
  else if (best != nullptr)
    session.print("* {} is the fastest: {} ms for {} of {} modes\n", best->label(), ms(best->sweep.min), r.modes.size(),
                  r.dims.size());
}

std::string plot(const BenchReport& r) {
  BarChart chart;
  chart.title = title(r);
  chart.subtitle = circumstances(r);
  chart.axis = "milliseconds for one sweep over the modes (best of the repeats, mode by mode)";
  for (const int m : r.modes) chart.series.push_back(fmt::format("mode {}", m + 1));
  if (r.operation == "cpd") {
    chart.axis = "milliseconds an iteration (best of the repeats)";
    chart.series.emplace_back("iteration");
  }
  for (const FormatResult& f : r.results) {
    BarChart::Bar bar;
    bar.label = f.label();
    bar.remark = f.refused.empty() ? "" : "refused: " + f.refused;
    for (const ModeResult& m : f.modes) bar.parts.push_back(f.refused.empty() ? m.seconds.min * 1e3 : 0);
    if (r.operation == "cpd") bar.parts.push_back(f.sweep.min * 1e3);
    chart.bars.push_back(std::move(bar));
  }
  std::ranges::stable_sort(chart.bars, [](const BarChart::Bar& a, const BarChart::Bar& b) {
    if (a.remark.empty() != b.remark.empty()) return a.remark.empty();
    return a.total() < b.total();
  });
  return svg_of(chart);
}

}  // namespace polyad::cli
