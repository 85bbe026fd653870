// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <bit>
#include <optional>

#include "kernel_options.hpp"
#include "session.hpp"
#include "storage.hpp"
#include "verb.hpp"

namespace polyad::cli {

namespace {

Json describe(const GroupStatistics& g) { return {{"mean", g.mean}, {"max", g.max}, {"stdev", g.stdev}}; }

Json describe(const CooTensor& x, const ReadReport& report, const TensorStatistics& s) {
  Json modes = Json::array();
  for (int m = 0; m < x.order(); ++m) {
    const ModeStatistics& mode = s.modes[static_cast<std::size_t>(m)];
    modes.push_back({{"dim", mode.dim},
                     {"name", x.labels.empty() ? "" : x.labels[static_cast<std::size_t>(m)].name()},
                     {"labels", x.labels.empty() ? 0 : x.labels[static_cast<std::size_t>(m)].size()},
                     {"slices", mode.slices.count},
                     {"fibres", mode.fibres.count},
                     {"nnz_per_slice", describe(mode.slices)},
                     {"nnz_per_fibre", describe(mode.fibres)}});
  }
  return {{"order", x.order()},
          {"dims", x.dims},
          {"nnz", x.nnz()},
          {"density", s.density},
          {"norm", s.norm},
          {"sum", s.sum},
          {"min", s.min},
          {"max", s.max},
          {"zeros", s.zeros},
          {"duplicates", s.duplicates},
          {"modes", modes},
          {"dialect", report.dialect},
          {"compression", report.compression},
          {"index_base", report.index_base},
          {"file_bytes", report.file_bytes},
          {"index_bits", 8 * bytes_of(x.index_width())},
          {"precision", name_of(x.precision())},
          {"coo_bytes", x.bytes()},
          {"notes", report.notes}};
}

/// A number of about four significant digits, as people write it.
std::string brief(double value) {
  if (value == 0) return "0";
  const double size = std::abs(value);
  if (size >= 1e9 || size < 1e-3) return fmt::format("{:.3e}", value);
  if (value == std::floor(value)) {
    const std::string digits = readable_count(static_cast<std::uint64_t>(size));
    return value < 0 ? "-" + digits : digits;
  }
  return fmt::format("{:.{}f}", value, size >= 1000 ? 1 : size >= 10 ? 2 : 4);
}

/// Bars for the counts, the largest full: eight heights, square-rooted so that small groups stay visible.
std::string bars(const std::array<std::uint64_t, 64>& histogram, std::size_t columns) {
  static constexpr std::string_view blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const std::uint64_t top = *std::ranges::max_element(histogram);
  std::string text;
  for (std::size_t b = 0; b < columns; ++b) {
    std::size_t height = 0;
    if (histogram[b] > 0)
      height = std::max<std::size_t>(
          1, static_cast<std::size_t>(
                 std::lround(8 * std::sqrt(static_cast<double>(histogram[b]) / static_cast<double>(top)))));
    for (int i = 0; i < 3; ++i) text += blocks[height];
    text += ' ';
  }
  return text;
}

/// The lower end of each column: 1, 2, 4, ..., 1k, 2k, ...
std::string axis(std::size_t columns) {
  std::string text;
  for (std::size_t b = 0; b < columns; ++b) {
    static constexpr std::string_view units[] = {"", "k", "M", "G", "T", "P", "E"};
    text += fmt::format("{:<4}", fmt::format("{}{}", std::uint64_t{1} << (b % 10), units[b / 10]));
  }
  return text;
}

void print_page(const std::string& file, const CooTensor& x, const ReadReport& report, const TensorStatistics& s,
                Session& session) {
  std::string how = report.dialect;
  if (!report.compression.empty()) how += ", " + report.compression;
  if (report.file_bytes > 0) how += ", " + readable_bytes(report.file_bytes);
  session.print("{}  ({})\n\n", file, how);
  session.print("  order {}   {}   {} nonzeros   density {}\n", x.order(), readable_dims(x.dims),
                readable_count(x.nnz()), brief(s.density));
  session.print("  values {} to {}   sum {}   norm {}\n", brief(s.min), brief(s.max), brief(s.sum), brief(s.norm));
  session.print("  duplicates {}   zeros {}   in memory {} ({}-bit indices, {})\n\n",
                s.duplicates == 0 ? "none" : readable_count(s.duplicates),
                s.zeros == 0 ? "none" : readable_count(s.zeros), readable_bytes(x.bytes()),
                8 * bytes_of(x.index_width()), name_of(x.precision()));

  std::size_t width = 4;
  for (int m = 0; m < x.order(); ++m) width = std::max(width, x.mode_name(m).size());
  session.print("  {:<{}}  {:>13} {:>13}  {:>31}  {:>13}  {:>31}\n", "", width, "", "non-empty",
                "nonzeros per slice   ", "non-empty", "nonzeros per fibre   ");
  session.print("  {:<{}}  {:>13} {:>13}  {:>10} {:>10} {:>9}  {:>13}  {:>10} {:>10} {:>9}\n", "mode", width, "length",
                "slices", "mean", "max", "stdev", "fibres", "mean", "max", "stdev");
  std::size_t columns = 1;
  for (int m = 0; m < x.order(); ++m) {
    const ModeStatistics& mode = s.modes[static_cast<std::size_t>(m)];
    const auto row = [](const GroupStatistics& g) {
      return fmt::format("{:>10} {:>10} {:>9}", brief(g.mean), readable_count(g.max), brief(g.stdev));
    };
    session.print("  {:<{}}  {:>13} {:>13}  {}  {:>13}  {}\n", x.mode_name(m), width, readable_count(mode.dim),
                  readable_count(mode.slices.count), row(mode.slices), readable_count(mode.fibres.count),
                  row(mode.fibres));
    columns = std::max(columns, static_cast<std::size_t>(std::bit_width(mode.slices.max)));
  }
  if (x.nnz() > 0) {
    session.print("\n  how many slices have so many nonzeros (each column twice the one before)\n");
    for (int m = 0; m < x.order(); ++m)
      session.print("  {:<{}}  {}\n", x.mode_name(m), width,
                    bars(s.modes[static_cast<std::size_t>(m)].slices.histogram, columns));
    session.print("  {:<{}}  {}\n", "", width, axis(columns));
  }
  for (const std::string& note : report.notes) session.print("\n  note: {}\n", note);
}

struct InfoOptions {
  InputOptions input;
  bool measure = false;
  bool predict = false;
};

/// Larger tensors are not built in every format unless asked: 10 million nonzeros take some seconds.
constexpr std::uint64_t most_to_build = 10'000'000;

/// What the formats take, how the tensor falls into blocks, and what would be chosen.
void describe_formats(const CooTensor& x, const TensorStatistics& s, const InfoOptions& o, Session& session) {
  const Context& context = session.context();
  const Measuring measuring = o.measure                              ? Measuring::all
                              : o.predict || x.nnz() > most_to_build ? Measuring::none
                                                                     : Measuring::moderate;
  const std::vector<StorageRow> rows = session.timed("storage", [&] { return storage_of(x, s, measuring, context); });
  session.json()["storage"] = cli::describe(rows);
  print_table(rows, x, session);
  session.json()["hicoo"] = nullptr;
  session.print("\n");
  std::optional<HicooFacts> facts;
  try {
    facts = session.timed("hicoo", [&] { return hicoo_facts(x, context); });
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::limit) throw;
    session.note(fmt::format("the blocks of HiCOO were not counted: {}", e.what()));
  }
  if (facts) {
    const int block = 1 << static_cast<unsigned>(facts->block_bits);
    session.json()["hicoo"] = {{"block", block}, {"alpha_b", facts->alpha_b}, {"c_b", facts->c_b}};
    session.print("  blocks of {} in each mode: {} per nonzero (alpha_b), geometric mean of nonzeros / {}: {} (c_b)\n",
                  block, brief(facts->alpha_b), block, brief(facts->c_b));
  }
  const Choice choice = format_option("auto", {}, x, FormatOptions{}.rank, session);
  session.json()["choice"] = {{"format", choice.format}, {"why", choice.why}};
  session.print("  auto would take {}: {}\n", choice.format, choice.why);
}

std::function<void(Session&)> declare_info(CLI::App& command) {
  auto o = std::make_shared<InfoOptions>();
  declare_input(command, o->input);
  CLI::Option* measure =
      command.add_flag("--measure", o->measure, "build every format, also above 10 million nonzeros");
  command.add_flag("--predict", o->predict, "build none: bytes by formula only")->excludes(measure);
  return [o](Session& session) {
    const ReadResult read = load(o->input, session);
    const TensorStatistics s = session.timed("statistics", [&] { return statistics(read.tensor, session.context()); });
    session.json() = describe(read.tensor, read.report, s);
    print_page(o->input.file == "-" ? "standard input" : o->input.file, read.tensor, read.report, s, session);
    describe_formats(read.tensor, s, *o, session);
  };
}

}  // namespace

const Verb info_verb = {"info", "what a tensor looks like", "polyad info ratings.tns.gz", declare_info,
                        DeviceUse::plans};

}  // namespace polyad::cli
