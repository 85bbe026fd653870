// SPDX-License-Identifier: MIT
/// \file CP-ALS on devices: the fits of the processor, wherever the rows are solved.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "backends/gpu/device.hpp"
#include "device/device_cases.hpp"
#include "device/plain_device.hpp"
#include "kernels/gpu/dense.hpp"
#include "solvers/cp_als/row_pass.hpp"

namespace polyad {
namespace {

using device_cases::device_context;
using device_cases::shared_context;

Context processor() {
  Context context;
  context.threads = 2;
  return context;
}

CpAlsOptions options_of(std::uint64_t rank, std::string_view dense, std::uint64_t iterations = 10) {
  CpAlsOptions o;
  o.rank = rank;
  o.iterations = iterations;
  o.tolerance = 0;
  o.dense = dense;
  return o;
}

/// Values that are no whole numbers, without duplicates.
CooTensor tensor_of(std::string_view name, Precision precision) {
  CooTensor x = cases::make(device_cases::named(name), precision);
  merge_duplicates(x);
  cases::Dice dice(11);
  std::visit(
      [&](auto& values) {
        for (auto& v : values) v = static_cast<std::decay_t<decltype(v)>>(0.1 + dice.unit());
      },
      x.values);
  return x;
}

double bound(Precision precision) { return precision == Precision::f32 ? 1e-5 : 1e-10; }

std::set<std::string_view> device_formats() {
  std::set<std::string_view> names;
  for (const KernelEntry& k : device_cases::device_mttkrps())
    for (const std::string_view format : device_cases::formats_of(k)) names.insert(format);
  return names;
}

/// Runs on the processor and on devices, where each solves the rows; expects equal fits after every iteration.
int expect_equal_fits(const CooTensor& x, std::string_view format, CpAlsOptions o, const Context& context,
                      const std::vector<std::string>& ways) {
  std::optional<Tensor> t = registered::built(x, format, processor());
  if (!t) return 0;
  o.dense = "auto";
  const CpAlsResult want = cp_als(*t, o, processor());
  EXPECT_EQ(std::ranges::count(want.dense, "device"), 0);
  int runs = 0;
  for (const std::string& way : ways) {
    o.dense = way;
    const CpAlsResult got = cp_als(*t, o, context);
    if (way != "auto")
      for (std::size_t m = 0; m < got.dense.size(); ++m) {
        const bool host = std::ranges::count(o.nonnegative, static_cast<int>(m)) > 0;
        const bool fixed = std::ranges::count(o.fixed, static_cast<int>(m)) > 0;
        EXPECT_EQ(got.dense[m], fixed ? "fixed" : host ? "host" : way);
      }
    EXPECT_EQ(got.history.size(), want.history.size());
    double worst = 0;
    for (std::size_t i = 0; i < std::min(got.history.size(), want.history.size()); ++i)
      worst = std::max(worst, std::abs(got.history[i].fit - want.history[i].fit));
    EXPECT_LE(worst, bound(x.precision())) << format << ", rows on " << way << ", rank " << o.rank;
    ++runs;
  }
  return runs;
}

TEST(DeviceCpAls, EqualFitsInEveryFormat) {
  int runs = 0;
  for (const auto& [name, p] : {std::pair{"order 3", Precision::f32},
                                {"order 3", Precision::f64},
                                {"order 4", Precision::f32},
                                {"order 5", Precision::f64}})
    for (const std::string_view format : device_formats()) {
      SCOPED_TRACE(name);
      runs += expect_equal_fits(tensor_of(name, p), format, options_of(5, ""), shared_context(), {"device", "host"});
    }
  fmt::print("{} decompositions on a device\n", runs);
  EXPECT_GE(runs, 60);
}

TEST(DeviceCpAls, EqualFitsAtEveryRank) {
  for (const std::uint64_t rank : {1, 5, 16, 40})
    for (const Precision p : {Precision::f32, Precision::f64})
      EXPECT_EQ(expect_equal_fits(tensor_of("power law", p), "b-csf", options_of(rank, ""), shared_context(),
                                  {"device", "host", "auto"}),
                3);
}

TEST(DeviceCpAls, StartsAndConstraints) {
  const CooTensor x = tensor_of("order 4", Precision::f64);
  CpAlsOptions o = options_of(4, "", 6);
  o.restarts = 3;
  expect_equal_fits(x, "f-coo", o, shared_context(), {"device", "host"});
  o.restarts = 1;
  o.start = CpStart::rsvd;
  expect_equal_fits(x, "f-coo", o, shared_context(), {"device", "host"});
  o.start = CpStart::random;
  o.l2 = 0.1;
  expect_equal_fits(x, "f-coo", o, shared_context(), {"device", "host"});
  o.l2 = 0;
  o.nonnegative = {1};
  expect_equal_fits(x, "f-coo", o, shared_context(), {"device", "host"});
  o.nonnegative = {0, 1, 2, 3};
  expect_equal_fits(x, "f-coo", o, shared_context(), {"device", "host"});
  o.nonnegative = {};
  const CpModel first = cp_als(x, options_of(4, "auto", 3), processor()).model;
  o.start = CpStart::model;
  o.initial = &first;
  o.fixed = {0, 2};
  expect_equal_fits(x, "f-coo", o, shared_context(), {"device", "host"});
}

TEST(DeviceCpAls, TheModelIsThatOfTheFit) {
  const CooTensor x = tensor_of("order 3", Precision::f64);
  Tensor t = build(x, "b-csf");
  CpAlsOptions o = options_of(5, "device", 4);
  o.restarts = 2;  // the best comes back from the host
  const CpAlsResult r = cp_als(t, o, shared_context());
  const double squared = std::pow(norm(t), 2) + std::pow(norm(r.model), 2) - 2 * innerprod(t, r.model);
  EXPECT_NEAR(1 - std::sqrt(squared) / norm(t), r.fit, 1e-10);
}

TEST(DeviceCpAls, MeasuresAndKeepsOneWay) {
  const CooTensor x = tensor_of("order 3", Precision::f32);
  Tensor t = build(x, "hb-csf");
  Context context = device_context();
  Timeline timeline;
  context.devices = timeline.watch(context.devices);
  const CpAlsResult r = cp_als(t, options_of(8, "auto", 12), context);
  const std::vector<TimelineSpan> spans = timeline.spans();
  const auto solved = std::ranges::count(spans, "solve_rows", &TimelineSpan::label);
  const auto host = std::ranges::count(spans, "output out", &TimelineSpan::label);
  EXPECT_EQ(solved + host, 36);
  std::int64_t expected = 0;  // the first, the third, and all others if it was chosen
  for (const std::string_view place : r.dense) expected += place == "device" ? 11 : 2;
  EXPECT_EQ(solved, expected);
  EXPECT_EQ(timeline.conflicts(), std::vector<std::string>{});
}

TEST(DeviceCpAls, FactorsStayOnTheDevice) {
  const CooTensor x = tensor_of("order 4", Precision::f32);
  Tensor t = build(x, "b-csf");
  Context context = device_context();
  Timeline timeline;
  context.devices = timeline.watch(context.devices);
  (void)cp_als(t, options_of(8, "device", 10), context);
  const std::vector<TimelineSpan> spans = timeline.spans();
  const auto count = [&](std::string_view label) { return std::ranges::count(spans, label, &TimelineSpan::label); };
  EXPECT_EQ(count("solve_rows"), 40);
  EXPECT_EQ(count("factor in"), 3);   // of the start; that of the first mode is not read
  EXPECT_EQ(count("factor out"), 4);  // the model
  EXPECT_EQ(count("output out"), 0);
}

TEST(DeviceCpAls, SameBitsWhereTheyArePromised) {
  const CooTensor x = tensor_of("power law", Precision::f32);
  Context context = shared_context();
  context.deterministic = true;
  Tensor t = build(x, "hb-csf", {}, context);
  for (const char* way : {"auto", "device"}) {
    const CpAlsResult first = cp_als(t, options_of(7, way), context);
    const CpAlsResult again = cp_als(t, options_of(7, way), context);
    EXPECT_EQ(first.fit, again.fit);
    for (std::size_t m = 0; m < x.dims.size(); ++m)
      EXPECT_EQ(first.model.factors[m].values, again.model.factors[m].values) << way;
    // PoCL is no GPU: what is not measured is on the host.
    if (std::string_view(way) == "auto" && !context.devices[0]->facts().is_gpu) {
      EXPECT_EQ(first.dense, std::vector<std::string_view>(x.dims.size(), "host"));
    }
  }
}

TEST(DeviceCpAls, ResumesWhereItStopped) {
  const CooTensor x = tensor_of("order 3", Precision::f64);
  Context context = shared_context();
  context.deterministic = true;
  Tensor t = build(x, "f-coo", {}, context);
  const std::string file = testing::TempDir() + "polyad-device-checkpoint";
  for (const char* way : {"device", "host", "auto"}) {
    for (const char* tail : {"", ".previous"}) std::filesystem::remove(file + tail);
    const CpAlsResult whole = cp_als(t, options_of(5, way, 8), context);
    CpAlsOptions o = options_of(5, way, 5);
    o.checkpoint = file;
    o.every = 2;
    (void)cp_als(t, o, context);
    o.iterations = 8;
    o.resume = true;
    const CpAlsResult resumed = cp_als(t, o, context);
    EXPECT_EQ(resumed.resumed_at, 5U);
    EXPECT_EQ(resumed.fit, whole.fit) << way;
    // What began on a device goes on without one.
    o.iterations = 10;
    o.dense = "auto";
    const CpAlsResult moved = cp_als(t, o, processor());
    EXPECT_EQ(moved.resumed_at, 8U);
    EXPECT_GE(moved.fit, whole.fit - 1e-10);
  }
}

TEST(DeviceCpAls, StopsBetweenModes) {
  const CooTensor x = tensor_of("order 3", Precision::f64);
  Tensor t = build(x, "f-coo");
  Context context = shared_context();
  int asked = 0;
  context.cancelled = [&] { return ++asked > 6; };
  const CpAlsResult r = cp_als(t, options_of(5, "device"), context);
  EXPECT_EQ(r.stop, CpStop::cancelled);
  const double squared = std::pow(norm(t), 2) + std::pow(norm(r.model), 2) - 2 * innerprod(t, r.model);
  EXPECT_NEAR(1 - std::sqrt(squared) / norm(t), r.fit, 1e-10);
}

TEST(DeviceCpAls, TensorsLargerThanTheDevice) {
  const CooTensor x = tensor_of("larger", Precision::f32);
  std::uint64_t rows = 0;
  for (const std::uint64_t d : x.dims) rows += 2 * d;
  const Context context = device_context(rows * 16 * sizeof(float) + x.bytes() / 2 + 300000);
  EXPECT_EQ(expect_equal_fits(x, "b-csf", options_of(10, ""), context, {"device", "host", "auto"}), 3);
  EXPECT_EQ(expect_equal_fits(x, "coo", options_of(10, ""), context, {"device"}), 1);
}

TEST(DeviceCpAls, SolvesOnTheHostWhereTheDeviceHasNoRoom) {
  const CooTensor x = tensor_of("order 3", Precision::f64);
  Tensor t = build(x, "coo");
  // W alone is 256 * 256 numbers of 8 bytes; the factors are small.
  std::uint64_t rows = *std::ranges::max_element(x.dims);
  for (const std::uint64_t d : x.dims) rows += d;
  const Context context = device_context(rows * 256 * sizeof(double) + 200000);
  const CpAlsResult r = cp_als(t, options_of(256, "auto", 2), context);
  EXPECT_EQ(r.dense, std::vector<std::string_view>(3, "host"));
  EXPECT_THROW((void)cp_als(t, options_of(256, "device", 2), context), Error);
}

TEST(DeviceCpAls, TwoDevices) {
  const char* devices = std::getenv("POCL_DEVICES");
  ASSERT_TRUE(devices != nullptr && std::string_view(devices) == "pthread pthread") << "set by tests/run";
  const Context context = device_context(0, "opencl:0,opencl:1");
  for (const char* format : {"coo", "b-csf", "hb-csf", "f-coo"})
    EXPECT_EQ(
        expect_equal_fits(tensor_of("power law", Precision::f64), format, options_of(6, ""), context, {"host", "auto"}),
        2);
  Tensor t = build(tensor_of("order 3", Precision::f64), "coo");
  EXPECT_THROW((void)cp_als(t, options_of(3, "device"), context), Error);
  EXPECT_THROW((void)cp_als(t, options_of(3, "device"), processor()), Error);
  EXPECT_THROW((void)cp_als(t, options_of(3, "gpu"), shared_context()), Error);
}

TEST(DeviceCpAls, AutoTakesAFormatOfTheDevice) {
  for (const char* name : {"matrix", "order 3", "order 4"})
    for (const bool deterministic : {false, true}) {
      Context context = shared_context();
      context.deterministic = deterministic;
      const CpAlsResult r = cp_als(tensor_of(name, Precision::f32), options_of(4, "auto", 3), context);
      EXPECT_EQ(r.format.format, "hb-csf") << r.format.why;
      EXPECT_EQ(r.history.size(), 3U);
    }
  const CooTensor x = tensor_of("larger", Precision::f32);
  EXPECT_EQ(choose_format(x, 8, shared_context(), 1.0).format, "coo");
  EXPECT_NE(choose_format(x, 8, device_context(400000)).why.find("in parts"), std::string::npos);
  const Choice tuned = tune_format(x, 8, shared_context());
  EXPECT_TRUE(device_formats().contains(tuned.format)) << tuned.format;
}

/// Solves rows of the middle mode on a device, a third of them zero, and compares with numbers in f64.
template <class T>
void check_dense_rows(const Context& context, std::uint64_t length, std::uint64_t rank) {
  SCOPED_TRACE(fmt::format("{} rows, rank {}, {} bytes", length, rank, sizeof(T)));
  const cases::Case rows{"rows", {3, length, 2}, length - length / 3, [](cases::Dice&, std::uint64_t k, auto& at) {
                           at = {k % 3, k + k / 2, k % 2};
                         }};
  Tensor t = build(cases::make(rows, sizeof(T) == 4 ? Precision::f32 : Precision::f64), "coo", {}, context);
  const std::vector<FactorMatrix<T>> factors = random_factors<T>(rows.dims, rank, context);
  Workspace workspace;
  workspace.keep_products();
  gpu::DenseRows<T> dense(workspace, context, rows.dims, 1, rank);
  ASSERT_TRUE(dense.reserve());
  FactorMatrix<T> v(context, length, rank);
  {
    const gpu::OutputStays stays(workspace, context);
    mttkrp<T>(t, std::span<const FactorMatrix<T>>(factors), 1, v, workspace, context);
  }
  dense.read_output(v);
  cp_als_detail::Small w(rank);
  cases::Dice dice(3);
  for (std::uint64_t r = 0; r < rank; ++r)
    for (std::uint64_t s = 0; s < rank; ++s) w(r, s) = dice.unit() - (r == s ? 0.0 : 0.4);
  const gpu::DenseSums sums = dense.solve(w.values, w.columns);
  FactorMatrix<T> a(context, length, rank);
  dense.read_factor(a);
  const double unit = std::numeric_limits<T>::epsilon();
  std::uint64_t zero_rows = 0;
  std::uint64_t wrong = 0;
  std::vector<long double> gram(rank * rank);  // better than what is compared with it
  std::vector<double> size(rank * rank);       // the sum of magnitudes: what rounding is measured by
  std::vector<long double> inner(rank);
  std::vector<double> inner_size(rank);
  for (std::uint64_t i = 0; i < length; ++i) {
    bool zero = true;
    for (std::uint64_t s = 0; s < a.stride(); ++s) {
      double want = 0;
      double magnitude = 0;
      for (std::uint64_t r = 0; r < rank && s < rank; ++r) {
        want += static_cast<double>(v(i, r)) * w(r, s);
        magnitude += std::abs(static_cast<double>(v(i, r)) * w(r, s));
      }
      const auto got = static_cast<double>(a.row(i)[s]);
      wrong += std::abs(got - want) > static_cast<double>(rank + 2) * unit * magnitude;
      zero = zero && got == 0;
    }
    zero_rows += zero;
    for (std::uint64_t r = 0; r < rank; ++r) {
      const double both = static_cast<double>(v(i, r)) * static_cast<double>(a(i, r));
      inner[r] += both;
      inner_size[r] += std::abs(both);
      for (std::uint64_t s = 0; s < rank; ++s) {
        const double product = static_cast<double>(a(i, r)) * static_cast<double>(a(i, s));
        gram[r * rank + s] += product;
        size[r * rank + s] += std::abs(product);
      }
    }
  }
  EXPECT_EQ(wrong, 0U);
  EXPECT_EQ(zero_rows, length / 3);
  // A block of rows is added up in T, blocks with what was lost: the error does not grow with the length.
  for (std::uint64_t r = 0; r < rank; ++r) {
    EXPECT_NEAR(sums.inner[r], static_cast<double>(inner[r]), 32 * unit * inner_size[r]);
    for (std::uint64_t s = 0; s < rank; ++s)
      ASSERT_NEAR(sums.gram[r * rank + s], static_cast<double>(gram[r * rank + s]), 32 * unit * size[r * rank + s])
          << r << ", " << s;
  }
  std::vector<double> scale(rank);
  for (std::uint64_t r = 0; r < rank; ++r) scale[r] = static_cast<double>(r % 4) / 2;
  dense.scale(scale);
  FactorMatrix<T> scaled(context, length, rank);
  dense.read_factor(scaled);
  std::uint64_t other = 0;
  for (std::uint64_t i = 0; i < length; ++i)
    for (std::uint64_t r = 0; r < rank; ++r) other += scaled(i, r) != a(i, r) * static_cast<T>(scale[r]);
  EXPECT_EQ(other, 0U);
}

TEST(DeviceRows, AreSolved) {
  for (const std::uint64_t rank : {1, 5, 16, 40, 100}) {
    check_dense_rows<float>(shared_context(), 3001, rank);
    check_dense_rows<double>(shared_context(), 3001, rank);
  }
  check_dense_rows<float>(shared_context(), 300000, 5);  // chunks of many blocks
  check_dense_rows<float>(shared_context(), 3, 300);
}

TEST(PlainDoorRows, AreSolved) {
  static_cast<void>(plain::launched());
  for (const std::uint32_t group : {1, 16}) {
    plain::Options options;
    options.largest_group = group;
    Context context = processor();
    context.devices = {plain::make_device(options)};
    for (const std::uint64_t rank : {1, 5, 17}) check_dense_rows<float>(context, 301, rank);
    check_dense_rows<double>(context, group == 1 ? 301 : 5003, 3);
  }
  const std::set<std::string> ran = plain::launched();
  for (const std::string& kernel : plain::kernels_of("solve_rows")) EXPECT_TRUE(ran.contains(kernel)) << kernel;
}

TEST(PlainDoorRows, CpAls) {
  Context context = processor();
  context.devices = {plain::make_device()};
  EXPECT_EQ(expect_equal_fits(tensor_of("order 3", Precision::f64), "f-coo", options_of(3, "", 3), context,
                              {"device", "auto"}),
            2);
}

}  // namespace
}  // namespace polyad
