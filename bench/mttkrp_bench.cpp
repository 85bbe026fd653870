// SPDX-License-Identifier: MIT
/// \file Every format against a plain CSF program: one tree per mode, OpenMP over its slices, no vectors written by
/// hand, no prefetching, no balancing beyond dynamic scheduling. All modes in turn; both in one run, on the same
/// factors.
///
///   mttkrp_bench FILE [THREADS [f64|f32 [RANK [REPEAT [JSON]]]]]
///   mttkrp_bench like:nell2:5000000 ...      a generated tensor
///
/// The numbers also go to the file JSON. `auto` is what the planner takes; `model` is its estimate, made of rates that
/// were measured on this machine, over the time measured: the share of the machine's limits that is reached.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <polyad/polyad.hpp>
#include <string>
#include <vector>

namespace polyad {
namespace {

using Clock = std::chrono::steady_clock;

template <class F>
double seconds(const F& f) {
  const auto begin = Clock::now();
  f();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

/// What a textbook says a CSF tree is.
template <class T>
struct PlainTree {
  std::vector<int> modes;
  std::vector<std::vector<std::uint32_t>> ids;       // [level][nodes]
  std::vector<std::vector<std::uint64_t>> children;  // [level][nodes + 1]
  std::vector<T> values;

  PlainTree(const CooTensor& x, int root, const Context& context) {
    modes.resize(x.dims.size());
    std::iota(modes.begin(), modes.end(), 0);
    std::stable_sort(modes.begin(), modes.end(), [&](int a, int b) {
      const auto key = [&](int m) { return std::pair(m != root, x.dims[static_cast<std::size_t>(m)]); };
      return key(a) < key(b);
    });
    CooTensor sorted = clone(x, context);
    sort_nonzeros(sorted, modes, context);
    const std::size_t n = modes.size();
    ids.resize(n);
    children.resize(n);
    const auto index = [&](std::size_t l, std::uint64_t k) {
      return std::get<Buffer<std::uint32_t>>(sorted.indices[static_cast<std::size_t>(modes[l])])[k];
    };
    for (std::uint64_t k = 0; k < sorted.nnz(); ++k) {
      std::size_t l = 0;
      if (k > 0)
        while (l + 1 < n && index(l, k) == index(l, k - 1)) ++l;
      for (; l < n; ++l) {
        if (l + 1 < n) children[l].push_back(ids[l + 1].size());
        ids[l].push_back(index(l, k));
      }
      values.push_back(std::get<Buffer<T>>(sorted.values)[k]);
    }
    for (std::size_t l = 0; l + 1 < n; ++l) children[l].push_back(ids[l + 1].size());
  }
};

/// The rank is known to the compiler, as it is in programs that are compiled for one.
template <class T, int R>
void walk(const PlainTree<T>& t, std::size_t level, std::uint64_t begin, std::uint64_t end,
          const std::vector<FactorMatrix<T>>& factors, T* sum) {
  const FactorMatrix<T>& factor = factors[static_cast<std::size_t>(t.modes[level])];
  const bool leaf = level + 1 == t.modes.size();
  for (std::uint64_t z = begin; z < end; ++z) {
    const T* row = factor.row(t.ids[level][z]);
    if (leaf) {
      for (int r = 0; r < R; ++r) sum[r] += t.values[z] * row[r];
    } else {
      alignas(64) T below[R] = {};
      walk<T, R>(t, level + 1, t.children[level][z], t.children[level][z + 1], factors, below);
      for (int r = 0; r < R; ++r) sum[r] += below[r] * row[r];
    }
  }
}

template <class T, int R>
void plain_mttkrp(const PlainTree<T>& t, const std::vector<FactorMatrix<T>>& factors, FactorMatrix<T>& out,
                  int threads) {
  std::fill_n(out.data(), out.rows() * out.stride(), T{0});
  const auto slices = static_cast<std::int64_t>(t.ids[0].size());
#pragma omp parallel for num_threads(threads) schedule(dynamic, 16)
  for (std::int64_t s = 0; s < slices; ++s) {
    const auto at = static_cast<std::size_t>(s);
    walk<T, R>(t, 1, t.children[0][at], t.children[0][at + 1], factors, out.row(t.ids[0][at]));
  }
}

template <class T, int R>
void compare(const CooTensor& x, const Context& context, int repeat, const std::string& json) {
  const std::vector<FactorMatrix<T>> factors = random_factors<T>(x.dims, R, context);
  std::vector<FactorMatrix<T>> out;
  for (const std::uint64_t d : x.dims) out.emplace_back(context, d, R);
  double plain = 0;
  {
    std::vector<PlainTree<T>> trees;
    for (int m = 0; m < x.order(); ++m) trees.emplace_back(x, m, context);
    std::vector<double> sweeps;
    for (int k = 0; k <= repeat; ++k) {
      const double s = seconds([&] {
        for (std::size_t m = 0; m < trees.size(); ++m)
          plain_mttkrp<T, R>(trees[m], factors, out[m], context.thread_count());
      });
      if (k > 0) sweeps.push_back(s);
    }
    plain = median(sweeps);
  }
  const Choice choice = choose_format(x, R, context);
  fmt::print("{:<11}{:>11} {:>9} {:>13} {:>12} {:>7}\n", "", "seconds", "speed-up", "build, sweeps", "bytes / nnz",
             "model");
  fmt::print("{:<11}{:>11.4f} {:>8.2f}x\n", "plain CSF", plain, 1.0);
  std::vector<std::string> lines;
  for (const FormatEstimate& estimate : rank_formats(x, R, context)) {
    if (!estimate.has_kernel) continue;
    const bool taken = estimate.format == choice.format;
    try {
      Tensor t;
      const FormatOptions options = options_for({estimate.format, {}, estimate.leaf_modes, estimate.value_code}, R);
      const double build_seconds = seconds([&] { t = build(x, estimate.format, options, context); });
      Workspace workspace;
      workspace.keep_products();
      std::vector<double> sweeps;
      for (int k = 0; k <= repeat; ++k) {
        const double s = seconds([&] {
          for (int m = 0; m < x.order(); ++m) {
            const auto at = static_cast<std::size_t>(m);
            FactorStays<T> stays(factors[at], (m + 1) % x.order());
            mttkrp<T>(t, std::span<const FactorMatrix<T>>(factors), m, out[at], workspace, context, {}, &stays);
            workspace.changed(m);  // as in CP-ALS
          }
        });
        if (k > 0) sweeps.push_back(s);
      }
      const double sweep = median(sweeps);
      const double bytes = static_cast<double>(t.bytes()) / static_cast<double>(x.nnz());
      fmt::print("{:<11}{:>11.4f} {:>8.2f}x {:>13.1f} {:>12.1f} {:>6.0f}%{}\n", estimate.format, sweep, plain / sweep,
                 build_seconds / sweep, bytes, 100 * estimate.seconds / sweep, taken ? "  <- auto" : "");
      lines.push_back(fmt::format(R"({{"format": "{}", "seconds": {}, "speed_up": {}, "build_seconds": {}, )"
                                  R"("bytes_per_nonzero": {}, "estimated_seconds": {}, "auto": {}}})",
                                  estimate.format, sweep, plain / sweep, build_seconds, bytes, estimate.seconds,
                                  taken));
    } catch (const Error& e) {
      fmt::print("{:<11} {}\n", estimate.format, e.what());
    }
    std::fflush(stdout);
  }
  if (json.empty()) return;
  std::string all;
  for (const std::string& line : lines) all += (all.empty() ? "" : ",\n  ") + line;
  std::ofstream(json) << fmt::format("{{\"plain_seconds\": {}, \"nnz\": {}, \"order\": {}, \"results\": [\n  {}\n]}}\n",
                                     plain, x.nnz(), x.order(), all);
}

CooTensor tensor_of(const std::string& what, Precision precision, const Context& context) {
  if (!what.starts_with("like:")) {
    ReadOptions options;
    options.precision = precision;
    return read(what, options, context);
  }
  const std::size_t colon = what.find(':', 5);
  if (colon == std::string::npos) throw usage_error("expected like:NAME:NONZEROS, e.g. like:nell2:5000000");
  const std::string name = what.substr(5, colon - 5);
  for (const Preset& preset : presets())
    if (preset.name == name) {
      GenerateOptions options = preset.options;
      options.nnz = std::strtoull(what.c_str() + colon + 1, nullptr, 10);
      options.precision = precision;
      return generate(options, context);
    }
  throw usage_error(fmt::format("there is no preset '{}'", name));
}

int run(int argc, char** argv) {
  Context context;
  if (argc > 2) context.threads = std::atoi(argv[2]);
  const bool f32 = argc > 3 && std::string_view(argv[3]) == "f32";
  const int rank = argc > 4 ? std::atoi(argv[4]) : 16;
  const int repeat = argc > 5 ? std::max(1, std::atoi(argv[5])) : 5;
  const std::string json = argc > 6 ? argv[6] : "";
  // Costs of this machine, measured for this run alone.
  const auto cache = std::filesystem::temp_directory_path() / fmt::format("polyad-bench-{}", getpid());
  context.cache = cache.string();
  const CooTensor x =
      tensor_of(argc > 1 ? argv[1] : "like:nell2:5000000", f32 ? Precision::f32 : Precision::f64, context);
  if (rank != 16 && rank != 32) throw usage_error("the plain program is compiled for ranks 16 and 32");
  if (x.index_width() != IndexWidth::u32 || x.order() < 2) throw usage_error("the plain program has 32-bit indices");
  fmt::print("order {}, {} nonzeros, {}, rank {}, {} threads; all modes, median of {}\n", x.order(), x.nnz(),
             f32 ? "f32" : "f64", rank, context.thread_count(), repeat);
  if (f32) {
    rank == 16 ? compare<float, 16>(x, context, repeat, json) : compare<float, 32>(x, context, repeat, json);
  } else {
    rank == 16 ? compare<double, 16>(x, context, repeat, json) : compare<double, 32>(x, context, repeat, json);
  }
  std::filesystem::remove_all(cache);
  return 0;
}

}  // namespace
}  // namespace polyad

int main(int argc, char** argv) {
  try {
    return polyad::run(argc, argv);
  } catch (const std::exception& e) {
    fmt::print(stderr, "mttkrp_bench: {}\n", e.what());
    return 1;
  }
}
