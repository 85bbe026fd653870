// SPDX-License-Identifier: MIT
#include <array>
#include <limits>

#include "polyad/cp_als.hpp"

namespace polyad {

namespace {

constexpr double unlimited = std::numeric_limits<double>::infinity();
using O = CpAlsOptions;

constexpr auto all_options = std::to_array<CpAlsOption>({
    {"rank", &O::rank, 1, 1U << 16U, "number of components"},
    {"iters", &O::iterations, 0, 1e9, "most iterations"},
    {"tol", &O::tolerance, 0, unlimited, "end when the fit changes by less (0: never)"},
    {"max-seconds", &O::max_seconds, 0, unlimited, "end when the time is over (0: no limit)"},
    {"restarts", &O::restarts, 1, 1e6, "random starts, of which the best is kept"},
    {"l2", &O::l2, 0, unlimited, "ridge: l2/2 times the squared norm of every factor is added to the objective"},
    {"nonnegative", &O::nonnegative, 0, 0, "modes whose factors must not be negative, e.g. 1,3 (alone: all)"},
    {"fix-mode", &O::fixed, 0, 0, "modes whose factors stay those of --init, e.g. 2,3"},
    {"format", &O::format, 0, 0, "storage format ('polyad list formats') or auto"},
    {"dense", &O::dense, 0, 0,
     "with --device: where rows are solved: host, device or auto (what is measured to be faster)"},
    {"checkpoint", &O::checkpoint, 0, 0, "file for the state; the one before stays as FILE.previous"},
    {"every", &O::every, 1, 1e9, "iterations between two checkpoints"},
    {"resume", &O::resume, 0, 0, "continue from --checkpoint if it is there"},
});

}  // namespace

std::span<const CpAlsOption> cp_als_options() { return all_options; }

std::string_view name_of(CpStop stop) {
  switch (stop) {
    case CpStop::converged:
      return "converged";
    case CpStop::iterations:
      return "iterations";
    case CpStop::seconds:
      return "seconds";
    case CpStop::cancelled:
      break;
  }
  return "cancelled";
}

}  // namespace polyad
