// SPDX-License-Identifier: MIT
#include "solvers/driver.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>

#include "io/file_lock.hpp"
#include "io/output_file.hpp"
#include "polyad/error.hpp"

namespace polyad {

namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

Json describe(const std::vector<CpIteration>& history) {
  Json all = Json::array();
  for (const CpIteration& i : history) all.push_back({i.fit, i.change, i.seconds, i.objective});
  return all;
}

std::vector<CpIteration> history_of(const Json& all) {
  std::vector<CpIteration> history;
  // JSON has no infinity: an objective beyond all numbers is null.
  const auto objective = [](const Json& o) {
    return o.is_null() ? std::numeric_limits<double>::infinity() : o.get<double>();
  };
  for (const Json& i : all)
    history.push_back(
        {history.size() + 1, i.at(0).get<double>(), i.at(1).get<double>(), i.at(2).get<double>(), objective(i.at(3))});
  return history;
}

/// The loop with its state.
class Loop {
 public:
  Loop(Solver& solver, const DriverOptions& options, const Context& context)
      : solver_(solver), options_(options), context_(context) {}

  DriverResult run() {
    std::optional<io::FileLock> lock;
    if (!options_.checkpoint.empty()) lock.emplace(options_.checkpoint);
    bool resumed = options_.resume && resume();
    std::error_code ignored;
    if (!options_.resume && !options_.checkpoint.empty() && std::filesystem::exists(options_.checkpoint, ignored))
      result_.notes.push_back(fmt::format("{}: an older checkpoint was replaced; resume would have continued from it",
                                          options_.checkpoint));
    for (; restart_ < options_.restarts; ++restart_) {
      if (!resumed) {
        history_.clear();
        solver_.start(restart_);
      }
      resumed = false;
      const CpStop stop = one_run();
      runs_.push_back({restart_, solver_.fit(), history_.size(), stop});
      if (!best_ || solver_.loss() < best_->loss) {
        best_ = Best{runs_.size() - 1, solver_.loss(), history_};
        solver_.keep_as_best();
      }
      if (must_end()) break;
    }
    solver_.take_best();
    result_.history = std::move(best_->history);
    result_.stop = is_cancelled() ? CpStop::cancelled : runs_[best_->run].stop;
    result_.runs = std::move(runs_);
    result_.seconds = seconds_since(begin_);
    return std::move(result_);
  }

 private:
  struct Best {
    std::size_t run = 0;  // in runs_
    double loss = 0;
    std::vector<CpIteration> history;
  };

  [[nodiscard]] bool is_cancelled() const { return context_.cancelled && context_.cancelled(); }
  [[nodiscard]] bool time_is_over() const {
    return options_.max_seconds > 0 && seconds_since(begin_) >= options_.max_seconds;
  }
  [[nodiscard]] bool must_end() const { return is_cancelled() || time_is_over(); }

  /// Why the run is at its end; nothing when it is not.
  [[nodiscard]] std::optional<CpStop> reason() const {
    if (history_.size() > 1 && std::abs(history_.back().change) < options_.tolerance) return CpStop::converged;
    if (history_.size() >= options_.iterations) return CpStop::iterations;
    if (is_cancelled()) return CpStop::cancelled;
    if (time_is_over()) return CpStop::seconds;
    return std::nullopt;
  }

  CpStop one_run() {
    // The first one before the first iteration: a place that cannot be written is known at once, not hours later.
    if (!options_.checkpoint.empty() && restart_ == 0 && history_.empty()) save();
    std::uint64_t saved_at = history_.size();
    std::optional<CpStop> why;
    bool whole = true;
    while (!(why = reason())) {
      whole = solver_.step([this] { return must_end(); });
      if (!whole) continue;  // reason() says which
      const double before = history_.empty() ? 0 : history_.back().fit;
      const double fit = solver_.fit();
      history_.push_back(
          {history_.size() + 1, fit, fit - before, seconds_before_ + seconds_since(begin_), solver_.objective()});
      if (options_.observer) options_.observer(history_.back(), restart_);
      if (!options_.checkpoint.empty() && history_.size() - saved_at >= options_.every) {
        save();
        saved_at = history_.size();
      }
    }
    if (!options_.checkpoint.empty() && (saved_at != history_.size() || !whole)) save();
    return *why;
  }

  void save() const {
    Json head = {{"identity", options_.identity},
                 {"restart", restart_},
                 {"seconds", seconds_before_ + seconds_since(begin_)},
                 {"history", describe(history_)},
                 {"runs", Json::array()}};
    for (const CpRun& r : runs_) head["runs"].push_back({r.restart, r.fit, r.iterations, static_cast<int>(r.stop)});
    if (best_) head["best"] = {{"run", best_->run}, {"loss", best_->loss}, {"history", describe(best_->history)}};
    std::vector<io::StateArray> arrays;
    solver_.save(head["solver"], arrays);
    Context uncancelled = context_;  // what was asked to be kept is kept
    uncancelled.cancelled = {};
    io::write_state(options_.checkpoint, std::move(head), arrays, uncancelled);
  }

  /// Takes the state of the checkpoint, or of the one before when it is damaged. False when there is none yet.
  bool resume() {
    const std::string previous = io::behind_links(options_.checkpoint) + ".previous";
    std::string trouble;
    for (const std::string& path : {options_.checkpoint, previous}) {
      std::error_code ignored;
      if (!std::filesystem::exists(path, ignored)) continue;
      std::optional<io::StateFile> file;
      try {
        file.emplace(path);
      } catch (const Error& e) {
        if (trouble.empty()) trouble = e.what();
        continue;
      }
      take(*file);
      if (!trouble.empty())
        result_.notes.push_back(fmt::format("{}; continued from the one before, {}", trouble, path));
      return true;
    }
    if (!trouble.empty()) throw Error(ErrorKind::input, trouble);
    result_.notes.push_back(
        fmt::format("{}: there is no checkpoint yet, starting at the beginning", options_.checkpoint));
    return false;
  }

  void take(const io::StateFile& file) {
    const Json& head = file.head();
    try {
      check_identity(head.at("identity"), file.path());
      restart_ = head.at("restart").get<std::uint64_t>();
      seconds_before_ = head.at("seconds").get<double>();
      history_ = history_of(head.at("history"));
      for (const Json& r : head.at("runs"))
        runs_.push_back({r.at(0).get<std::uint64_t>(), r.at(1).get<double>(), r.at(2).get<std::uint64_t>(),
                         static_cast<CpStop>(r.at(3).get<int>())});
      if (head.contains("best"))
        best_ = Best{head["best"].at("run").get<std::size_t>(), head["best"].at("loss").get<double>(),
                     history_of(head["best"].at("history"))};
      if (best_ && best_->run >= runs_.size()) throw file_error(file.path(), 0, "it names a run that it does not have");
      solver_.load(file);
    } catch (const Json::exception&) {
      throw file_error(file.path(), 0, "found a head of another kind, expected one that this version wrote");
    }
    result_.resumed_at = history_.size();
  }

  void check_identity(const Json& found, const std::string& path) const {
    for (const auto& [what, expected] : options_.identity.items())
      if (!found.contains(what) || found.at(what) != expected)
        throw file_error(path, 0,
                         fmt::format("found a checkpoint of {} {}, expected {}: it belongs to another run", what,
                                     found.contains(what) ? found.at(what).dump() : "nothing", expected.dump()));
  }

  Solver& solver_;
  const DriverOptions& options_;
  const Context& context_;
  Clock::time_point begin_ = Clock::now();
  double seconds_before_ = 0;  // of the runs that a checkpoint continues
  std::uint64_t restart_ = 0;
  std::vector<CpIteration> history_;
  std::vector<CpRun> runs_;
  std::optional<Best> best_;
  DriverResult result_;
};

}  // namespace

DriverResult drive(Solver& solver, const DriverOptions& options, const Context& context) {
  return Loop(solver, options, context).run();
}

}  // namespace polyad
