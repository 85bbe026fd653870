// SPDX-License-Identifier: MIT
#include "generate/clusters.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "backends/cpu/ordered_pipeline.hpp"
#include "generate/portable_math.hpp"

namespace polyad::synthetic {

using portable::Random;

namespace {

/// 1 + round(E) with E exponential of mean `mean` - 1; at most `most`.
std::uint64_t draw_size(Random& random, double mean, std::uint64_t most) {
  if (mean <= 1) return 1;
  const double e = -portable::log(1 - random.uniform()) * (mean - 1) + 0.5;
  return e >= static_cast<double>(most) ? most : std::min(most, 1 + static_cast<std::uint64_t>(e));
}

}  // namespace

// The ranks 1 ... d get the mass of x^-a on [1, d+1), whose inverse distribution function is
// x(u) = (1 + u ((d+1)^(1-a) - 1))^(1/(1-a)), and (d+1)^u for a = 1.
ZipfMode::ZipfMode(std::uint64_t dim, double skew, portable::Key key)
    : dim_(dim), is_uniform_(skew == 0), scale_(0), exponent_(0), index_of_rank_(dim, key) {
  const double e = 1 - skew;
  const double last = static_cast<double>(dim) + 1;
  const bool is_one = std::fabs(e) < 1e-9;
  scale_ = is_one ? portable::log2(last) : portable::power(last, e) - 1;
  exponent_ = is_one ? 0 : 1 / e;
}

std::uint64_t ZipfMode::operator()(Random& random) const {
  if (is_uniform_) return random.below(dim_);
  const double u = random.uniform();
  const double x = portable::exp2(exponent_ == 0 ? u * scale_ : portable::log2(u * scale_ + 1) * exponent_);
  const std::uint64_t rank = x < 2 ? 0 : static_cast<std::uint64_t>(x) - 1;
  return index_of_rank_(std::min(rank, dim_ - 1));
}

Clusters::Clusters(const GenerateOptions& options, std::uint64_t seed, std::uint64_t round, std::uint64_t most)
    : options_(options), key_(seed, "generate/cluster", round), most_(std::max<std::uint64_t>(most, 1)) {
  for (std::size_t m = 0; m < options.dims.size(); ++m)
    modes_.emplace_back(options.dims[m], options.skew[m], portable::Key(seed, "generate/ranks", m));
}

template <class Index>
void Clusters::draw(std::uint64_t c, Scratch& scratch, std::vector<std::vector<Index>>& columns) const {
  const std::size_t order = modes_.size();
  Random random(key_, c);
  scratch.sets.resize(order);
  double size_of_product = 1;  // only to see whether the product fits
  std::uint64_t product = 1;
  for (std::size_t m = 0; m < order; ++m) {
    const std::uint64_t dim = options_.dims[m];
    const std::uint64_t size = draw_size(random, options_.widths[m], std::min(dim, most_));
    std::vector<std::uint64_t>& set = scratch.sets[m];
    set.assign(1, modes_[m](random));
    // Half of the further indices lie near the one before, as those of pages, users and hours often do.
    while (set.size() < size)
      set.push_back(random.next() % 2 == 0 ? (set.back() + 1 + random.below(4)) % dim : modes_[m](random));
    size_of_product *= static_cast<double>(size);
    product *= size;
  }
  const std::uint64_t length = draw_size(random, options_.burst, most_);

  if (size_of_product >= 0x1.0p63) {  // cells cannot be numbered; nor will two be the same
    for (std::uint64_t k = 0; k < length; ++k)
      for (std::size_t m = 0; m < order; ++m)
        columns[m].push_back(static_cast<Index>(scratch.sets[m][random.below(scratch.sets[m].size())]));
    return;
  }
  scratch.cells.clear();
  for (std::uint64_t k = 0; k < length; ++k) scratch.cells.push_back(random.below(product));
  if (length > 1) {
    std::sort(scratch.cells.begin(), scratch.cells.end());
    scratch.cells.erase(std::unique(scratch.cells.begin(), scratch.cells.end()), scratch.cells.end());
  }
  for (std::size_t m = order; m-- > 0;) {
    const std::vector<std::uint64_t>& set = scratch.sets[m];
    if (set.size() == 1) {
      columns[m].insert(columns[m].end(), scratch.cells.size(), static_cast<Index>(set[0]));
      continue;
    }
    for (std::uint64_t& cell : scratch.cells) {
      columns[m].push_back(static_cast<Index>(set[cell % set.size()]));
      cell /= set.size();
    }
  }
}

template void Clusters::draw(std::uint64_t, Scratch&, std::vector<std::vector<std::uint32_t>>&) const;
template void Clusters::draw(std::uint64_t, Scratch&, std::vector<std::vector<std::uint64_t>>&) const;

namespace {

template <class Index>
CooTensor draw_clusters_as(const GenerateOptions& options, std::uint64_t round, std::uint64_t target,
                           const Context& context) {
  const std::size_t order = options.dims.size();
  const Clusters clusters(options, context.seed, round, target);
  // A piece of work makes some 8192 coordinates, fewer for a small tensor. Its size depends on no thread count: the
  // pieces that the result consists of must not.
  const double wanted = std::min(8192.0, static_cast<double>(target) / 16);
  const auto per_piece = static_cast<std::uint64_t>(std::max(1.0, wanted / options.burst));

  CooTensor x = make_coo(options.dims, 0, Precision::f32, context);
  std::atomic<std::uint64_t> count = 0;
  std::uint64_t room = 0;
  const auto resize = [&](std::uint64_t n) {
    for (IndexBuffer& b : x.indices) std::get<Buffer<Index>>(b).resize(n, "generated indices");
    room = n;
  };
  resize(target + 8192);

  struct Piece {
    std::uint64_t number = 0;
    Clusters::Scratch scratch;
    std::vector<std::vector<Index>> columns;
  };
  std::uint64_t produced = 0;
  cpu::ordered_pipeline<Piece>(
      context.thread_count(),
      [&](Piece& piece) {
        if (count.load() >= target) return false;
        piece.number = produced++;
        return true;
      },
      [&](Piece& piece) {
        piece.columns.resize(order);
        for (std::vector<Index>& column : piece.columns) column.clear();
        for (std::uint64_t c = piece.number * per_piece; c < (piece.number + 1) * per_piece; ++c)
          clusters.draw(c, piece.scratch, piece.columns);
      },
      [&](Piece& piece) {
        const std::uint64_t n = piece.columns[0].size();
        const std::uint64_t before = count.load();
        if (before >= target) return;  // begun before the target was reached
        if (before + n > room) resize(before + n + room / 16);
        for (std::size_t m = 0; m < order; ++m)
          std::copy(piece.columns[m].begin(), piece.columns[m].end(),
                    std::get<Buffer<Index>>(x.indices[m]).begin() + before);
        count.store(before + n);
        if (piece.number % 64 == 0) context.report({"generating", std::min(before + n, target), target, "nonzeros"});
      });
  resize(count.load());
  std::get<Buffer<float>>(x.values).resize(count.load(), "generated values");
  return x;
}

}  // namespace

CooTensor draw_clusters(const GenerateOptions& options, std::uint64_t round, std::uint64_t target,
                        const Context& context) {
  return width_for(options.dims) == IndexWidth::u64 ? draw_clusters_as<std::uint64_t>(options, round, target, context)
                                                    : draw_clusters_as<std::uint32_t>(options, round, target, context);
}

}  // namespace polyad::synthetic
