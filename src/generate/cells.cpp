// SPDX-License-Identifier: MIT
#include "generate/cells.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "backends/cpu/threads.hpp"
#include "generate/bijection.hpp"
#include "generate/random.hpp"
#include "polyad/operations.hpp"

namespace polyad::synthetic {

using portable::Bijection;
using portable::Key;
using portable::Random;

namespace {

constexpr std::uint64_t most_numbered = std::uint64_t{1} << 63U;

/// Changes the number of nonzeros.
void resize(CooTensor& x, std::uint64_t nnz) {
  for (IndexBuffer& b : x.indices) std::visit([&](auto& v) { v.resize(nnz, "generated indices"); }, b);
  std::visit([&](auto& v) { v.resize(nnz, "generated values"); }, x.values);
}

/// Calls f(the index array of a mode) for every mode, modes in parallel.
template <class F>
void for_each_mode(CooTensor& x, const Context& context, const F& f) {
  visit(x, [&](const auto& v) {
    cpu::run_team(std::min(context.thread_count(), v.order), [&](int rank, int size) {
      for (int m = rank; m < v.order; m += size) f(static_cast<std::size_t>(m), v.indices[static_cast<std::size_t>(m)]);
    });
  });
}

/// Order of nonzero i of a and nonzero j of b: negative, zero or positive.
template <class Index>
int compare(const CooView<Index, float>& a, std::uint64_t i, const CooView<Index, float>& b, std::uint64_t j) {
  for (int m = 0; m < a.order; ++m) {
    const Index p = a.indices[static_cast<std::size_t>(m)][i];
    const Index q = b.indices[static_cast<std::size_t>(m)][j];
    if (p != q) return p < q ? -1 : 1;
  }
  return 0;
}

/// Calls f(tensor x as a view, tensor y as a view of the same types); both hold f32.
template <class F>
void visit_pair(CooTensor& x, CooTensor& y, const F& f) {
  visit(x, [&]<class Index, class Value>(const CooView<Index, Value>& a) {
    visit(y, [&]<class Index2, class Value2>(const CooView<Index2, Value2>& b) {
      if constexpr (std::is_same_v<Index, Index2> && std::is_same_v<Value, float> && std::is_same_v<Value2, float>)
        f(a, b);
    });
  });
}

}  // namespace

std::uint64_t cell_count(std::span<const std::uint64_t> dims) {
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t cells = 1;
  for (const std::uint64_t d : dims) cells = d != 0 && cells > most / d ? most : cells * d;
  return cells;
}

CooTensor draw_cells(std::span<const std::uint64_t> dims, std::uint64_t first, std::uint64_t count,
                     const Context& context) {
  CooTensor x = make_coo({dims.begin(), dims.end()}, count, Precision::f32, context);
  const std::uint64_t cells = cell_count(dims);
  const Key key(context.seed, "generate/cells");
  visit(x, [&]<class Index, class Value>(const CooView<Index, Value>& v) {
    const auto order = static_cast<std::size_t>(v.order);
    if (cells <= most_numbered && cells > 1) {
      const Bijection cell_of(cells - 1, key);
      cpu::parallel_ranges(context.thread_count(), count, [&](std::uint64_t begin, std::uint64_t end) {
        for (std::uint64_t k = begin; k < end; ++k) {
          std::uint64_t cell = cell_of(first + k);
          for (std::size_t m = order; m-- > 0;) {
            v.indices[m][k] = static_cast<Index>(cell % dims[m]);
            cell /= dims[m];
          }
        }
      });
    } else {
      cpu::parallel_ranges(context.thread_count(), count, [&](std::uint64_t begin, std::uint64_t end) {
        for (std::uint64_t k = begin; k < end; ++k) {
          Random random(key, first + k);
          for (std::size_t m = 0; m < order; ++m) v.indices[m][k] = static_cast<Index>(random.below(dims[m]));
        }
      });
    }
  });
  return x;
}

CooTensor choose_cells(std::span<const std::uint64_t> dims, std::uint64_t count, const Context& context) {
  CooTensor x = make_coo({dims.begin(), dims.end()}, count, Precision::f32, context);
  const std::uint64_t cells = cell_count(dims);
  // A permutation sends exactly count-1 of the cells-1 numbers below count-1: no table of what was chosen.
  const Bijection rank_of(std::max<std::uint64_t>(cells - 1, 1), Key(context.seed, "generate/choice"));
  const auto is_chosen = [&](std::uint64_t cell) { return cell == cells - 1 || rank_of(cell) < count - 1; };
  const int threads = std::max(
      1, static_cast<int>(std::min<std::uint64_t>(cells / 4096, static_cast<std::uint64_t>(context.thread_count()))));
  std::vector<std::uint64_t> begins(static_cast<std::size_t>(threads) + 1);
  cpu::run_team(threads, [&](int rank, int size) {
    const cpu::Share s = cpu::share_of(cells, rank, size);
    std::uint64_t n = 0;
    for (std::uint64_t cell = s.begin; cell < s.end; ++cell) n += is_chosen(cell) ? 1U : 0U;
    begins[static_cast<std::size_t>(rank) + 1] = n;
  });
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  visit(x, [&]<class Index, class Value>(const CooView<Index, Value>& v) {
    cpu::run_team(threads, [&](int rank, int size) {
      const cpu::Share s = cpu::share_of(cells, rank, size);
      std::uint64_t k = begins[static_cast<std::size_t>(rank)];
      for_each_cell(dims, s.begin, s.end, [&](std::uint64_t cell, std::span<const std::uint64_t> at) {
        if (!is_chosen(cell)) return;
        for (std::size_t m = 0; m < at.size(); ++m) v.indices[m][k] = static_cast<Index>(at[m]);
        ++k;
      });
    });
  });
  x.sorted_by.resize(dims.size());
  std::iota(x.sorted_by.begin(), x.sorted_by.end(), 0);
  x.duplicates_merged = true;
  return x;
}

void append_last_cell(CooTensor& x) {
  const std::uint64_t n = x.nnz();
  resize(x, n + 1);
  for (std::size_t m = 0; m < x.dims.size(); ++m)
    std::visit([&]<class Index>(Buffer<Index>& b) { b[n] = static_cast<Index>(x.dims[m] - 1); }, x.indices[m]);
  x.sorted_by.clear();
  x.duplicates_merged = false;
}

void make_set(CooTensor& x, const Context& context) {
  std::vector<int> modes(x.dims.size());
  std::iota(modes.begin(), modes.end(), 0);
  sort_nonzeros(x, modes, context);
  merge_duplicates(x, context);
}

void unite(CooTensor& x, CooTensor& more, const Context& context) {
  const std::uint64_t old = x.nnz();
  // places[j]: how many nonzeros of x come before nonzero j of `more`, or `known` if x has it.
  constexpr std::uint64_t known = std::numeric_limits<std::uint64_t>::max();
  Buffer<std::uint64_t> places(context, more.nnz(), "places of new nonzeros");
  visit_pair(x, more, [&](const auto& a, const auto& b) {
    const auto search = [&](std::uint64_t begin, std::uint64_t end) {
      for (std::uint64_t j = begin; j < end; ++j) {
        std::uint64_t low = 0;
        std::uint64_t high = a.nnz;
        while (low < high) {
          const std::uint64_t middle = low + (high - low) / 2;
          if (compare(a, middle, b, j) < 0) {
            low = middle + 1;
          } else {
            high = middle;
          }
        }
        places[j] = low < a.nnz && compare(a, low, b, j) == 0 ? known : low;
      }
    };
    cpu::parallel_ranges(context.thread_count(), b.nnz, search, 1024);
  });
  const auto added = static_cast<std::uint64_t>(
      std::count_if(places.begin(), places.end(), [](std::uint64_t p) { return p != known; }));
  resize(x, old + added);
  // From the back: what lies behind a new nonzero moves by the number of new ones before it, in blocks.
  visit_pair(x, more, [&](const auto& a, const auto& b) {
    for_each_mode(x, context, [&](std::size_t m, auto*) {
      auto* to = a.indices[m];
      std::uint64_t end = old;
      std::uint64_t left = added;
      for (std::uint64_t j = b.nnz; j-- > 0;) {
        if (places[j] == known) continue;
        std::memmove(to + places[j] + left, to + places[j], (end - places[j]) * sizeof(*to));
        end = places[j];
        to[end + --left] = b.indices[m][j];
      }
    });
  });
  more = CooTensor{};
}

void thin(CooTensor& x, std::uint64_t count, const Context& context) {
  const std::uint64_t n = x.nnz();
  if (n <= count) return;
  Buffer<std::uint64_t> gone(context, n - count, "surplus nonzeros");
  const Bijection choice(n - 1, Key(context.seed, "generate/surplus"));
  for (std::uint64_t i = 0; i < gone.size(); ++i) gone[i] = choice(i);
  std::sort(gone.begin(), gone.end());
  for_each_mode(x, context, [&](std::size_t, auto* a) {
    std::uint64_t to = gone[0];
    for (std::uint64_t i = 0; i < gone.size(); ++i) {
      const std::uint64_t begin = gone[i] + 1;
      const std::uint64_t length = (i + 1 < gone.size() ? gone[i + 1] : n) - begin;
      std::memmove(a + to, a + begin, length * sizeof(*a));
      to += length;
    }
  });
  resize(x, count);
}

}  // namespace polyad::synthetic
