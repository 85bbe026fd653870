// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <polyad/polyad.hpp>

#include "../scratch.hpp"
#include "core/estimate.hpp"

namespace polyad {
namespace {

bool registered(std::string_view name) { return std::ranges::count(formats(), name, &FormatEntry::name) == 1; }

CooTensor with_fibres(const std::vector<std::uint64_t>& dims, std::uint64_t nnz) {
  GenerateOptions options;
  options.dims = dims;
  options.nnz = nnz;
  return generate(options);
}

CooTensor like_nell2(std::uint64_t nnz) {
  GenerateOptions options = std::ranges::find(presets(), "nell2", &Preset::name)->options;
  options.nnz = nnz;
  return generate(options);
}

TEST(Planner, RanksAllFormatsAndSaysWhy) {
  const CooTensor x = with_fibres({200, 300, 400}, 120000);
  const std::vector<FormatEstimate> ranking = rank_formats(x, 16);
  ASSERT_EQ(ranking.size(), formats().size());
  for (std::size_t k = 0; k < ranking.size(); ++k) {
    const FormatEstimate& e = ranking[k];
    EXPECT_TRUE(registered(e.format));
    EXPECT_TRUE(e.fits) << e.format;
    EXPECT_GT(e.seconds, 0) << e.format;
    EXPECT_GT(e.bytes, 0) << e.format;
    EXPECT_FALSE(e.why.empty()) << e.format;
    if (k > 0) {
      EXPECT_LE(ranking[k - 1].run_seconds(), e.run_seconds()) << e.format;
    }
    const FormatEstimate alone = estimate_format(x, e.format, 16);
    EXPECT_EQ(alone.seconds, e.seconds) << e.format;
  }
  const double any_size = 1e9;
  const FormatEstimate chosen = estimate_format(x, choose_format(x, 16, {}, any_size).format, 16);
  for (const FormatEstimate& e : ranking)
    if (!e.repeats && e.has_kernel) {
      EXPECT_LE(chosen.run_seconds(), e.run_seconds()) << e.format;
    }
  // The usual size: a copy per mode only if it is small.
  const Choice usual = choose_format(x, 16);
  EXPECT_LE(build(x, usual.format).bytes(), usual_size * coordinate_bytes(x));
  EXPECT_LE(build(x, choose_format(x, 16, {}, 1.0).format).bytes(), coordinate_bytes(x));
}

TEST(Planner, TakesTheSweepWhereFibresAreLongAndCopiesWhereTheyAreSingle) {
  EXPECT_TRUE(choose_format(like_nell2(300000), 16).format.starts_with("sweep"));
  GenerateOptions single;
  single.dims = {3000, 4000, 5000};
  single.nnz = 300000;
  single.precision = Precision::f32;
  EXPECT_EQ(choose_format(generate(single), 16).format, "copies");
  single.precision = Precision::f64;  // values that floats cannot stand for: copies would be 1.8 times the coordinates
  CooTensor thirds = generate(single);
  for (double& v : std::get<Buffer<double>>(thirds.values)) v /= 3;
  EXPECT_NE(choose_format(thirds, 16).format, "copies");
}

TEST(Planner, RowsBeyondTheSecondCacheShareTheirCacheWithNonzeros) {
  const CooTensor x = like_nell2(1000);
  Context context;
  context.deterministic = true;  // a second-level cache of 1 MB, whatever the machine has
  const TensorSample sample(x, context);
  const RowCost cost;
  const EstimateRequest q{sample, 16, cost, 2};
  EXPECT_EQ(q.among_streams(512e3), 1);
  EXPECT_EQ(q.among_streams(8e6), 1.4);
}

TEST(Planner, LinesBesideTheFirstCostLess) {
  RowCost cost;
  for (std::size_t i = 0; i < cost.next.size(); ++i) cost.next[i] = cost.read[i] / 2;
  for (const double bytes : {1e3, 3e6, 1e9}) {
    EXPECT_DOUBLE_EQ(cost.reading(bytes, 2), 1.5 * cost.reading(bytes, 1));
    EXPECT_DOUBLE_EQ(cost.adding(bytes, 4), 4 * cost.adding(bytes, 1));
    EXPECT_DOUBLE_EQ(cost.multiplying(bytes, 2), 1.5 * cost.multiplying(bytes, 1));
  }
  cost.next.fill(100);  // no dearer than the first, whatever was measured
  EXPECT_DOUBLE_EQ(cost.reading(3e6, 2), 2 * cost.reading(3e6, 1));
}

TEST(Planner, InstructionsGoByThePaceOfTheProcessor) {
  RowCost cost;
  EXPECT_DOUBLE_EQ(cost.instructions(3), 3);
  cost.read[0] = 0.49;
  EXPECT_DOUBLE_EQ(cost.instructions(3), 2.1);
  cost.read[0] = 50;  // measured in a bad moment
  EXPECT_DOUBLE_EQ(cost.instructions(3), 4.5);
}

TEST(Planner, BuildingCounts) {
  FormatEstimate e;
  e.seconds = 0.5;
  e.build_seconds = 3;
  EXPECT_EQ(e.run_seconds(), 3 + expected_sweeps * 0.5);
  EXPECT_EQ(expected_sweeps, CpAlsOptions{}.iterations);
}

TEST(Planner, TakesCoordinatesWhereNothingElseFits) {
  Context context;
  context.memory = std::make_shared<MemoryBudget>(1000);
  const CooTensor x = with_fibres({20, 30, 40}, 12000);
  const Choice choice = choose_format(x, 16, context);
  EXPECT_EQ(choice.format, "coo");
  EXPECT_FALSE(choice.why.empty());
}

TEST(Planner, DeterministicRunsTakeWhatPromisesTheSameBits) {
  Context context;
  context.deterministic = true;
  context.threads = 8;
  EXPECT_NE(choose_format(like_nell2(100000), 16, context).format, "sweep");
}

TEST(Planner, ADeterministicChoiceDoesNotDependOnTheThreads) {
  for (const CooTensor& x : {with_fibres({200, 300, 400}, 120000), like_nell2(50000)}) {
    Context context;
    context.deterministic = true;
    context.threads = 1;
    const Choice one = choose_format(x, 16, context, 1e9);
    context.threads = 8;
    const Choice eight = choose_format(x, 16, context, 1e9);
    EXPECT_EQ(one.format, eight.format);
    EXPECT_EQ(one.why, eight.why);
  }
}

TEST(Planner, WhatIsBuiltOfLittleIsNoLargerThanPromised) {
  for (const std::vector<std::uint64_t>& dims : {std::vector<std::uint64_t>{50, 60}, {40, 5, 60}, {9, 8, 7, 6, 5}})
    for (const std::uint64_t nnz : {1, 10, 100, 1000, 20000})
      for (const double size : {1.0, usual_size}) {
        const CooTensor x = with_fibres(dims, std::min<std::uint64_t>(nnz, 1500));
        const Choice choice = choose_format(x, 16, {}, size);
        EXPECT_LE(build(x, choice.format, options_for(choice, 16)).bytes(), size * coordinate_bytes(x))
            << choice.format << ", " << dims.size() << " modes, " << x.nnz() << " nonzeros";
      }
}

#ifndef POLYAD_SANITIZED  // large outputs
TEST(Planner, WhatIsBuiltIsNoLargerThanPromised) {
  for (const Preset& preset : presets())
    for (const Precision precision : {Precision::f32, Precision::f64})
      for (const bool decimals : {true, false}) {
        GenerateOptions options = preset.options;
        options.nnz = 300000;
        options.precision = precision;
        CooTensor x = generate(options);
        if (!decimals)
          std::visit(
              [](auto& values) {
                for (auto& v : values) v /= 3;
              },
              x.values);
        for (const double size : {1.0, usual_size}) {
          const Choice choice = choose_format(x, 16, {}, size);
          FormatOptions of_choice = options_for(choice, 16);
          EXPECT_LE(build(x, choice.format, of_choice).bytes(), size * coordinate_bytes(x))
              << preset.name << ", " << choice.format << (decimals ? ", decimals" : "");
        }
      }
}
#endif

TEST(Planner, ChoicesBringTheCodeOfTheValues) {
  const CooTensor counts = with_fibres({40, 50, 60}, 1500);
  Choice choice = choose_format(counts, 16);
  ASSERT_NE(choice.value_code, nullptr);
  EXPECT_EQ(*choice.value_code, ValueCode::of(counts, {}));
  // With the choice for a tensor another one is built without loss all the same.
  CooTensor thirds = with_fibres({40, 50, 60}, 1500);
  std::visit(
      [](auto& values) {
        for (auto& v : values) v /= 3;
      },
      thirds.values);
  for (const char* format : {"copies", "tiles", "sweep-two"})
    EXPECT_EQ(norm(build(thirds, format, options_for(choice, 16))), norm(build(thirds, format))) << format;
}

TEST(Planner, OddTensors) {
  EXPECT_THROW((void)rank_formats(with_fibres({50}, 10), 16), Error);
  EXPECT_EQ(choose_format(with_fibres({50}, 10), 16).format, "coo");
  const CooTensor empty = make_coo({5, 6, 7}, 0, Precision::f64, {});
  for (const double size : {1.0, usual_size, std::numeric_limits<double>::infinity()}) {
    const Choice choice = choose_format(empty, 16, {}, size);
    EXPECT_EQ(choice.why.find("nan"), std::string::npos) << choice.why;
    (void)build(empty, choice.format);
  }
}

TEST(Planner, RemembersWhatTuningFound) {
  const test::Scratch folder;
  Context context;
  context.cache = folder.path("cache");
  const CooTensor x = with_fibres({200, 300, 400}, 20000);
  const Choice before = choose_format(x, 8, context);
  const Choice tuned = tune_format(x, 8, context);
  EXPECT_NE(tuned.why.find("measured on this machine"), std::string::npos) << tuned.why;
  const Choice after = choose_format(x, 8, context);
  EXPECT_EQ(after.format, tuned.format);
  EXPECT_EQ(after.why, tuned.why);
  EXPECT_EQ(choose_format(x, 9, context).why.find("measured on this machine"), std::string::npos) << "another rank";
  EXPECT_EQ(choose_format(x, 8, context, 1.0).why.find("measured on this machine"), std::string::npos)
      << "another size";
  // A damaged cache is no cache.
  std::ofstream(folder.path("cache/tuned.json")) << "{\"a";
  std::ofstream(folder.path("cache/machine.json")) << "[1]";
  EXPECT_EQ(choose_format(x, 8, context).format, before.format);
}

TEST(Planner, MeasuresTheMachineOnceForLargeTensors) {
  const test::Scratch folder;
  Context context;
  context.threads = 2;
  context.cache = folder.path("");
  (void)choose_format(with_fibres({200, 300, 400}, 20000), 8, context);
  EXPECT_FALSE(std::filesystem::exists(folder.path("machine.json"))) << "too small to be worth it";
  const CooTensor large = with_fibres({2000, 3000, 4000}, 1100000);
  (void)choose_format(large, 8, context);
  ASSERT_TRUE(std::filesystem::exists(folder.path("machine.json")));
  const auto written = std::filesystem::last_write_time(folder.path("machine.json"));
  const double first = rank_formats(large, 8, context)[0].seconds;
  EXPECT_EQ(rank_formats(large, 8, context)[0].seconds, first);
  EXPECT_EQ(std::filesystem::last_write_time(folder.path("machine.json")), written);
  context.cache = "/proc/no-such-folder";  // cannot be written: planned all the same
  EXPECT_GT(rank_formats(large, 8, context)[0].seconds, 0);
}

TEST(Planner, CsfIsCsfAll) {
  if (registered("csf-all")) {
    EXPECT_EQ(format_named("csf").name, "csf-all");
  } else {
    EXPECT_THROW((void)format_named("csf"), Error);
  }
}

TEST(Machine, StreamRespectsTheLimit) {
  Context context;
  context.threads = 2;
  context.memory = std::make_shared<MemoryBudget>(1'000'000);
  EXPECT_THROW((void)stream_triad_gbs(context), Error);
  EXPECT_EQ(context.memory->used(), 0U);
  context.memory = std::make_shared<MemoryBudget>();
  EXPECT_GT(stream_triad_gbs(context), 0.1);
  EXPECT_GE(context.memory->peak(), 3 * last_cache_bytes());
}

}  // namespace
}  // namespace polyad
