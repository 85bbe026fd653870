// SPDX-License-Identifier: MIT
/// \file Runs of nonzeros that agree in their first modes: how sorted coordinates become slices and fibres, in
/// parallel.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "backends/cpu/threads.hpp"
#include "formats/offsets.hpp"
#include "polyad/context.hpp"
#include "polyad/types.hpp"

namespace polyad {

/// The runs of sorted nonzeros at several depths: a run of level l is a maximal range of nonzeros that agree in the
/// first prefixes[l] modes of the sort. Counted when made, written by offsets().
template <class Index>
class Runs {
 public:
  /// \param modes by which the nonzeros are sorted, most significant first
  /// \param prefixes how many of them a level looks at, increasing
  Runs(const std::array<Index*, max_order>& indices, std::uint64_t nnz, std::span<const int> modes,
       std::span<const int> prefixes, const Context& context)
      : indices_(indices),
        nnz_(nnz),
        modes_(modes),
        prefixes_(prefixes),
        context_(context),
        team_(static_cast<int>(
            std::clamp<std::uint64_t>(nnz >> 14U, 1, static_cast<std::uint64_t>(context.thread_count())))),
        before_(static_cast<std::size_t>(team_) + 1, std::vector<std::uint64_t>(prefixes.size())) {
    cpu::run_team(team_, [&](int rank, int size) {
      const cpu::Share s = cpu::share_of(nnz_, rank, size);
      std::vector<std::uint64_t> mine(prefixes_.size());
      for (std::uint64_t k = s.begin; k < s.end; ++k)
        for (std::size_t l = first_level(k); l < mine.size(); ++l) ++mine[l];
      before_[static_cast<std::size_t>(rank) + 1] = std::move(mine);
    });
    for (std::size_t t = 1; t < before_.size(); ++t)
      for (std::size_t l = 0; l < prefixes_.size(); ++l) before_[t][l] += before_[t - 1][l];
  }

  /// Runs of a level.
  [[nodiscard]] std::uint64_t count(std::size_t level) const { return before_.back()[level]; }

  /// Per level where its runs begin among those of the next level, for the last among the nonzeros. Calls
  /// emit(level, run, k) for every run, which begins with nonzero k, from several threads.
  template <class Emit>
  [[nodiscard]] std::vector<Offsets> offsets(const Emit& emit) const {
    const std::size_t levels = prefixes_.size();
    std::vector<Offsets> all;
    for (std::size_t l = 0; l < levels; ++l) {
      const std::uint64_t last = l + 1 < levels ? count(l + 1) : nnz_;
      all.emplace_back(context_, count(l) + 1, last, "the pointers of a level");
      all.back().set(count(l), last);
    }
    cpu::run_team(team_, [&](int rank, int size) {
      const cpu::Share s = cpu::share_of(nnz_, rank, size);
      std::vector<std::uint64_t> next = before_[static_cast<std::size_t>(rank)];
      for (std::uint64_t k = s.begin; k < s.end; ++k) {
        for (std::size_t l = first_level(k); l < levels; ++l) {
          all[l].set(next[l], l + 1 < levels ? next[l + 1] : k);
          emit(l, next[l], k);
          ++next[l];
        }
      }
    });
    return all;
  }

 private:
  /// The first level at which nonzero k begins a run.
  [[nodiscard]] std::size_t first_level(std::uint64_t k) const {
    if (k == 0) return 0;
    int same = 0;
    const int deepest = prefixes_.back();
    for (; same < deepest; ++same) {
      const Index* index = indices_[static_cast<std::size_t>(modes_[static_cast<std::size_t>(same)])];
      if (index[k - 1] != index[k]) break;
    }
    std::size_t level = 0;
    while (level < prefixes_.size() && prefixes_[level] <= same) ++level;
    return level;
  }

  const std::array<Index*, max_order>& indices_;
  std::uint64_t nnz_;
  std::span<const int> modes_;
  std::span<const int> prefixes_;
  const Context& context_;
  int team_;
  std::vector<std::vector<std::uint64_t>> before_;  // [team + 1][levels] runs that begin before a thread's share
};

}  // namespace polyad
