// SPDX-License-Identifier: MIT
/// \file What the tests of device kernels share: a tensor in every format that a kernel of the registry for devices
/// takes, run and compared with the oracle.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <polyad/polyad.hpp>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "matrix/cases.hpp"
#include "matrix/factors.hpp"
#include "matrix/registered.hpp"
#include "oracle/kernel_oracle.hpp"

namespace polyad::device_cases {

/// What was run.
struct Count {
  int runs = 0;
  std::set<std::string, std::less<>> kernels;
};

/// \param memory most to use on each device; 0: what it has
inline Context device_context(std::uint64_t memory = 0, std::string_view names = "opencl:0") {
  DeviceOptions options;
  options.memory = memory;
  Context context;
  context.threads = 2;
  context.devices = open_devices(names, options);
  return context;
}

/// Devices stay open: their compiled kernels are shared by the tests.
inline Context& shared_context() {
  static Context context = device_context();
  return context;
}

/// The formats of a device kernel.
inline std::vector<std::string_view> formats_of(const KernelEntry& kernel) {
  std::vector<std::string_view> all;
  for (const FormatEntry& f : formats())
    if (fmt::format(",{},", kernel.formats).find(fmt::format(",{},", f.name)) != std::string::npos)
      all.push_back(f.name);
  return all;
}

inline std::vector<KernelEntry> device_mttkrps() {
  std::vector<KernelEntry> all;
  for (const KernelEntry& k : kernels())
    if (k.operation == "mttkrp" && k.backend == "gpu") all.push_back(k);
  return all;
}

/// Calls f(tensor, mode, kernel) for every device kernel, format and mode of it that can.
inline void for_each_run(const CooTensor& x, std::uint64_t rank, const Context& context,
                         const std::function<void(Tensor&, int, const KernelEntry&)>& f) {
  std::set<std::string_view> names;
  for (const KernelEntry& k : device_mttkrps())
    for (const std::string_view format : formats_of(k)) names.insert(format);
  for (const std::string_view format : names) {
    std::optional<Tensor> t = registered::built(x, format, context);
    if (!t) continue;
    for (int mode = 0; mode < x.order(); ++mode)
      for (const KernelEntry& k : device_mttkrps()) {
        if (context.deterministic && !k.deterministic) continue;
        try {
          static_cast<void>(mttkrp_choice(*t, mode, rank, context, k.name));
        } catch (const Error& e) {
          EXPECT_EQ(e.kind(), ErrorKind::usage);
          continue;
        }
        f(*t, mode, k);
      }
  }
}

/// Runs everything on a tensor of whole numbers and expects the oracle's numbers, exactly.
template <class T>
void run_all(const CooTensor& x, std::uint64_t rank, const Context& context, Count& count) {
  const std::vector<oracle::Dense> dense = cases::whole_number_factors(x.dims, rank);
  const std::vector<FactorMatrix<T>> factors = cases::as_factors<T>(dense);
  std::vector<oracle::Dense> want;
  for (int mode = 0; mode < x.order(); ++mode) want.push_back(oracle::mttkrp(x, dense, mode));
  Workspace workspace;
  for_each_run(x, rank, context, [&](Tensor& t, int mode, const KernelEntry& kernel) {
    const oracle::Dense& w = want[static_cast<std::size_t>(mode)];
    FactorMatrix<T> out(Context{}, w.rows, w.cols);
    std::fill_n(out.data(), out.rows() * out.stride(), T{77});
    const KernelChoice ran =
        mttkrp<T>(t, std::span<const FactorMatrix<T>>(factors), mode, out, workspace, context, kernel.name);
    EXPECT_EQ(ran.name, kernel.name);
    std::uint64_t wrong = 0;
    for (std::uint64_t i = 0; i < w.rows; ++i)
      for (std::uint64_t r = 0; r < out.stride(); ++r)
        wrong += static_cast<double>(out.row(i)[r]) != (r < w.cols ? w(i, r) : 0);
    EXPECT_EQ(wrong, 0U) << kernel.name << " on " << t.format().name << ", mode " << mode + 1 << ", rank " << rank
                         << (sizeof(T) == 4 ? ", f32" : ", f64") << (context.deterministic ? ", deterministic" : "");
    ++count.runs;
    count.kernels.emplace(kernel.name);
  });
}

/// The case of a name.
inline cases::Case named(std::string_view name) {
  for (const cases::Case& c : cases::every())
    if (c.name == name) return c;
  ADD_FAILURE() << "no case " << name;
  return {};
}

/// A tensor whose values are no whole numbers: the order of additions shows.
inline CooTensor uneven(std::string_view name) {
  CooTensor x = cases::make(named(name), Precision::f64);
  cases::Dice dice(5);
  for (std::uint64_t k = 0; k < x.nnz(); ++k) std::get<Buffer<double>>(x.values)[k] *= 0.1 + dice.unit();
  return x;
}

}  // namespace polyad::device_cases
