// SPDX-License-Identifier: MIT
#include "session.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "signals.hpp"
#include "svg.hpp"

namespace polyad::cli {

using Clock = std::chrono::steady_clock;

namespace {

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

std::uint64_t peak_rss_bytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

/// Where measurements of this machine are kept: $POLYAD_CACHE (empty: nowhere), else the user's folder for caches.
std::string cache_folder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? std::string() : std::string(value);
  };
  if (std::getenv("POLYAD_CACHE") != nullptr) return variable("POLYAD_CACHE");
  if (const std::string folder = variable("XDG_CACHE_HOME"); !folder.empty()) return folder + "/polyad";
  if (const std::string home = variable("HOME"); !home.empty()) return home + "/.cache/polyad";
  return {};
}

/// Memory of the machine, or of the container if that is less; 0 when unknown.
std::uint64_t machine_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  std::uint64_t bytes =
      pages > 0 ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) : 0;
  std::ifstream file("/sys/fs/cgroup/memory.max");
  if (std::uint64_t limit = 0; file >> limit) bytes = bytes == 0 ? limit : std::min(bytes, limit);
  return bytes;
}

std::string rate_of(double per_second, std::string_view unit) {
  if (unit == "bytes") return readable_bytes(static_cast<std::uint64_t>(per_second)) + "/s";
  if (per_second < 1e5) return fmt::format("{:.3g} {}/s", per_second, unit);
  return fmt::format("{:.1f} M {}/s", per_second / 1e6, unit);
}

}  // namespace

void say(std::string_view text) {
  // Standard error may be full or closed: there is nobody left to tell.
  if (std::fwrite(text.data(), 1, text.size(), stderr) == text.size()) std::fflush(stderr);
}

/// A bar with rate and time left on a terminal; elsewhere a plain line every few seconds. Quick work shows nothing.
class Session::ProgressLine {
 public:
  ProgressLine() : terminal_(isatty(STDERR_FILENO) == 1) {}
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const Progress& p) {
    if (phase_ != p.phase) {
      phase_ = p.phase;
      begin_ = Clock::now();
      last_ = begin_;
    }
    const double elapsed = seconds_since(begin_);
    if (elapsed < 0.5 || seconds_since(last_) < (terminal_ ? 0.1 : 5.0)) return;
    last_ = Clock::now();
    const double rate = static_cast<double>(p.done) / elapsed;
    std::string line;
    if (p.total > 0) {
      const double share = std::min(1.0, static_cast<double>(p.done) / static_cast<double>(p.total));
      const double left = rate > 0 ? static_cast<double>(p.total - std::min(p.done, p.total)) / rate : 0;
      constexpr int width = 24;
      const int full = static_cast<int>(share * width);
      if (terminal_) line = fmt::format("{} [{:=<{}}{: <{}}] ", p.phase, "", full, "", width - full);
      line += fmt::format("{}{:3.0f} %, {}, {:.0f} s left", terminal_ ? "" : fmt::format("{} ", p.phase), share * 100,
                          rate_of(rate, p.unit), left);
    } else {
      line = fmt::format("{}: {}", p.phase, rate_of(rate, p.unit));
    }
    if (terminal_) {
      say(fmt::format("\r\033[K{}", line));
    } else {
      say(fmt::format("polyad: {}\n", line));
    }
    shown_ = terminal_;
  }

  void clear() {
    if (shown_) say("\r\033[K");
    shown_ = false;
  }

 private:
  bool terminal_;
  bool shown_ = false;
  std::string phase_;
  Clock::time_point begin_;
  Clock::time_point last_;
};

namespace {

/// A size such as 4G; else a sentence.
CLI::Validator a_size() {
  return {[](const std::string& text) {
            return parse_size(text) ? std::string()
                                    : fmt::format("found '{}', expected a size such as 20000, 1M or 4G", text);
          },
          "SIZE"};
}

}  // namespace

CLI::Validator a_whole_number() {
  return {[](const std::string& text) {
            std::uint64_t number = 0;
            const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
            return problem == std::errc() && end == text.data() + text.size()
                       ? std::string()
                       : fmt::format("found '{}', expected a whole number from 0 to 2^64 - 1", text);
          },
          ""};
}

void declare_common(CLI::App& command, CommonOptions& o, DeviceUse devices) {
  const std::string group = "Common options";
  command.add_option("--threads", o.threads, "threads (default: OMP_NUM_THREADS, else all cores)")
      ->check(CLI::Range(1, 4096))
      ->group(group);
  command.add_option("--precision", o.precision, "type of the values, f64 or f32")
      ->check(CLI::IsMember({"f64", "f32"}))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--memory", o.memory,
                  "most memory for tensors, e.g. 4G (0: no limit; default: 90 % of the machine's)")
      ->check(a_size())
      ->group(group);
  command.add_option("--seed", o.seed, "seed of every random choice")
      ->check(a_whole_number())
      ->capture_default_str()
      ->group(group);
  command.add_flag("--deterministic", o.deterministic, "the same bytes for any number of threads")->group(group);
  if (devices == DeviceUse::none) {
    command.add_option("--device", o.device, "cpu: this runs on the processor")
        ->check(CLI::Validator(
            [](const std::string& name) {
              return name == "cpu" ? std::string()
                                   : fmt::format("found '{}', expected cpu: this runs on the processor", name);
            },
            ""))
        ->group(group);
  } else {
    command
        .add_option("--device", o.device,
                    "cpu, gpu (the best there is) or names from 'polyad list devices' by commas, which share the work")
        ->capture_default_str()
        ->group(group);
    command
        .add_option("--device-memory", o.device_memory,
                    "most memory to use on each device, e.g. 4G (default: what it has)")
        ->check(a_size())
        ->group(group);
  }
  if (devices == DeviceUse::runs)
    command.add_option("--timeline", o.timeline, "draw what ran on the devices and when to this file (SVG)")
        ->group(group);
  command.add_option("--json", o.json, "write the result as JSON to this file (- for standard output)")->group(group);
  command.add_flag("--quiet", o.quiet, "print nothing but errors")->group(group);
  command.add_flag("--verbose", o.verbose, "say on standard error what was read and how long each step took")
      ->group(group);
}

Session::Session(const CommonOptions& options) : options_(options) {
  context_.threads = options.threads;
  context_.seed = options.seed;
  context_.deterministic = options.deterministic;
  context_.cache = cache_folder();
  // Without a limit of the user's the machine's own: a sentence is better than the kernel's out-of-memory killer.
  context_.memory = std::make_shared<MemoryBudget>(options.memory.empty() ? machine_memory() / 10 * 9
                                                                          : size_option("--memory", options.memory));
  open_devices_of(options);
  context_.cancelled = [] { return caught_signal() != 0; };
  if (!options.quiet) {
    progress_ = std::make_shared<ProgressLine>();
    context_.observer = [line = progress_](const Progress& p) { line->show(p); };
  }
}

void Session::open_devices_of(const CommonOptions& options) {
  DeviceOptions how;
  how.cache = context_.cache;
  if (!options.device_memory.empty()) how.memory = size_option("--device-memory", options.device_memory);
  if (how.memory != 0 && options.device == "cpu")
    throw usage_error("--device-memory: the processor's memory is limited by --memory; this is for --device gpu");
  try {
    context_.devices = open_devices(options.device, how);
    for (const DeviceEntry& d : devices_of(context_.devices)) {
      device_names_.push_back(d.name);
      if (!d.is_gpu && !options.quiet)
        note(fmt::format("{} ({}) is no GPU: device kernels run on the processor there, for trying them", d.name,
                         d.description));
    }
  } catch (const Error& e) {
    throw Error(e.kind(), fmt::format("--device {}: {}", options.device, e.what()));
  }
  if (options.timeline.empty()) return;
  if (context_.devices.empty()) throw usage_error("--timeline: it shows what ran on devices; this needs --device gpu");
  timeline_ = std::make_unique<Timeline>();
  context_.devices = timeline_->watch(context_.devices);
}

void Session::write_timeline() {
  if (!timeline_) return;
  TimelineChart chart;
  chart.spans = timeline_->spans();
  const std::vector<std::string> conflicts = timeline_->conflicts();
  chart.title = fmt::format("What ran on {}", options_.device);
  chart.subtitle =
      fmt::format("{} commands{}", readable_count(chart.spans.size()),
                  conflicts.empty() ? "" : fmt::format("; {} used memory that was in use", conflicts.size()));
  write_text(svg_of(chart), options_.timeline);
  json_["timeline"] = {{"file", options_.timeline}, {"commands", chart.spans.size()}, {"conflicts", conflicts}};
}

Session::~Session() = default;

Precision Session::precision() const noexcept { return options_.precision == "f32" ? Precision::f32 : Precision::f64; }

Session::Stopwatch::~Stopwatch() {
  session_.seconds_[name_] = seconds_since(begin_);
  if (session_.progress_) session_.progress_->clear();
  if (session_.options_.verbose) say(fmt::format("polyad: {} took {:.3f} s\n", name_, seconds_since(begin_)));
}

void Session::print_text(const std::string& text) {
  if (output_is_data_) {
    say(text);
  } else if (!reader_left_ && std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) {
    on_failed_output();
  }
}

void Session::on_failed_output() {
  if (errno != EPIPE) throw Error(ErrorKind::limit, "standard output: cannot be written");
  reader_left_ = true;
}

void Session::note(std::string_view sentence) {
  if (progress_) progress_->clear();
  if (!options_.quiet) say(fmt::format("polyad: note: {}\n", sentence));
}

void Session::progress_text(std::string_view text) {
  if (progress_) progress_->clear();
  if (!options_.quiet) say(text);
}

void Session::flush() {
  if (!reader_left_ && std::fflush(stdout) != 0) on_failed_output();
}

std::uint64_t Session::peak_rss() const { return peak_rss_bytes(); }

void Session::finish() {
  if (progress_) progress_->clear();
  write_timeline();
  flush();
  if (options_.json.empty()) return;
  if (!seconds_.contains("load")) seconds_["load"] = 0.0;
  seconds_["total"] = seconds_since(begin_);
  json_["seconds"] = seconds_;
  json_["peak_rss_bytes"] = peak_rss_bytes();
  json_["threads"] = context_.thread_count();
  if (!context_.devices.empty()) json_["devices"] = device_names_;
  json_["seed"] = options_.seed;
  json_["version"] = version;
  write_text(json_.dump(2, ' ', false, Json::error_handler_t::replace) + "\n", options_.json);
}

void declare_input(CLI::App& command, InputOptions& o, const std::string& dialect_flag) {
  const std::string group = "Reading";
  command.add_option("FILE", o.file, "tensor to read (- for standard input)")->required();
  command
      .add_option(dialect_flag, o.dialect, "dialect of the file ('polyad list dialects'; default: by looking at it)")
      ->group(group);
  command.add_option("--index-base", o.index_base, "0 or 1: what the first index is called in the file")
      ->check(CLI::Range(0, 1))
      ->group(group);
  command.add_option("--dims", o.dims, "dims such as 100x200x300, for files that carry none")->group(group);
  command.add_option("--columns", o.columns, "CSV: columns that become modes, e.g. user,item,day")->group(group);
  command.add_option("--value", o.value, "CSV: column of values (default: every row counts 1)")->group(group);
  command.add_option("--labels", o.labels, "label files, one per mode (default: mode-K-NAME.map beside the tensor)")
      ->group(group);
}

ReadOptions read_options(const InputOptions& o, const Session& session) {
  ReadOptions r;
  r.dialect = o.dialect;
  if (o.index_base >= 0) r.index_base = o.index_base;
  if (!o.dims.empty()) r.dims = dims_option("--dims", o.dims);
  r.columns = split(o.columns);
  r.value_column = o.value;
  for (const std::string& l : o.labels)
    for (std::string& one : split(l)) r.label_files.push_back(std::move(one));
  r.precision = session.precision();
  return r;
}

ReadResult load(const InputOptions& o, Session& session) {
  ReadOptions options = read_options(o, session);
  std::error_code ignored;
  if (session.options().json != "-" && std::filesystem::equivalent(o.file, session.options().json, ignored))
    throw usage_error("--json would overwrite the tensor that is read");
  // A plain .ptn file is opened, then verified as a step of its own; a stream can be read only once.
  const bool twice = o.file.ends_with(".ptn") && std::filesystem::is_regular_file(o.file, ignored);
  options.verify = !twice;
  ReadResult result = session.timed("load", [&] { return read_with_report(o.file, options, session.context()); });
  if (twice && result.report.dialect == "ptn") session.timed("verify", [&] { verify_file(o.file, session.context()); });
  if (session.options().verbose)
    say(fmt::format("polyad: {} is {}{}{}, read by {} threads\n", o.file, result.report.dialect,
                    result.report.compression.empty() ? "" : ", ", result.report.compression,
                    session.context().thread_count()));
  return result;
}

std::uint64_t size_option(std::string_view flag, const std::string& text) {
  const auto size = parse_size(text);
  if (!size) throw usage_error(fmt::format("{}: found '{}', expected a size such as 20000, 1M or 4G", flag, text));
  return *size;
}

std::vector<std::uint64_t> dims_option(std::string_view flag, const std::string& text) {
  auto dims = parse_dims(text);
  if (!dims) throw usage_error(fmt::format("{}: found '{}', expected dims such as 100x200x300", flag, text));
  return *dims;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::string readable_dims(const std::vector<std::uint64_t>& dims) {
  std::string text;
  for (const std::uint64_t d : dims) text += (text.empty() ? "" : " x ") + readable_count(d);
  return text;
}

}  // namespace polyad::cli
