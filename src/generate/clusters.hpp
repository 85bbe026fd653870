// SPDX-License-Identifier: MIT
/// \file Clustered, skewed coordinates: what the nonzeros of real tensors look like to a format and a cache.
#pragma once

#include <cstdint>
#include <vector>

#include "generate/bijection.hpp"
#include "generate/random.hpp"
#include "polyad/context.hpp"
#include "polyad/coo_tensor.hpp"
#include "polyad/generate.hpp"

namespace polyad::synthetic {

/// Indices of one mode with P(rank i) ~ i^-skew, where a permutation drawn from the seed says which index has which
/// rank. Needs no table, so that dims may be large.
class ZipfMode {
 public:
  ZipfMode(std::uint64_t dim, double skew, portable::Key key);

  /// One index; one draw.
  [[nodiscard]] std::uint64_t operator()(portable::Random& random) const;

 private:
  std::uint64_t dim_;
  bool is_uniform_;
  double scale_;     // (dim+1)^(1-skew) - 1, or log2(dim+1) when skew is 1
  double exponent_;  // 1 / (1 - skew), or 0 when skew is 1
  portable::Bijection index_of_rank_;
};

/// A fixed sequence of clusters: number c of a round is the same whoever asks, so that threads can share the work.
class Clusters {
 public:
  /// \param options complete: skew and widths have one value per mode
  /// \param most the longest a cluster may get
  Clusters(const GenerateOptions& options, std::uint64_t seed, std::uint64_t round, std::uint64_t most);

  /// What drawing needs besides; one per thread.
  struct Scratch {
    std::vector<std::vector<std::uint64_t>> sets;  // per mode the indices of the cluster
    std::vector<std::uint64_t> cells;              // numbers of the drawn cells in the cross product of the sets
  };

  /// Appends the coordinates of cluster c to `columns`, one per mode: a small set of indices per mode, then about
  /// `burst` cells of their cross product, each once.
  template <class Index>
  void draw(std::uint64_t c, Scratch& scratch, std::vector<std::vector<Index>>& columns) const;

 private:
  const GenerateOptions& options_;
  portable::Key key_;
  std::uint64_t most_;
  std::vector<ZipfMode> modes_;
};

/// At least `target` coordinates (the first clusters of a round that make so many), unsorted, with values 0.
/// \param options complete, see Clusters
[[nodiscard]] CooTensor draw_clusters(const GenerateOptions& options, std::uint64_t round, std::uint64_t target,
                                      const Context& context);

}  // namespace polyad::synthetic
