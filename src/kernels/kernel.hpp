// SPDX-License-Identifier: MIT
/// \file Kernel = request + ask + run. `ask` says whether a kernel can do a request, at what cost, or why not; `run`
/// may assume it can. Each operation has a generic kernel that always can, so every format does everything.
#pragma once

#include <fmt/format.h>

#include <span>
#include <string>
#include <string_view>

#include "polyad/error.hpp"
#include "polyad/kernels.hpp"
#include "polyad/registry.hpp"

namespace polyad {

/// What a kernel says to a request.
struct Answer {
  bool can = false;
  double cost = 0;     ///< estimated nanoseconds of one thread, for comparing kernels with each other
  std::string reason;  ///< why it is good here, or why it cannot
};

[[nodiscard]] inline Answer can(double cost, std::string reason) { return {true, cost, std::move(reason)}; }
[[nodiscard]] inline Answer cannot(std::string reason) { return {false, 0, std::move(reason)}; }

/// A kernel and what it answered.
template <class Kernel>
struct Chosen {
  const Kernel* kernel = nullptr;
  std::string why;
};

/// The cheapest kernel that can, or the one of the given name (Error when it cannot or there is none). With a
/// deterministic context only kernels that promise the same bits are asked, on tensors whose order promises them too;
/// with devices only those that run on them.
template <class Kernel, class Question>
[[nodiscard]] Chosen<Kernel> choose(std::span<const Kernel* const> kernels, const Question& question,
                                    std::string_view forced, bool deterministic) {
  if (deterministic && !question.tensor.reproducible())
    throw usage_error(fmt::format(
        "this {} tensor was built without Context::deterministic: its order depends on the number of threads",
        question.tensor.format().name));
  Chosen<Kernel> best;
  double cost = 0;
  bool known = false;
  for (const Kernel* k : kernels) {
    if (!forced.empty() && k->entry.name != forced) continue;
    known = true;
    Answer answer = (k->entry.backend == "gpu") == question.context.devices.empty()
                        ? cannot(fmt::format("it runs on the {}", k->entry.backend))
                    : deterministic && !k->entry.deterministic
                        ? cannot("its result depends on the number of threads, and --deterministic was asked for")
                        : k->ask(question);
    if (!answer.can) {
      if (forced.empty()) continue;
      throw usage_error(fmt::format("kernel {} cannot do this: {}", forced, answer.reason));
    }
    if (best.kernel && cost <= answer.cost) continue;
    best = {k, std::move(answer.reason)};
    cost = answer.cost;
  }
  if (best.kernel) return best;
  if (!known && !forced.empty())
    throw usage_error(
        fmt::format("there is no kernel '{}' for this ('polyad list kernels' shows what there is)", forced));
  if (!question.context.devices.empty())
    throw usage_error(
        fmt::format("no kernel of the devices works on {}{} ('polyad list kernels' shows what they can do)",
                    question.tensor.format().name, deterministic ? " with the same bits every time" : ""));
  throw usage_error("no kernel can do this");
}

}  // namespace polyad
