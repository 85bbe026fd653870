// SPDX-License-Identifier: MIT
#include "formats/flycoo/parameters.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <numeric>
#include <queue>

#include "backends/cpu/threads.hpp"
#include "polyad/matrix.hpp"

namespace polyad {

namespace {

constexpr std::uint64_t least_shard = 1024;
constexpr std::uint64_t least_rows = 1000;
constexpr std::uint64_t greatest_rows = 16000;
/// Bins of the histogram that balances super-shards: exact for shorter modes.
constexpr std::uint64_t histogram_bins = 1U << 14U;
/// The offsets of the remap are a table of k_n * k_(n+1): a pair of super-shards should hold this many nonzeros.
constexpr double nonzeros_per_pair = 16;

/// Nonzeros per bin of a mode.
std::vector<std::uint64_t> histogram(const CooTensor& x, std::size_t mode, const SuperShardMap& bins,
                                     const Context& context) {
  const int threads = x.nnz() < (1U << 16U) ? 1 : context.thread_count();
  std::vector<std::vector<std::uint64_t>> parts(static_cast<std::size_t>(threads));
  visit(x, [&]<class Index, class Value>(const CooView<Index, Value>& v) {
    cpu::run_team(threads, [&](int rank, int size) {
      std::vector<std::uint64_t> counts(bins.count());
      const cpu::Share s = cpu::share_of(v.nnz, rank, size);
      const Index* index = v.indices[mode];
      for (std::uint64_t k = s.begin; k < s.end; ++k) ++counts[bins(index[k])];
      parts[static_cast<std::size_t>(rank)] = std::move(counts);
    });
  });
  for (std::size_t t = 1; t < parts.size(); ++t)
    std::transform(parts[0].begin(), parts[0].end(), parts[t].begin(), parts[0].begin(), std::plus<>());
  return std::move(parts[0]);
}

/// The largest load over the mean when `count` super-shards go to the threads.
double imbalance(std::span<const std::uint64_t> bins, std::uint64_t count, std::uint64_t threads) {
  const SuperShardMap map(bins.size(), count);
  std::vector<std::uint64_t> sizes(count);
  for (std::size_t b = 0; b < bins.size(); ++b) sizes[map(b)] += bins[b];
  const std::vector<std::uint64_t> loads = greedy_loads(sizes, threads);
  const auto sum = static_cast<double>(std::accumulate(loads.begin(), loads.end(), std::uint64_t{0}));
  return static_cast<double>(*std::max_element(loads.begin(), loads.end())) * static_cast<double>(threads) / sum;
}

}  // namespace

SuperShardMap::SuperShardMap(std::uint64_t dim, std::uint64_t count)
    : dim_(std::max<std::uint64_t>(dim, 1)), count_(count) {
  shift_ = std::max(0, static_cast<int>(std::bit_width(dim_)) - 32);
  const std::uint64_t scaled = ((dim_ - 1) >> static_cast<unsigned>(shift_)) + 1;
  if (count_ > 1) reciprocal_ = static_cast<std::uint64_t>(((static_cast<Wide>(count_) << 63U) + scaled - 1) / scaled);
}

std::uint64_t SuperShardMap::first_row(std::uint64_t super_shard) const {
  std::uint64_t low = 0;
  std::uint64_t high = dim_;
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if ((*this)(middle) < super_shard) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

std::uint64_t most_super_shard_rows(const FlycooMachine& machine, std::uint64_t row_bytes, std::uint64_t record_bytes,
                                    std::uint64_t shard_nonzeros, std::uint64_t nnz) {
  const auto g = static_cast<double>(shard_nonzeros);
  const double cache = FlycooParameters::cache_share * static_cast<double>(machine.cache_bytes);
  const double pointers = 8.0 * static_cast<double>(nnz) / g;
  const double per_thread = (cache - pointers) / static_cast<double>(machine.threads);
  const double rows = (per_thread - static_cast<double>(record_bytes) * g) / static_cast<double>(row_bytes);
  return static_cast<std::uint64_t>(
      std::clamp(rows, static_cast<double>(least_rows), static_cast<double>(greatest_rows)));
}

FlycooParameters flycoo_parameters(const CooTensor& x, const FlycooMachine& machine, std::uint64_t record_bytes,
                                   const FormatOptions& options, const Context& context) {
  FlycooParameters p;
  p.shard_nonzeros =
      std::min(options.shard_nonzeros > 0 ? options.shard_nonzeros : least_shard, std::max<std::uint64_t>(x.nnz(), 1));
  const std::uint64_t row_bytes = padded_columns(std::max<std::uint64_t>(options.rank, 1)) * bytes_of(x.precision());
  p.most_rows = most_super_shard_rows(machine, row_bytes, record_bytes, p.shard_nonzeros, x.nnz());
  const auto affordable = static_cast<std::uint64_t>(std::sqrt(static_cast<double>(x.nnz()) / nonzeros_per_pair)) + 1;
  for (std::size_t m = 0; m < x.dims.size(); ++m) {
    const std::uint64_t dim = std::max<std::uint64_t>(x.dims[m], 1);
    const auto at_most = [&](std::uint64_t rows) { return (dim - 1) / rows + 1; };
    std::uint64_t count = 0;
    if (options.supershard_rows > 0) {
      count = std::min(at_most(options.supershard_rows), std::max(affordable, machine.threads));
    } else if (dim <= machine.threads) {
      count = dim;  // m_n = 1
    } else {
      const std::uint64_t rounds =
          at_most(p.most_rows) / machine.threads + (at_most(p.most_rows) % machine.threads != 0);
      const std::uint64_t most = std::min(affordable / machine.threads, dim / machine.threads);
      std::uint64_t q = std::max<std::uint64_t>(1, std::min(rounds, most));
      const std::uint64_t end =
          std::min(most, std::max<std::uint64_t>(q, std::max<std::uint64_t>(16, dim / least_rows / machine.threads)));
      count = q * machine.threads;
      if (machine.threads > 1 && x.nnz() > 0) {
        const std::vector<std::uint64_t> bins =
            histogram(x, m, SuperShardMap(dim, std::min(dim, histogram_bins)), context);
        double best = imbalance(bins, count, machine.threads);
        for (q *= 2; best > 1.03 && q <= end && q * machine.threads <= bins.size(); q *= 2)
          if (const double tried = imbalance(bins, q * machine.threads, machine.threads); tried < best) {
            best = tried;
            count = q * machine.threads;
          }
      }
    }
    p.super_shards.push_back(std::min(count, dim));
  }
  return p;
}

std::vector<std::uint32_t> largest_first(std::span<const std::uint64_t> sizes) {
  std::vector<std::uint32_t> order(sizes.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return sizes[a] > sizes[b]; });
  return order;
}

std::vector<std::uint64_t> greedy_loads(std::span<const std::uint64_t> sizes, std::size_t bins) {
  using Bin = std::pair<std::uint64_t, std::size_t>;
  std::priority_queue<Bin, std::vector<Bin>, std::greater<>> least;
  for (std::size_t b = 0; b < bins; ++b) least.emplace(0, b);
  std::vector<std::uint64_t> loads(bins);
  for (const std::uint32_t job : largest_first(sizes)) {
    const auto [load, bin] = least.top();
    least.pop();
    loads[bin] = load + sizes[job];
    least.emplace(loads[bin], bin);
  }
  return loads;
}

}  // namespace polyad
