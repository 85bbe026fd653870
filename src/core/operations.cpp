// SPDX-License-Identifier: MIT
#include "polyad/operations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "backends/cpu/threads.hpp"
#include "core/nonzero_order.hpp"
#include "core/radix_sort.hpp"
#include "polyad/error.hpp"

namespace polyad {

namespace {

constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();

// A team that n items are worth.
int team_for(std::uint64_t n, const Context& context) {
  return static_cast<int>(std::clamp<std::uint64_t>(n >> 14U, 1, static_cast<std::uint64_t>(context.thread_count())));
}

template <class T>
void copy_array(const T* from, T* to, std::uint64_t n, const Context& context) {
  cpu::parallel_ranges(context.thread_count(), n, [&](std::uint64_t begin, std::uint64_t end) {
    std::memcpy(to + begin, from + begin, (end - begin) * sizeof(T));
  });
}

// Foreign memory (a mapped file, a NumPy array) is never written: what changes in place becomes the tensor's own first.
template <class Variant>
void own(Variant& array, const Context& context, const std::string& purpose) {
  std::visit(
      [&]<class T>(Buffer<T>& b) {
        if (!b.is_view()) return;
        Buffer<T> mine(context, b.size(), purpose);
        copy_array(b.data(), mine.data(), b.size(), context);
        b = std::move(mine);
      },
      array);
}

void own_all(CooTensor& x, const Context& context) {
  for (std::size_t m = 0; m < x.indices.size(); ++m)
    own(x.indices[m], context, fmt::format("the index array of mode {}", m + 1));
  own(x.values, context, "the array of values");
}

// Where the shares of a team begin (offsets[rank]) and how much they are together (offsets.back()).
std::vector<std::uint64_t> offsets_of(std::span<const std::uint64_t> counts) {
  std::vector<std::uint64_t> offsets(counts.size() + 1);
  std::partial_sum(counts.begin(), counts.end(), offsets.begin() + 1);
  return offsets;
}

// Each share kept the first kept[rank] of its nonzeros, from begins[rank] on: closes the gaps and cuts the arrays. The
// pieces of an array move one after the other (they may overlap), the arrays at the same time.
void close_gaps(CooTensor& x, std::span<const std::uint64_t> begins, std::span<const std::uint64_t> kept,
                const Context& context) {
  const std::vector<std::uint64_t> to = offsets_of(kept);
  const auto close = [&]<class T>(Buffer<T>& array) {
    for (std::size_t r = 0; r < begins.size(); ++r)
      if (kept[r] > 0 && to[r] != begins[r])
        std::memmove(array.data() + to[r], array.data() + begins[r], kept[r] * sizeof(T));
  };
  const std::size_t arrays = x.indices.size() + 1;
  const int team = static_cast<int>(std::min<std::size_t>(arrays, static_cast<std::size_t>(context.thread_count())));
  cpu::run_team(team, [&](int rank, int size) {
    for (auto a = static_cast<std::size_t>(rank); a < arrays; a += static_cast<std::size_t>(size)) {
      if (a < x.indices.size()) {
        std::visit(close, x.indices[a]);
      } else {
        std::visit(close, x.values);
      }
    }
  });
  for (IndexBuffer& index : x.indices) std::visit([&](auto& b) { b.resize(to.back(), "an index array"); }, index);
  std::visit([&](auto& b) { b.resize(to.back(), "the array of values"); }, x.values);
}

template <class View>
bool same_coordinate(const View& v, std::uint64_t a, std::uint64_t b) {
  for (int m = 0; m < v.order; ++m) {
    const auto* index = v.indices[static_cast<std::size_t>(m)];
    if (index[a] != index[b]) return false;
  }
  return true;
}

// The sum of values [begin, end), from left to right in double whatever the type: a sum of f32 is rounded once.
template <class Value>
double sum_of(const Value* values, std::uint64_t begin, std::uint64_t end) {
  double sum = 0;
  for (std::uint64_t i = begin; i < end; ++i) sum += static_cast<double>(values[i]);
  return sum;
}

// Whether the type can hold a number: not if a finite one becomes infinite.
template <class Value>
bool holds(double v) {
  return !std::isfinite(v) || std::isfinite(static_cast<Value>(v));
}

template <class View>
std::string coordinate(const View& v, std::uint64_t k) {
  std::string text;
  for (int m = 0; m < v.order; ++m)
    text += fmt::format("{}{}", m == 0 ? "" : ", ", std::uint64_t{v.indices[static_cast<std::size_t>(m)][k]} + 1);
  return text;
}

// Writes sorted keys out.
struct CopyKeys {
  std::uint64_t* out;

  void sorted(int, std::uint64_t begin, std::size_t count, const std::uint64_t* keys) const {
    std::copy_n(keys, count, out + begin);
  }
  void equal(int, std::uint64_t begin, std::uint64_t count, const std::uint64_t* keys, int) const {
    std::copy_n(keys, count, out + begin);
  }
};

// Renumbers the indices of one mode by a table over the dim; returns the old indices. Rank: a type for 0..n-1.
template <class Rank, class Index>
std::vector<std::uint64_t> renumber_by_table(Index* index, std::uint64_t n, std::uint64_t dim, const Context& context) {
  Buffer<Rank> rank(context, dim, "the table of renumbered indices");  // first 1 where an index occurs
  const int threads = context.thread_count();
  cpu::parallel_ranges(threads, n, [&](std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t i = begin; i < end; ++i) {
      const std::atomic_ref<Rank> mark(rank[index[i]]);
      if (mark.load(std::memory_order_relaxed) == 0) mark.store(1, std::memory_order_relaxed);
    }
  });
  const int team = team_for(dim, context);
  std::vector<std::uint64_t> counts(static_cast<std::size_t>(team));
  cpu::run_team(team, [&](int r, int size) {
    const cpu::Share s = cpu::share_of(dim, r, size);
    counts[static_cast<std::size_t>(r)] = std::accumulate(rank.data() + s.begin, rank.data() + s.end, std::uint64_t{0});
  });
  const std::vector<std::uint64_t> offsets = offsets_of(counts);
  std::vector<std::uint64_t> old(offsets.back());
  cpu::run_team(team, [&](int r, int size) {
    const cpu::Share s = cpu::share_of(dim, r, size);
    std::uint64_t next = offsets[static_cast<std::size_t>(r)];
    for (std::uint64_t i = s.begin; i < s.end; ++i) {
      if (rank[i] == 0) continue;
      rank[i] = static_cast<Rank>(next);
      old[next++] = i;
    }
  });
  if (old.size() < dim)
    cpu::parallel_ranges(threads, n, [&](std::uint64_t begin, std::uint64_t end) {
      for (std::uint64_t i = begin; i < end; ++i) index[i] = static_cast<Index>(rank[index[i]]);
    });
  return old;
}

// The same for a dim far above n: the sorted indices are the table.
template <class Index>
std::vector<std::uint64_t> renumber_by_search(Index* index, std::uint64_t n, std::uint64_t dim,
                                              const Context& context) {
  std::vector<std::uint64_t> old;
  {
    Buffer<std::uint64_t> keys(context, n, "the indices that occur");
    const int mode = 0;
    const std::uint64_t largest = dim - 1;
    const radix::KeyLayout layout({&largest, 1}, {&mode, 1});
    const radix::KeySource<std::uint64_t, Index> source{&layout, {index}};
    radix::ArrayStore<std::uint64_t> other{keys.data()};
    CopyKeys copy{keys.data()};
    radix::sort<std::uint64_t>({n, {layout.bits}, "the scratch array of the indices that occur"}, source, other, copy,
                               context);
    std::unique_copy(keys.begin(), keys.end(), std::back_inserter(old));
  }
  cpu::parallel_ranges(context.thread_count(), n, [&](std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t i = begin; i < end; ++i)
      index[i] = static_cast<Index>(std::lower_bound(old.begin(), old.end(), index[i]) - old.begin());
  });
  return old;
}

// Stores the indices in 32 bits when the dims have become small enough.
void fit_width(CooTensor& x, const Context& context) {
  if (x.index_width() == width_for(x.dims)) return;
  for (std::size_t m = 0; m < x.indices.size(); ++m) {
    const Buffer<std::uint64_t>& wide = std::get<Buffer<std::uint64_t>>(x.indices[m]);
    Buffer<std::uint32_t> narrow(context, wide.size(), fmt::format("the index array of mode {}", m + 1));
    cpu::parallel_ranges(context.thread_count(), wide.size(), [&](std::uint64_t begin, std::uint64_t end) {
      for (std::uint64_t i = begin; i < end; ++i) narrow[i] = static_cast<std::uint32_t>(wide[i]);
    });
    x.indices[m] = std::move(narrow);
  }
}

// The labels of the indices that are left.
ModeLabels pick_labels(const ModeLabels& labels, std::span<const std::uint64_t> old) {
  ModeLabels picked(labels.name());
  if (!labels.empty())
    for (const std::uint64_t i : old) picked.push_back(labels[i]);
  return picked;
}

}  // namespace

namespace {

// Whether no two nonzeros are of one coordinate, seen from their order alone: most files are sorted and have none, and
// one pass without branches says both. Notes the order.
bool ascends_strictly(CooTensor& x, const Context& context) {
  const bool known = !x.sorted_by.empty();
  if (known && x.sorted_by.size() != x.dims.size()) return false;
  std::vector<int> modes = x.sorted_by;
  if (!known) {
    modes.resize(x.dims.size());
    std::iota(modes.begin(), modes.end(), 0);
    context.report({"sorting", 0, x.nnz(), "nonzeros"});
  }
  const NonzeroOrder order = order_of(x, modes, context);
  if (!known && order != NonzeroOrder::none) {
    x.sorted_by = std::move(modes);
    context.report({"sorting", x.nnz(), x.nnz(), "nonzeros"});
  }
  return order == NonzeroOrder::strict;
}

}  // namespace

std::uint64_t merge_duplicates(CooTensor& x, const Context& context) {
  if (x.duplicates_merged) return 0;
  if (ascends_strictly(x, context)) {
    x.duplicates_merged = true;
    return 0;
  }
  ensure_sorted(x, context);
  const std::uint64_t n = x.nnz();
  const int team = team_for(n, context);
  // A share begins with the first nonzero of a coordinate, so that each group is summed by one thread.
  std::vector<std::uint64_t> begins(static_cast<std::size_t>(team) + 1, n);
  std::vector<std::uint64_t> kept(static_cast<std::size_t>(team));
  visit(std::as_const(x), [&]<class Index, class Value>(const CooView<Index, Value>& v) {
    for (int r = 0; r < team; ++r) {
      std::uint64_t b = cpu::share_of(n, r, team).begin;
      if (r > 0) b = std::max(b, begins[static_cast<std::size_t>(r) - 1]);
      while (b > 0 && b < n && same_coordinate(v, b - 1, b)) ++b;
      begins[static_cast<std::size_t>(r)] = b;
    }
    // Nothing changes before it is known that every sum can be held.
    std::vector<std::uint64_t> bad(static_cast<std::size_t>(team), none);
    cpu::run_team(team, [&](int rank, int) {
      const auto r = static_cast<std::size_t>(rank);
      for (std::uint64_t i = begins[r]; i < begins[r + 1];) {
        std::uint64_t end = i + 1;
        while (end < begins[r + 1] && same_coordinate(v, i, end)) ++end;
        if (end - i > 1 && bad[r] == none &&
            !std::isfinite(static_cast<std::remove_const_t<Value>>(sum_of(v.values, i, end))))
          bad[r] = i;
        ++kept[r];
        i = end;
      }
    });
    const std::uint64_t first_bad = *std::min_element(bad.begin(), bad.end());
    if (first_bad != none) {
      std::uint64_t end = first_bad;
      while (end < n && same_coordinate(v, first_bad, end)) ++end;
      throw Error(ErrorKind::input,
                  fmt::format("the values of the duplicates at ({}) add up to {}, which {} cannot hold",
                              coordinate(v, first_bad), sum_of(v.values, first_bad, end), name_of(x.precision())));
    }
  });
  const std::uint64_t left = std::reduce(kept.begin(), kept.end(), std::uint64_t{0});
  if (left < n) {
    own_all(x, context);
    visit(x, [&]<class Index, class Value>(const CooView<Index, Value>& v) {
      cpu::run_team(team, [&](int rank, int) {
        const auto r = static_cast<std::size_t>(rank);
        std::uint64_t out = begins[r];
        for (std::uint64_t i = begins[r]; i < begins[r + 1]; ++out) {
          std::uint64_t end = i + 1;
          while (end < begins[r + 1] && same_coordinate(v, i, end)) ++end;
          // A single value keeps its bits.
          v.values[out] = end - i == 1 ? v.values[i] : static_cast<Value>(sum_of(v.values, i, end));
          for (int m = 0; m < v.order; ++m) {
            Index* index = v.indices[static_cast<std::size_t>(m)];
            index[out] = index[i];
          }
          i = end;
        }
      });
    });
    close_gaps(x, std::span(begins).first(kept.size()), kept, context);
  }
  x.duplicates_merged = true;
  return n - left;
}

std::uint64_t drop_zeros(CooTensor& x, const Context& context) {
  const std::uint64_t n = x.nnz();
  const int team = team_for(n, context);
  std::vector<std::uint64_t> begins(static_cast<std::size_t>(team));
  std::vector<std::uint64_t> kept(static_cast<std::size_t>(team));
  visit(std::as_const(x), [&](const auto& v) {
    cpu::run_team(team, [&](int rank, int size) {
      const cpu::Share s = cpu::share_of(n, rank, size);
      begins[static_cast<std::size_t>(rank)] = s.begin;
      std::uint64_t count = 0;
      for (std::uint64_t i = s.begin; i < s.end; ++i) count += v.values[i] != 0 ? 1 : 0;
      kept[static_cast<std::size_t>(rank)] = count;
    });
  });
  const std::uint64_t left = std::reduce(kept.begin(), kept.end(), std::uint64_t{0});
  if (left == n) return 0;
  own_all(x, context);
  visit(x, [&](const auto& v) {
    cpu::run_team(team, [&](int rank, int size) {
      const cpu::Share s = cpu::share_of(n, rank, size);
      // The values say what stays, so they move last.
      const auto keep = [&](auto* array) {
        std::uint64_t out = s.begin;
        for (std::uint64_t i = s.begin; i < s.end; ++i)
          if (v.values[i] != 0) array[out++] = array[i];
      };
      for (int m = 0; m < v.order; ++m) keep(v.indices[static_cast<std::size_t>(m)]);
      keep(v.values);
    });
  });
  close_gaps(x, begins, kept, context);
  return n - left;
}

std::vector<std::vector<std::uint64_t>> drop_empty_slices(CooTensor& x, const Context& context) {
  const std::uint64_t n = x.nnz();
  std::vector<std::vector<std::uint64_t>> old(x.dims.size());
  for (std::size_t m = 0; m < x.dims.size(); ++m) {
    const std::uint64_t dim = x.dims[m];
    if (n == 0) {  // a mode has at least one index, so an empty tensor keeps the first
      old[m] = {0};
    } else {
      own(x.indices[m], context, fmt::format("the index array of mode {}", m + 1));
      std::visit(
          [&](auto& index) {
            // A table may cost 16 bytes per nonzero, no more.
            if (dim > 4 * n + 1024) {
              old[m] = renumber_by_search(index.data(), n, dim, context);
            } else if (n - 1 <= std::numeric_limits<std::uint32_t>::max()) {
              old[m] = renumber_by_table<std::uint32_t>(index.data(), n, dim, context);
            } else {
              old[m] = renumber_by_table<std::uint64_t>(index.data(), n, dim, context);
            }
          },
          x.indices[m]);
    }
    x.dims[m] = old[m].size();
    if (m < x.labels.size() && x.dims[m] != dim) x.labels[m] = pick_labels(x.labels[m], old[m]);
  }
  fit_width(x, context);  // new numbers keep the order of the old: sorted_by stays true
  return old;
}

namespace {

/// Per nonzero, the sum of the values of its fibre along a mode. Sorts the nonzeros so that fibres lie together.
Buffer<double> fibre_sums(CooTensor& x, int mode, const Context& context) {
  std::vector<int> order;
  for (int m = 0; m < x.order(); ++m)
    if (m != mode) order.push_back(m);
  order.push_back(mode);
  if (x.sorted_by != order) sort_nonzeros(x, order, context);
  Buffer<double> sums(context, x.nnz(), "sums of fibres");
  visit(x, [&](const auto& v) {
    const auto same_fibre = [&](std::uint64_t a, std::uint64_t b) {
      for (int m = 0; m < v.order; ++m)
        if (m != mode && v.indices[static_cast<std::size_t>(m)][a] != v.indices[static_cast<std::size_t>(m)][b])
          return false;
      return true;
    };
    for (std::uint64_t begin = 0, end = 0; begin < v.nnz; begin = end) {
      double sum = 0;
      for (; end < v.nnz && same_fibre(begin, end); ++end) sum += static_cast<double>(v.values[end]);
      for (std::uint64_t k = begin; k < end; ++k) sums[k] = sum;
    }
  });
  return sums;
}

}  // namespace

void to_deviance(CooTensor& x, std::optional<int> mode, const Context& context) {
  if (mode && (*mode < 0 || *mode >= x.order()))
    throw usage_error(fmt::format("deviance: there is no mode {} in a tensor of order {}", *mode + 1, x.order()));
  if (!x.duplicates_merged) merge_duplicates(x, context);
  own(x.values, context, "the array of values");
  const Buffer<double> fibres = mode ? fibre_sums(x, *mode, context) : Buffer<double>();
  visit(x, [&]<class Index, class Value>(const CooView<Index, Value>& v) {
    std::vector<Buffer<double>> slices(x.dims.size());  // sums, of the modes that count
    for (std::size_t m = 0; m < slices.size(); ++m)
      if (!mode || *mode == static_cast<int>(m)) slices[m] = Buffer<double>(context, x.dims[m], "sums of slices");
    double total = 0;
    for (std::uint64_t k = 0; k < v.nnz; ++k) {
      const auto value = static_cast<double>(v.values[k]);
      if (value < 0)
        throw Error(ErrorKind::input, fmt::format("deviance: found the value {}, expected counts of 0 or more", value));
      total += value;
      for (std::size_t m = 0; m < slices.size(); ++m)
        if (slices[m].size() > 0) slices[m][v.indices[m][k]] += value;
    }
    cpu::parallel_ranges(context.thread_count(), v.nnz, [&](std::uint64_t begin, std::uint64_t end) {
      for (std::uint64_t k = begin; k < end; ++k) {
        const auto value = static_cast<double>(v.values[k]);
        double expected = mode ? fibres[k] : total;
        for (std::size_t m = 0; m < slices.size(); ++m)
          if (slices[m].size() > 0) expected *= slices[m][v.indices[m][k]] / total;
        const double deviance = value > expected ? 2 * (value * std::log(value / expected) - value + expected) : 0;
        v.values[k] = static_cast<Value>(std::sqrt(std::max(0.0, deviance)));
      }
    });
  });
}

void transform_values(CooTensor& x, ValueTransform transform, const Context& context) {
  own(x.values, context, "the array of values");
  std::visit(
      [&]<class Value>(Buffer<Value>& values) {
        cpu::parallel_ranges(context.thread_count(), values.size(), [&](std::uint64_t begin, std::uint64_t end) {
          if (transform == ValueTransform::binary) {
            for (std::uint64_t i = begin; i < end; ++i) values[i] = values[i] != 0 ? Value{1} : values[i];
          } else {
            for (std::uint64_t i = begin; i < end; ++i) {
              const auto v = static_cast<double>(values[i]);
              values[i] = static_cast<Value>(std::copysign(std::log1p(std::abs(v)), v));
            }
          }
        });
      },
      x.values);
}

CooTensor subset(const CooTensor& x, std::span<const IndexRange> ranges, const Context& context) {
  // Per mode what is inside all of its ranges.
  std::vector<std::uint64_t> from(x.dims.size());
  std::vector<std::uint64_t> to = x.dims;
  std::vector<bool> restricted(x.dims.size());
  for (const IndexRange& r : ranges) {
    if (r.mode < 0 || r.mode >= x.order())
      throw usage_error(
          fmt::format("there is no mode {} in a tensor of order {}", std::int64_t{r.mode} + 1, x.order()));
    const auto m = static_cast<std::size_t>(r.mode);
    if (r.begin >= r.end || r.end > x.dims[m])
      throw usage_error(fmt::format("indices {} to {} of {}: its indices are 1 to {}", r.begin + 1, r.end,
                                    x.mode_name(r.mode), x.dims[m]));
    from[m] = std::max(from[m], r.begin);
    to[m] = std::min(to[m], r.end);
    restricted[m] = true;
    if (from[m] >= to[m])
      throw usage_error(fmt::format("the ranges of {} have no index in common", x.mode_name(r.mode)));
  }
  std::vector<std::size_t> modes;
  for (std::size_t m = 0; m < x.dims.size(); ++m)
    if (restricted[m]) modes.push_back(m);

  std::vector<std::uint64_t> dims(x.dims.size());
  for (std::size_t m = 0; m < dims.size(); ++m) dims[m] = to[m] - from[m];
  CooTensor y;
  visit(x, [&]<class I, class V>(const CooView<I, V>& v) {
    using Index = std::remove_const_t<I>;
    using Value = std::remove_const_t<V>;
    // What is sorted by a restricted mode first lies between two positions.
    cpu::Share window{0, v.nnz};
    if (!x.sorted_by.empty() && restricted[static_cast<std::size_t>(x.sorted_by[0])]) {
      const auto m = static_cast<std::size_t>(x.sorted_by[0]);
      const Index* index = v.indices[m];
      window.begin = static_cast<std::uint64_t>(std::lower_bound(index, index + v.nnz, from[m]) - index);
      window.end = static_cast<std::uint64_t>(std::lower_bound(index, index + v.nnz, to[m]) - index);
    }
    const std::uint64_t n = window.end - window.begin;
    const int team = team_for(n, context);
    const auto inside = [&](std::uint64_t i) {
      for (const std::size_t m : modes)
        if (v.indices[m][i] < from[m] || v.indices[m][i] >= to[m]) return false;
      return true;
    };
    std::vector<std::uint64_t> counts(static_cast<std::size_t>(team));
    cpu::run_team(team, [&](int rank, int size) {
      const cpu::Share s = cpu::share_of(n, rank, size);
      std::uint64_t count = 0;
      for (std::uint64_t i = s.begin; i < s.end; ++i) count += inside(window.begin + i) ? 1 : 0;
      counts[static_cast<std::size_t>(rank)] = count;
    });
    const std::vector<std::uint64_t> offsets = offsets_of(counts);
    y = make_coo(dims, offsets.back(), x.precision(), context);
    visit(y, [&]<class J, class W>(const CooView<J, W>& out) {
      if constexpr (std::is_same_v<W, Value> && sizeof(J) <= sizeof(Index)) {
        cpu::run_team(team, [&](int rank, int size) {
          const cpu::Share s = cpu::share_of(n, rank, size);
          std::uint64_t at = offsets[static_cast<std::size_t>(rank)];
          for (std::uint64_t i = window.begin + s.begin; i < window.begin + s.end; ++i) {
            if (!inside(i)) continue;
            for (std::size_t m = 0; m < dims.size(); ++m)
              out.indices[m][at] = static_cast<J>(v.indices[m][i] - from[m]);
            out.values[at++] = v.values[i];
          }
        });
      }
    });
  });
  y.sorted_by = x.sorted_by;
  y.duplicates_merged = x.duplicates_merged;
  y.labels = x.labels;
  for (const std::size_t m : modes) {
    if (m >= y.labels.size() || x.labels[m].empty()) continue;
    ModeLabels labels(x.labels[m].name());
    for (std::uint64_t i = from[m]; i < to[m]; ++i) labels.push_back(x.labels[m][i]);
    y.labels[m] = std::move(labels);
  }
  return y;
}

CooTensor copy_as(const CooTensor& x, Precision precision, const Context& context) {
  CooTensor y = make_coo(x.dims, x.nnz(), precision, x.index_width(), context);
  visit(x, [&]<class I, class V>(const CooView<I, V>& from) {
    visit(y, [&]<class J, class W>(const CooView<J, W>& to) {
      if constexpr (std::is_same_v<std::remove_const_t<I>, J>)
        for (std::size_t m = 0; m < x.dims.size(); ++m) copy_array(from.indices[m], to.indices[m], from.nnz, context);
      if constexpr (std::is_same_v<std::remove_const_t<V>, W>) {
        copy_array(from.values, to.values, from.nnz, context);
      } else {
        std::atomic<std::uint64_t> bad{none};
        cpu::parallel_ranges(context.thread_count(), from.nnz, [&](std::uint64_t begin, std::uint64_t end) {
          for (std::uint64_t i = begin; i < end; ++i) {
            to.values[i] = static_cast<W>(from.values[i]);
            // Neither infinite nor zero for a number that is not.
            if (holds<W>(static_cast<double>(from.values[i])) && (to.values[i] != 0 || from.values[i] == 0)) continue;
            std::uint64_t seen = bad.load();
            while (i < seen && !bad.compare_exchange_weak(seen, i)) {
            }
            return;
          }
        });
        if (const std::uint64_t k = bad.load(); k != none)
          throw Error(ErrorKind::input, fmt::format("the value {} at ({}) cannot be held by {}", from.values[k],
                                                    coordinate(from, k), name_of(precision)));
      }
    });
  });
  y.sorted_by = x.sorted_by;
  y.duplicates_merged = x.duplicates_merged;
  y.labels = x.labels;
  return y;
}

CooTensor clone(const CooTensor& x, const Context& context) { return copy_as(x, x.precision(), context); }

bool same_nonzeros(const CooTensor& a, const CooTensor& b) {
  if (a.dims != b.dims || a.nnz() != b.nnz() || a.precision() != b.precision()) return false;
  return visit(a, [&]<class I, class V>(const CooView<I, V>& v) {
    return visit(b, [&]<class J, class W>(const CooView<J, W>& w) {
      std::atomic<bool> same{true};
      cpu::parallel_ranges(default_threads(), v.nnz, [&](std::uint64_t begin, std::uint64_t end) {
        constexpr std::uint64_t step = 1U << 14U;
        for (std::uint64_t i = begin; i < end && same.load(std::memory_order_relaxed); i += step) {
          const std::uint64_t e = std::min(i + step, end);
          bool here = std::memcmp(v.values + i, w.values + i, (e - i) * sizeof(V)) == 0;
          for (std::size_t m = 0; here && m < a.dims.size(); ++m)
            here = std::equal(v.indices[m] + i, v.indices[m] + e, w.indices[m] + i);
          if (!here) same.store(false, std::memory_order_relaxed);
        }
      });
      return same.load();
    });
  });
}

}  // namespace polyad
