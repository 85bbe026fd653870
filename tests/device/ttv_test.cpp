// SPDX-License-Identifier: MIT
/// \file TTV of every device kernel of the registry against the oracle: every mode, both precisions, exactly; with less
/// memory than the tensor takes, shared by two devices, and through the C++ door.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <map>
#include <optional>
#include <polyad/polyad.hpp>
#include <set>

#include "backends/gpu/device.hpp"
#include "device/plain_device.hpp"
#include "device/whole_writes.hpp"
#include "matrix/cases.hpp"
#include "matrix/registered.hpp"
#include "oracle/kernel_oracle.hpp"
#include "unit/formats/example_a.hpp"
#include "unit/scratch.hpp"

namespace polyad {
namespace {

Context device_context(std::uint64_t memory = 0, std::string_view names = "opencl:0") {
  Context context;
  context.threads = 2;
  context.devices = open_devices(names, {memory, {}});
  return context;
}

/// Its compiled kernels are shared by the tests.
Context& shared_context() {
  static Context context = device_context();
  return context;
}

Context plain_context(const plain::Options& options = {}) {
  Context context;
  context.threads = 2;
  context.devices = {plain::make_device(options)};
  return context;
}

std::vector<KernelEntry> device_ttvs() {
  std::vector<KernelEntry> found;
  for (const KernelEntry& k : kernels())
    if (k.operation == "ttv" && k.backend == "gpu") found.push_back(k);
  return found;
}

std::vector<double> whole_numbers(std::uint64_t n, std::uint64_t seed) {
  cases::Dice dice(seed);
  std::vector<double> v(n);
  for (double& x : v) x = static_cast<double>(dice.below(7)) - 3;
  return v;
}

std::vector<double> uneven_numbers(std::uint64_t n) {
  cases::Dice dice(n);
  std::vector<double> v(n);
  for (double& x : v) x = dice.unit() - 0.3;
  return v;
}

struct Count {
  int runs = 0;
  std::set<std::string, std::less<>> kernels;
};

/// Whether y is what the oracle says, in the order of its modes.
bool is(const CooTensor& y, const std::map<std::vector<std::uint64_t>, double>& expected) {
  if (y.nnz() != expected.size()) return false;
  std::uint64_t k = 0;
  for (const auto& [at, value] : expected) {
    for (int m = 0; m < y.order(); ++m)
      if (y.index(m, k) != at[static_cast<std::size_t>(m)]) return false;
    if (y.value(k++) != value) return false;
  }
  return true;
}

/// All kernels on all modes of a tensor.
void run_all(const CooTensor& x, const Context& context, Count& count) {
  for (const KernelEntry& kernel : device_ttvs())
    for (int mode = 0; mode < x.order(); ++mode) {
      SCOPED_TRACE(fmt::format("{}, {}, mode {}", kernel.name, name_of(x.precision()), mode + 1));
      FormatOptions options;
      options.mode = mode;
      std::optional<Tensor> t;
      try {
        t = build(x, kernel.formats, options, context);
      } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::limit) << e.what();
        continue;
      }
      const std::vector<double> vector =
          whole_numbers(x.dims[static_cast<std::size_t>(mode)], static_cast<std::uint64_t>(mode));
      KernelChoice choice;
      const CooTensor y = ttv(*t, mode, vector, context, {}, &choice);
      EXPECT_EQ(choice.name, kernel.name);
      EXPECT_EQ(y.precision(), x.precision());
      EXPECT_TRUE(is(y, oracle::ttv(x, vector, mode)));
      ++count.runs;
      count.kernels.emplace(kernel.name);
      if (testing::Test::HasFailure()) return;
    }
}

cases::Case named(std::string_view name) {
  for (const cases::Case& c : cases::every())
    if (c.name == name) return c;
  throw usage_error("no such case");
}

class DeviceTtv : public testing::TestWithParam<std::size_t> {};

TEST_P(DeviceTtv, IsExact) {
  Count count;
  for (const cases::Case& c : cases::every()) {
    if (c.dims.size() != GetParam()) continue;
    SCOPED_TRACE(c.name);
    for (const Precision p : {Precision::f32, Precision::f64}) run_all(cases::make(c, p), shared_context(), count);
    if (HasFailure()) break;
  }
  fmt::print("order {}: {} TTVs on {}\n", GetParam(), count.runs, shared_context().devices[0]->facts().description);
  EXPECT_EQ(count.kernels.size(), device_ttvs().size());
  EXPECT_GE(count.runs, GetParam() == 3 ? 300 : static_cast<int>(10 * GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Orders, DeviceTtv, testing::Values(2, 3, 4, 5, 6),
                         [](const auto& one) { return fmt::format("order_{}", one.param); });

/// By hand: X times (1, 10, 100, 1000) along mode 3 writes the rows of the printed slices as decimal digits.
TEST(DeviceTtvRuns, ExampleA) {
  const std::vector<double> v = {1, 10, 100, 1000};
  const std::map<std::vector<std::uint64_t>, double> expected = {
      {{0, 0}, 13},   {{0, 1}, 90},  {{0, 2}, 370},  {{0, 3}, 8500}, {{0, 4}, 2},    {{2, 0}, 400}, {{2, 1}, 7000},
      {{2, 2}, 2005}, {{2, 3}, 610}, {{3, 0}, 8070}, {{3, 1}, 3},    {{3, 2}, 1200}, {{3, 4}, 5600}};
  for (const IndexWidth width : {IndexWidth::u32, IndexWidth::u64})
    for (const Precision p : {Precision::f32, Precision::f64})
      for (const KernelEntry& kernel : device_ttvs())
        EXPECT_TRUE(is(ttv(build(example_a(p, width), kernel.formats, {}, {}), 2, v, shared_context()), expected))
            << kernel.name;
}

/// Indices of 64 bits: their kernels are others.
TEST(DeviceTtvRuns, WideIndices) {
  CooTensor x = make_coo({3, std::uint64_t{1} << 33U, 4}, 4, Precision::f64, {});
  visit(x, [&]<class Index, class Value>(const CooView<Index, Value>& v) {
    for (std::uint64_t k = 0; k < 4; ++k) {
      v.indices[0][k] = static_cast<Index>(k % 3);
      v.indices[1][k] = static_cast<Index>(std::uint64_t{k} << 31U);
      v.indices[2][k] = static_cast<Index>(k);
      v.values[k] = static_cast<Value>(k + 1);
    }
  });
  ASSERT_EQ(bytes_of(width_for(x.dims)), 8U);
  int ran = 0;
  for (const int mode : {0, 2})
    for (const KernelEntry& kernel : device_ttvs()) {
      FormatOptions options;
      options.mode = mode;
      const std::vector<double> v = whole_numbers(x.dims[static_cast<std::size_t>(mode)], 3);
      try {
        EXPECT_TRUE(is(ttv(build(x, kernel.formats, options, {}), mode, v, shared_context()), oracle::ttv(x, v, mode)))
            << kernel.name << ", mode " << mode + 1;
        ++ran;
      } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::limit) << e.what();
        EXPECT_EQ(kernel.formats, "hocsr");
      }
    }
  EXPECT_EQ(ran, 10);
}

TEST(DeviceTtvRuns, TensorsLargerThanTheDevice) {
  Count count;
  for (const char* name : {"one giant slice", "one giant fibre", "power law", "order 4", "larger"}) {
    SCOPED_TRACE(name);
    for (const Precision p : {Precision::f32, Precision::f64}) {
      const CooTensor x = cases::make(named(name), p);
      const std::uint64_t longest = *std::ranges::max_element(x.dims);
      Context context = device_context(longest * bytes_of(p) + std::max<std::uint64_t>(40000, x.bytes() / 4));
      Timeline timeline;
      context.devices = timeline.watch(context.devices);
      run_all(x, context, count);
      EXPECT_EQ(timeline.conflicts(), std::vector<std::string>{});
      std::set<std::string> lanes;
      int copies = 0;
      for (const TimelineSpan& s : timeline.spans())
        if (s.label == "copy in") {
          lanes.insert(s.lane);
          ++copies;
        }
      EXPECT_GT(copies, 5 * x.order()) << "everything fitted";
      EXPECT_GE(lanes.size(), std::string_view(name) == "larger" ? 3U : 1U);
    }
  }
  fmt::print("{} TTVs in parts\n", count.runs);
  EXPECT_GE(count.runs, 150);
}

/// A file larger than the memory of the host and of the device: windows of whole slices where the file is sorted,
/// pieces that are added up where it is not, or where a slice is larger than a window.
TEST(DeviceTtvRuns, TensorsStayInTheirFile) {
  const test::Scratch folder;
  const cases::Case large{"large", {40, 3, 50, 60}, 60000, nullptr};
  int ran = 0;
  for (const Precision p : {Precision::f32, Precision::f64})
    for (const std::vector<int>& order : {std::vector<int>{0, 1, 2, 3}, {1, 0, 3, 2}, {3, 2, 1, 0}, {}}) {
      CooTensor x = cases::make(large, p);
      if (!order.empty()) sort_nonzeros(x, order);
      x.duplicates_merged = true;
      write(x, folder.path("x.ptn"));
      Context context = device_context(100000);
      context.threads = 1;
      context.memory = std::make_shared<MemoryBudget>(std::uint64_t{3} << 20U);  // windows of 8,000 nonzeros
      ReadOptions options;
      options.precision = p;
      const Tensor t = stream_of(read(folder.path("x.ptn"), options, context), context);
      ASSERT_LT(t.bytes(), x.bytes() / 2) << "it is in the memory";
      for (int mode = 0; mode < x.order(); ++mode) {
        SCOPED_TRACE(fmt::format("{}, sorted by {}, mode {}", name_of(p), fmt::join(order, " "), mode));
        const std::vector<double> vector = whole_numbers(x.dims[static_cast<std::size_t>(mode)], 3);
        KernelChoice choice;
        EXPECT_TRUE(is(ttv(t, mode, vector, context, {}, &choice), oracle::ttv(x, vector, mode)));
        EXPECT_EQ(choice.name, "ttv/gpu/stream");
        const PipelineReport report = ttv_pipeline(t, mode, vector, context);
        EXPECT_GE(report.collections, 15U);
        EXPECT_GT(report.measured_ts, 0);
        EXPECT_GT(report.measured_tp, 0);
        ++ran;
      }
    }
  EXPECT_EQ(ran, 32);
}

/// Windows of a file are cut where neither the memory nor the threads matter, whole slices or not.
TEST(DeviceTtvRuns, StreamsGiveTheSameBits) {
  const test::Scratch folder;
  int ran = 0;
  for (const std::vector<int>& order : {std::vector<int>{0, 1, 2, 3}, {3, 2, 1, 0}, {}}) {
    CooTensor x = cases::make({"large", {40, 3, 50, 60}, 150000, nullptr}, Precision::f64);
    cases::Dice dice(5);
    for (std::uint64_t k = 0; k < x.nnz(); ++k) std::get<Buffer<double>>(x.values)[k] *= 0.1 + dice.unit();
    if (!order.empty()) sort_nonzeros(x, order);
    x.duplicates_merged = true;
    write(x, folder.path("x.ptn"));
    Context roomy = shared_context();
    roomy.deterministic = true;
    Context narrow = device_context(8 << 20U);
    narrow.deterministic = true;
    narrow.threads = 3;
    narrow.memory = std::make_shared<MemoryBudget>(std::uint64_t{16} << 20U);
    const Tensor in_memory = build(x, "stream", {}, roomy);
    const Tensor in_file = stream_of(read(folder.path("x.ptn"), {}, roomy), roomy);
    const Tensor in_small_windows = stream_of(read(folder.path("x.ptn"), {}, narrow), narrow);
    ASSERT_LT(in_small_windows.bytes(), in_file.bytes());
    for (int mode = 0; mode < x.order(); ++mode) {
      SCOPED_TRACE(fmt::format("sorted by {}, mode {}", fmt::join(order, " "), mode));
      const std::vector<double> v = uneven_numbers(x.dims[static_cast<std::size_t>(mode)]);
      KernelChoice choice;
      const CooTensor first = ttv(in_memory, mode, v, roomy, {}, &choice);
      EXPECT_EQ(choice.name, "ttv/gpu/stream");
      EXPECT_TRUE(same_nonzeros(first, ttv(in_memory, mode, v, roomy)));
      EXPECT_TRUE(same_nonzeros(first, ttv(in_file, mode, v, roomy)));
      EXPECT_TRUE(same_nonzeros(first, ttv(in_small_windows, mode, v, narrow)));
      ++ran;
    }
  }
  EXPECT_EQ(ran, 12);
}

TEST(DeviceTtvRuns, TwoDevicesShareATensor) {
  const char* devices = std::getenv("POCL_DEVICES");
  ASSERT_TRUE(devices != nullptr && std::string_view(devices) == "pthread pthread") << "set by tests/run";
  Count count;
  Context context = device_context(0, "opencl:0,opencl:1");
  ASSERT_EQ(context.devices.size(), 2U);
  for (const char* name : {"one nonzero", "one giant fibre", "order 4", "larger"}) {
    SCOPED_TRACE(name);
    Timeline timeline;
    Context watched = context;
    watched.devices = timeline.watch(context.devices);
    run_all(cases::make(named(name), Precision::f32), watched, count);
    std::set<std::string> used;
    for (const TimelineSpan& s : timeline.spans())
      if (s.label.starts_with("ttv_")) used.insert(s.lane.substr(0, s.lane.find(' ')));
    EXPECT_EQ(used.size(), std::string_view(name) == "one nonzero" ? 1U : 2U);
  }
  EXPECT_GE(count.runs, 60);
}

TEST(DeviceTtvRuns, DeterministicRunsGiveTheSameBits) {
  int ran = 0;
  for (const char* name : {"one giant fibre", "power law", "order 4"}) {
    CooTensor x = cases::make(named(name), Precision::f64);
    cases::Dice dice(5);
    for (std::uint64_t k = 0; k < x.nnz(); ++k) std::get<Buffer<double>>(x.values)[k] *= 0.1 + dice.unit();
    Context one = shared_context();
    one.deterministic = true;
    Context two = device_context(0, "opencl:0,opencl:1");
    two.deterministic = true;
    for (const KernelEntry& kernel : device_ttvs())
      for (int mode = 0; kernel.deterministic && mode < x.order(); ++mode) {
        FormatOptions options;
        options.mode = mode;
        const Tensor t = build(x, kernel.formats, options, one);
        const std::vector<double> v = uneven_numbers(x.dims[static_cast<std::size_t>(mode)]);
        const CooTensor first = ttv(t, mode, v, one);
        EXPECT_TRUE(same_nonzeros(first, ttv(t, mode, v, one))) << kernel.name << ", " << name;
        EXPECT_TRUE(same_nonzeros(first, ttv(t, mode, v, two))) << kernel.name << ", " << name << ", two devices";
        ++ran;
      }
  }
  EXPECT_GE(ran, 45);
}

TEST(DeviceTtvRuns, SaysWhatDoesNotFit) {
  const CooTensor x = cases::make(named("order 3"), Precision::f64);
  const Tensor t = build(x, "cfb");
  const std::vector<double> v = whole_numbers(x.dims[0], 1);
  for (const std::uint64_t memory : {std::uint64_t{128}, std::uint64_t{700}}) {
    try {
      static_cast<void>(ttv(t, 0, v, device_context(memory)));
      FAIL() << "no error with " << memory;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::limit);
      EXPECT_NE(std::string(e.what()).find("has no room for"), std::string::npos) << e.what();
    }
  }
  EXPECT_THROW(static_cast<void>(ttv(build(x, "coo"), 0, v, shared_context())), Error);
}

TEST(PlainDoorTtv, EveryKernelIsExact) {
#ifdef POLYAD_SANITIZED  // a thread per work-item takes long there
  const std::vector<const char*> names = {"empty", "matrix", "duplicates", "order 4"};
  const std::vector<const char*> in_parts = {"power law"};
  constexpr int least = 50;
#else
  const std::vector<const char*> names = {"empty",      "one nonzero", "matrix", "one giant fibre",
                                          "duplicates", "order 4",     "order 6"};
  const std::vector<const char*> in_parts = {"one giant fibre", "power law"};
  constexpr int least = 100;
#endif
  Count count;
  static_cast<void>(plain::launched());
  for (const char* name : names) {
    SCOPED_TRACE(name);
    run_all(cases::make(named(name), Precision::f32), plain_context(), count);
    if (HasFailure()) return;
  }
  plain::Options small;
  small.memory_bytes = 80000;
  small.largest_group = 16;
  for (const char* name : in_parts) run_all(cases::make(named(name), Precision::f64), plain_context(small), count);
  fmt::print("{} TTVs of {} kernels through the C++ door\n", count.runs, count.kernels.size());
  EXPECT_EQ(plain::launched(), plain::kernels_of("ttv_"));
  EXPECT_EQ(count.kernels.size(), device_ttvs().size());
  EXPECT_GE(count.runs, least);
}

/// For test_oclgrind.py: runs that go over work-items, chunks and parts.
TEST(Watched, EveryTtv) {
  Context context;
  context.threads = 1;
  context.devices = open_devices("opencl:0");
  Count count;
  run_all(cases::make(named("order 3"), Precision::f32), context, count);
  run_all(cases::make(named("one giant fibre"), Precision::f64), context, count);
  run_all(cases::make(named("matrix"), Precision::f32), context, count);
  const CooTensor x = cases::make(named("power law"), Precision::f32);
  context.devices = open_devices("opencl:0", {8000 + 100000, {}});
  run_all(x, context, count);
  fmt::print("{} TTVs of {} kernels on {}\n", count.runs, count.kernels.size(),
             context.devices[0]->facts().description);
  EXPECT_EQ(count.kernels.size(), device_ttvs().size());
  EXPECT_GE(count.runs, 50);
}

/// Likewise, of what was never written: in one part and in several.
TEST(Watched, UninitialisedTtv) {
  Count count;
  for (const std::uint64_t memory : {std::uint64_t{0}, std::uint64_t{20000}}) {
    Context context;
    context.threads = 1;
    context.devices = {std::make_shared<test::WholeWrites>(open_devices("opencl:0", {memory, {}}).at(0))};
    run_all(cases::make({"small", {9, 8, 7}, 300, nullptr}, Precision::f32), context, count);
    if (memory == 0) run_all(cases::make({"small", {30, 20}, 200, nullptr}, Precision::f64), context, count);
  }
  fmt::print("{} TTVs of {} kernels on {}\n", count.runs, count.kernels.size(),
             open_devices("opencl:0")[0]->facts().description);
  EXPECT_EQ(count.kernels.size(), device_ttvs().size());
  EXPECT_GE(count.runs, 48);
}

TEST(DeviceTtvRuns, PipelineReportsBothWays) {
  const CooTensor x = cases::make(named("larger"), Precision::f32);
  for (const KernelEntry& kernel : device_ttvs()) {
    SCOPED_TRACE(std::string(kernel.name));
    const std::vector<double> v = whole_numbers(x.dims[0], 1);
    const PipelineReport r =
        ttv_pipeline(build(x, kernel.formats), 0, v, device_context(x.dims[0] * 4 + x.bytes() / 2));
    EXPECT_EQ(r.kernel.name, kernel.name);
    EXPECT_GE(r.queues, 3);
    EXPECT_LE(r.queues, 5);
    EXPECT_GE(r.collections, static_cast<std::uint64_t>(r.queues));
    EXPECT_GT(r.slot_bytes, 0U);
    EXPECT_GT(r.measured_ts, 0);
    EXPECT_GT(r.measured_tp, 0);
    EXPECT_GE(r.model_ts, r.model_tp);
    EXPECT_GT(r.steps_tp, 0);
  }
}

}  // namespace
}  // namespace polyad
