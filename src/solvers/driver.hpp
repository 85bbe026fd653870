// SPDX-License-Identifier: MIT
/// \file The loop around every iterative solver: starts, stopping, observers, checkpoints, time. A solver gives it one
/// iteration at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/state_file.hpp"
#include "polyad/context.hpp"
#include "polyad/cp_als.hpp"

namespace polyad {

/// What the loop needs of a solver. Between any two calls the solver's state is a whole model.
class Solver {
 public:
  Solver() = default;
  Solver(const Solver&) = delete;
  Solver& operator=(const Solver&) = delete;
  virtual ~Solver() = default;

  /// Forgets the present state and takes start number `restart`.
  virtual void start(std::uint64_t restart) = 0;
  /// One iteration, or the rest of one. Asks `stop` after each part; false: it stopped before the iteration was whole.
  virtual bool step(const std::function<bool()>& stop) = 0;
  /// Of the present state. Not const: before the first iteration it has to be computed.
  [[nodiscard]] virtual double fit() = 0;
  [[nodiscard]] virtual double objective() = 0;
  /// What is compared between starts: the objective in units in which it neither overflows nor vanishes.
  [[nodiscard]] virtual double loss() = 0;

  /// Sets the present state aside as the best one (the state is then empty until start() or take_best()).
  virtual void keep_as_best() = 0;
  virtual void take_best() = 0;

  /// Everything that step() depends on, as numbers and arrays. Not const: some may have to be fetched from a device.
  virtual void save(nlohmann::ordered_json& head, std::vector<io::StateArray>& arrays) = 0;
  virtual void load(const io::StateFile& file) = 0;
};

/// What the loop may be told.
struct DriverOptions {
  std::uint64_t iterations = 50;
  double tolerance = 1e-5;
  double max_seconds = 0;
  std::uint64_t restarts = 1;
  std::string checkpoint;
  std::uint64_t every = 10;
  bool resume = false;
  /// What a checkpoint must have been made with: field by field.
  nlohmann::ordered_json identity;
  std::function<void(const CpIteration&, std::uint64_t restart)> observer;
};

/// What the loop found. The solver is left in the best state.
struct DriverResult {
  std::vector<CpIteration> history;
  std::vector<CpRun> runs;
  CpStop stop = CpStop::iterations;
  std::uint64_t resumed_at = 0;
  std::vector<std::string> notes;
  double seconds = 0;  // of this call
};

/// Runs the solver to its end.
[[nodiscard]] DriverResult drive(Solver& solver, const DriverOptions& options, const Context& context);

}  // namespace polyad
