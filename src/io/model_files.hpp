// SPDX-License-Identifier: MIT
/// \file The pieces of reading and writing models that several files share.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "polyad/context.hpp"
#include "polyad/cp_model.hpp"

namespace polyad::io {

/// Counts what a model takes while it is being read. A Matrix is an ordinary vector that no budget knows, but a file
/// that does not fit the limit is refused with a sentence.
class ModelMemory {
 public:
  explicit ModelMemory(const Context& context) : budget_(context.memory) {}
  ~ModelMemory();
  ModelMemory(const ModelMemory&) = delete;
  ModelMemory& operator=(const ModelMemory&) = delete;

  /// `numbers` more were read; Error (limit) when they do not fit.
  void add(std::uint64_t numbers);

 private:
  std::shared_ptr<MemoryBudget> budget_;
  std::uint64_t taken_ = 0;
};

/// A model is one NumPy archive when its path ends so.
[[nodiscard]] bool is_npz(std::string_view path);
/// Arrays `lambda`, `mode1`, ... of an archive.
[[nodiscard]] CpModel read_npz_model(const std::string& path, const Context& context);
/// Writes them, f64, stored.
void write_npz_model(const CpModel& model, const std::string& path, const Context& context);

}  // namespace polyad::io
