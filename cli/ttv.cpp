// SPDX-License-Identifier: MIT
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "kernel_options.hpp"
#include "session.hpp"
#include "verb.hpp"

namespace polyad::cli {

namespace {

struct TtvOptions {
  InputOptions input;
  int mode = 0;  // from 1
  std::string vector;
  std::string output;
  std::string format = "auto";
};

/// One product pays for no structure. 10 M nonzeros like deli, mode 1, f32, seconds of one thread to build and to
/// multiply: coo 0.11 + 0.33, cfb 0.45 + 0.20, hocfs-csr 0.57 + 0.17.
constexpr std::string_view automatic_format = "coo";
/// Devices: the paper's own format, of which slices go to work-groups and fibres to work-items.
constexpr std::string_view automatic_on_devices = "hocfs-csr";

/// How many sums are printed when they are not written.
constexpr std::uint64_t most_printed = 10;

/// A word of the file as a message can show it.
std::string shown(std::string_view word) {
  std::string text;
  for (const char c : word.substr(0, 40)) {
    const bool plain = static_cast<unsigned char>(c) >= 32 && c != 127;
    text += plain ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return word.size() > 40 ? text + "..." : text;
}

/// Numbers between blanks, one by one, with the line they are in.
class NumberFile {
 public:
  explicit NumberFile(const std::string& path) : path_(path), file_(path, std::ios::binary) {
    if (std::filesystem::is_directory(path)) throw file_error(path_, 0, "is a folder, expected a text file of numbers");
    if (!file_) throw file_error(path_, 0, "cannot be opened");
  }

  /// Exactly `count` numbers; Error (input) with the line of what is wrong.
  [[nodiscard]] std::vector<double> read(std::uint64_t count, int mode) {
    std::vector<double> numbers;
    std::string word;
    while (next(word)) {
      if (numbers.size() == count)
        throw file_error(path_, line_,
                         fmt::format("found '{}' after {} numbers, expected no more: mode {} has length {}",
                                     shown(word), count, mode, count));
      numbers.push_back(number(word));
    }
    if (numbers.size() < count)
      throw file_error(
          path_, 0, fmt::format("found {} numbers, expected {}, the length of mode {}", numbers.size(), count, mode));
    return numbers;
  }

 private:
  /// The next word; false at the end.
  bool next(std::string& word) {
    constexpr std::size_t longest = 1000;  // no number is longer; a file without blanks must not fill the memory
    word.clear();
    std::streambuf& in = *file_.rdbuf();
    line_ += newlines_;
    newlines_ = 0;
    for (int c = in.sbumpc(); c != std::char_traits<char>::eof(); c = in.sbumpc()) {
      const bool blank = c == ' ' || c == '\t' || c == '\r' || c == '\n';
      if (blank && !word.empty()) {
        newlines_ = c == '\n' ? 1 : 0;  // counts once the word was dealt with
        return true;
      }
      if (c == '\n') ++line_;
      if (!blank) word += static_cast<char>(c);
      if (word.size() > longest) return true;
    }
    return !word.empty();
  }

  [[nodiscard]] double number(std::string_view word) const {
    const char* begin = word.data() + (word.size() > 1 && word[0] == '+' && word[1] != '-' ? 1 : 0);
    const char* end = word.data() + word.size();
    double value = 0;
    const auto [rest, code] = std::from_chars(begin, end, value);
    if (code != std::errc() || rest != end || !std::isfinite(value))
      throw file_error(path_, line_, fmt::format("found '{}', expected a number", shown(word)));
    return value;
  }

  std::string path_;
  std::ifstream file_;
  std::uint64_t line_ = 1;
  std::uint64_t newlines_ = 0;
};

/// The labels of a result: those of the modes that are left.
std::vector<ModeLabels> labels_without(std::vector<ModeLabels> labels, int mode) {
  if (!labels.empty()) labels.erase(labels.begin() + mode);
  return labels;
}

void print_first(const CooTensor& y, Session& session) {
  const std::uint64_t some = std::min(y.nnz(), most_printed);
  for (std::uint64_t k = 0; k < some; ++k) {
    std::string line;
    for (int m = 0; m < y.order(); ++m) line += fmt::format("{} ", y.index(m, k) + 1);
    session.print("{}{}\n", line, y.value(k));
  }
  if (y.nnz() > some) session.print("... and {} more (--out writes them)\n", readable_count(y.nnz() - some));
}

void run(const TtvOptions& o, Session& session) {
  if (o.output == "-") session.keep_output_free();
  if (o.output == "-" && session.options().json == "-")
    throw usage_error("the tensor and the JSON cannot both go to standard output");
  keep_inputs("--out", o.output, o.input, session, {o.vector});
  const std::string_view automatic = session.context().devices.empty() ? automatic_format : automatic_on_devices;
  std::string format(o.format == "auto" ? automatic : format_named(o.format).name);
  NumberFile file(o.vector);  // before the work: it may not be there
  ReadResult read = load(o.input, session);
  for (const std::string& note : read.report.notes) session.note(note);
  check_order(read.tensor, o.input);
  if (o.mode > read.tensor.order())
    throw usage_error(fmt::format("--mode {}: the tensor has {} modes", o.mode, read.tensor.order()));
  const int mode = o.mode - 1;
  const std::vector<double> vector = file.read(read.tensor.dims[static_cast<std::size_t>(mode)], o.mode);
  FormatOptions options;
  options.mode = mode;
  std::vector<ModeLabels> labels = labels_without(std::move(read.tensor.labels), mode);
  const std::optional<Choice> stream = stream_option(o.format, read.tensor, 1, session);
  if (stream) format = stream->format;
  const Tensor x = session.timed("build", [&] {
    return stream ? stream_of(std::move(read.tensor), session.context())
                  : build(read.tensor, format, options, session.context());
  });
  read.tensor = {};  // its memory is needed
  KernelChoice choice;
  CooTensor y = session.timed("compute", [&] { return ttv(x, mode, vector, session.context(), {}, &choice); });
  for (std::uint64_t k = 0; k < y.nnz(); ++k)
    if (!std::isfinite(y.value(k)))
      throw file_error(o.input.file, 0,
                       fmt::format("the product has a sum larger than {} can hold", name_of(y.precision())));
  y.labels = std::move(labels);
  std::vector<std::string> written;
  if (!o.output.empty()) written = session.timed("write", [&] { return write(y, o.output, {}, session.context()); });
  session.print("{} times {} along mode {} ({}, {}): order {}, {}, {} nonzeros{}{}\n", o.input.file, o.vector, o.mode,
                format, choice.name, y.order(), readable_dims(y.dims), readable_count(y.nnz()),
                written.empty() ? "" : " -> ", fmt::join(written, ", "));
  if (o.output.empty()) print_first(y, session);
  session.json() = {{"order", y.order()}, {"dims", y.dims},        {"nnz", y.nnz()},    {"mode", o.mode},
                    {"format", format},   {"kernel", choice.name}, {"why", choice.why}, {"format_bytes", x.bytes()},
                    {"files", written}};
}

std::function<void(Session&)> declare_ttv(CLI::App& command) {
  auto o = std::make_shared<TtvOptions>();
  declare_input(command, o->input);
  command.add_option("--mode", o->mode, "mode to multiply along, from 1")->required()->check(CLI::Range(1, max_order));
  command.add_option("--vector", o->vector, "text file with as many numbers as the mode is long")->required();
  command.add_option("--out", o->output, "file to write the result to (- for standard output); default: print a few");
  command.add_option("--format", o->format, "storage format to do it with ('polyad list formats'), or auto")
      ->capture_default_str();
  return [o](Session& session) { run(*o, session); };
}

}  // namespace

const Verb ttv_verb = {"ttv", "a tensor times a vector along one mode",
                       "polyad ttv ratings.tns.gz --mode 3 --vector days.txt --out sums.tns", declare_ttv,
                       DeviceUse::runs};

}  // namespace polyad::cli
