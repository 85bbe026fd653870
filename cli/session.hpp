// SPDX-License-Identifier: MIT
/// \file One call of the tool: the options that every verb has, the context made of them, time, progress, JSON.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <polyad/polyad.hpp>
#include <string>
#include <string_view>

#include "verb.hpp"

namespace polyad::cli {

using Json = nlohmann::ordered_json;

/// What every verb takes.
struct CommonOptions {
  int threads = 0;
  std::string precision = "f64";
  std::string json;
  bool quiet = false;
  bool verbose = false;
  std::string memory;
  std::uint64_t seed = 1;
  bool deterministic = false;
  std::string device = "cpu";
  std::string device_memory;
  std::string timeline;
};

/// Writes to standard error, whatever state it is in.
void say(std::string_view text);

/// For options that count something, and seeds: 0 to 2^64 - 1.
[[nodiscard]] CLI::Validator a_whole_number();

/// Adds the common options to a sub-command.
void declare_common(CLI::App& command, CommonOptions& options, DeviceUse devices);

/// One call of the tool.
class Session {
 public:
  explicit Session(const CommonOptions& options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  [[nodiscard]] const Context& context() const noexcept { return context_; }
  [[nodiscard]] const CommonOptions& options() const noexcept { return options_; }
  [[nodiscard]] Precision precision() const noexcept;
  /// What --json will print; verbs add their fields.
  [[nodiscard]] Json& json() noexcept { return json_; }

  /// Runs f and records its seconds under `name` in the JSON's "seconds".
  template <class F>
  decltype(auto) timed(const char* name, F&& f) {
    const Stopwatch watch(*this, name);
    return std::forward<F>(f)();
  }

  /// Prints for people, on standard output; nothing with --quiet or when the JSON goes there.
  template <class... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) {
    if (prints_for_people()) print_text(fmt::format(format, std::forward<Args>(args)...));
  }
  [[nodiscard]] bool prints_for_people() const noexcept { return !options_.quiet && options_.json != "-"; }
  /// Standard output carries data, so that nothing else may go there.
  void keep_output_free() noexcept { output_is_data_ = true; }
  /// A sentence on standard error that is no error; nothing with --quiet.
  void note(std::string_view sentence);

  /// Text on standard error above the progress bar; nothing with --quiet.
  void progress_text(std::string_view text);
  /// Hands what was printed to the system, so that it stands before what comes on standard error.
  void flush();
  /// Who read standard output has closed it. What is printed for people is lost then, the work goes on.
  [[nodiscard]] bool reader_left() const noexcept { return reader_left_; }
  /// The most memory this process had.
  [[nodiscard]] std::uint64_t peak_rss() const;

  /// Writes the JSON if asked for. Called once after the verb.
  void finish();

 private:
  /// Puts the devices that were asked for into the context.
  void open_devices_of(const CommonOptions& options);
  std::vector<std::string> device_names_;
  /// Draws what ran on them.
  void write_timeline();

  class Stopwatch {
   public:
    Stopwatch(Session& session, const char* name) : session_(session), name_(name) {}
    ~Stopwatch();
    Stopwatch(const Stopwatch&) = delete;
    Stopwatch& operator=(const Stopwatch&) = delete;

   private:
    Session& session_;
    const char* name_;
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  };
  class ProgressLine;

  void print_text(const std::string& text);
  /// After a failed write to standard output: Error, or reader_left().
  void on_failed_output();

  CommonOptions options_;
  Context context_;
  Json json_;
  Json seconds_;
  bool output_is_data_ = false;
  bool reader_left_ = false;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::unique_ptr<Timeline> timeline_;  // of the devices, if asked for
  std::shared_ptr<ProgressLine> progress_;
};

/// The options of reading, shared by all verbs that take a tensor.
struct InputOptions {
  std::string file;
  std::string dialect;
  int index_base = -1;
  std::string dims;
  std::string columns;
  std::string value;
  std::vector<std::string> labels;
};

/// Adds FILE and the options of reading to a sub-command. `from` names the dialect option ("--dialect", "--from").
void declare_input(CLI::App& command, InputOptions& options, const std::string& dialect_flag = "--dialect");

/// The library's form of them; Error (usage) when they make no sense.
[[nodiscard]] ReadOptions read_options(const InputOptions& options, const Session& session);

/// Reads the tensor, timed as "load"; a `.ptn` is opened, then verified, timed as "verify".
[[nodiscard]] ReadResult load(const InputOptions& options, Session& session);

/// A size option such as "1M"; Error (usage) that names the flag.
[[nodiscard]] std::uint64_t size_option(std::string_view flag, const std::string& text);

/// A dims option such as "100x200x300"; Error (usage) that names the flag.
[[nodiscard]] std::vector<std::uint64_t> dims_option(std::string_view flag, const std::string& text);

/// "a,b,c" cut at commas.
[[nodiscard]] std::vector<std::string> split(const std::string& text);

/// "183 x 24 x 1,140".
[[nodiscard]] std::string readable_dims(const std::vector<std::uint64_t>& dims);

}  // namespace polyad::cli
