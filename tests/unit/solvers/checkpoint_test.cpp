// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <polyad/polyad.hpp>

#include "io/file_lock.hpp"
#include "unit/scratch.hpp"
#include "unit/solvers/small_tensors.hpp"

namespace polyad {
namespace {

using test::random_tensor;
using test::with_threads;

CpAlsOptions with_checkpoint(const std::string& path, std::uint64_t iterations) {
  CpAlsOptions o;
  o.rank = 6;
  o.iterations = iterations;
  o.tolerance = 0;
  o.checkpoint = path;
  o.every = 2;
  return o;
}

void expect_same(const CpAlsResult& a, const CpAlsResult& b, std::string_view what) {
  EXPECT_EQ(a.model.weights, b.model.weights) << what;
  for (std::size_t m = 0; m < a.model.factors.size(); ++m)
    EXPECT_EQ(a.model.factors[m].values, b.model.factors[m].values) << what << ", mode " << m + 1;
  EXPECT_EQ(a.fit, b.fit) << what;
  ASSERT_EQ(a.history.size(), b.history.size()) << what;
  for (std::size_t i = 0; i < a.history.size(); ++i) EXPECT_EQ(a.history[i].fit, b.history[i].fit) << what;
}

/// Cancels when asked for the n-th time: modes of an order-3 tensor ask twice an iteration, the loop once.
Context cancelled_after(int n, int threads) {
  Context context = with_threads(threads);
  context.cancelled = [n, asked = std::make_shared<int>(0)] { return ++*asked > n; };
  return context;
}

TEST(Checkpoint, AnInterruptedRunContinuesToTheSameBits) {
  const CooTensor x = [] {
    CooTensor made = random_tensor({40, 30, 20}, 900, 3);
    merge_duplicates(made);
    return made;
  }();
  for (const FormatEntry& format : formats())
    for (const int asked : {4, 11}) {
      const test::Scratch scratch;
      CpAlsOptions o = with_checkpoint("", 12);
      o.format = format.name;
      const CpAlsResult whole = cp_als(x, o, with_threads(2));
      o.checkpoint = scratch.path("c");
      Tensor tensor = build(x, format.name, {}, with_threads(2));
      const CpAlsResult part = cp_als(tensor, o, cancelled_after(asked, 2), fingerprint(x));
      ASSERT_EQ(part.stop, CpStop::cancelled);
      o.resume = true;
      const CpAlsResult resumed = cp_als(x, o, with_threads(2));
      EXPECT_EQ(resumed.resumed_at, part.iterations());
      expect_same(whole, resumed, fmt::format("{}, asked {} times", format.name, asked));
    }
}

TEST(Checkpoint, RestartsContinueToo) {
  const CooTensor x = random_tensor({20, 15, 12}, 600, 3);
  const test::Scratch scratch;
  CpAlsOptions o = with_checkpoint("", 10);
  o.restarts = 4;
  o.nonnegative = {1};
  const CpAlsResult whole = cp_als(x, o);
  o.checkpoint = scratch.path("c");
  // Stop in the third start: the fourth observer call of it.
  bool stop = false;
  o.observer = [&](const CpIteration& i, std::uint64_t restart) { stop = restart == 2 && i.iteration == 4; };
  Context context;
  context.cancelled = [&] { return stop; };
  const CpAlsResult part = cp_als(clone(x), o, context);
  ASSERT_EQ(part.runs.size(), 3U);
  o.observer = {};
  o.resume = true;
  const CpAlsResult resumed = cp_als(x, o);
  expect_same(whole, resumed, "restarts");
  ASSERT_EQ(resumed.runs.size(), 4U);
  for (std::size_t k = 0; k < 4; ++k) EXPECT_EQ(resumed.runs[k].fit, whole.runs[k].fit);
}

TEST(Checkpoint, EveryKindOfRunContinuesToTheSameBits) {
  const CooTensor x = random_tensor({20, 15, 12}, 600, 3);
  const CpModel known = cp_als(x, with_checkpoint("", 3)).model;
  for (const int kind : {0, 1, 2, 3, 4}) {
    const test::Scratch scratch;
    CpAlsOptions o = with_checkpoint("", 10);
    if (kind == 1) o.l2 = 0.2;
    if (kind == 2) o.start = CpStart::rsvd;
    if (kind == 3) {
      o.start = CpStart::model;
      o.initial = &known;
      o.fixed = {1};
    }
    if (kind == 4) o.nonnegative = {0, 1, 2};
    const CooTensor y = copy_as(x, kind == 0 ? Precision::f32 : Precision::f64);
    const CpAlsResult whole = cp_als(y, o);
    o.checkpoint = scratch.path("c");
    (void)cp_als(clone(y), o, [] {
      Context context;
      context.cancelled = [asked = std::make_shared<int>(0)] { return ++*asked > 150; };
      return context;
    }());
    o.resume = true;
    expect_same(whole, cp_als(y, o), fmt::format("kind {}", kind));
    if (kind != 3) continue;
    CpModel other = known;
    other.factors[1](0, 0) += 1;
    o.initial = &other;
    EXPECT_THROW((void)cp_als(y, o), Error) << "another model to start from";
  }
}

TEST(Checkpoint, AnyPlaceThatIsAFile) {
  const CooTensor x = random_tensor({20, 15, 12}, 600, 3);
  const test::Scratch scratch;
  std::filesystem::create_directory(scratch.path("far"));
  std::filesystem::create_symlink(scratch.path("far/c"), scratch.path("c"));
  (void)cp_als(x, with_checkpoint(scratch.path("c"), 4));
  EXPECT_TRUE(std::filesystem::is_symlink(scratch.path("c"))) << "a link stays a link";
  EXPECT_TRUE(std::filesystem::is_regular_file(scratch.path("far/c")));
  EXPECT_TRUE(std::filesystem::is_regular_file(scratch.path("far/c.previous")));
  EXPECT_THROW((void)cp_als(x, with_checkpoint(scratch.path("far"), 4)), Error) << "a folder is no checkpoint";
}

TEST(Checkpoint, AFinishedRunCanGoOn) {
  const CooTensor x = random_tensor({20, 15, 12}, 600, 3);
  const test::Scratch scratch;
  CpAlsOptions o = with_checkpoint(scratch.path("c"), 5);
  (void)cp_als(x, o);
  o.resume = true;
  o.iterations = 9;
  const CpAlsResult more = cp_als(x, o);
  EXPECT_EQ(more.resumed_at, 5U);
  o.checkpoint = "";
  o.resume = false;
  expect_same(cp_als(x, o), more, "five and four");
}

TEST(Checkpoint, WithoutOneItBegins) {
  const test::Scratch scratch;
  CpAlsOptions o = with_checkpoint(scratch.path("c"), 3);
  o.resume = true;
  const CpAlsResult r = cp_als(random_tensor({20, 15, 12}, 600, 3), o);
  EXPECT_EQ(r.resumed_at, 0U);
  ASSERT_FALSE(r.notes.empty());
  EXPECT_NE(r.notes[0].find("no checkpoint yet"), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(scratch.path("c")));
}

TEST(Checkpoint, AnotherTensorOrRankIsRefused) {
  const CooTensor x = random_tensor({20, 15, 12}, 600, 3);
  const test::Scratch scratch;
  CpAlsOptions o = with_checkpoint(scratch.path("c"), 4);
  (void)cp_als(x, o);
  o.resume = true;
  const auto refused = [&](const CooTensor& tensor, const CpAlsOptions& options, std::string_view word) {
    try {
      (void)cp_als(tensor, options);
      ADD_FAILURE() << "was not refused: " << word;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(word), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find(scratch.path("c")), std::string::npos) << e.what();
    }
  };
  CpAlsOptions other = o;
  other.rank = 7;
  refused(x, other, "rank");
  other = o;
  other.seed = 99;
  refused(x, other, "seed");
  other = o;
  other.l2 = 0.5;
  refused(x, other, "l2");
  refused(random_tensor({20, 15, 12}, 600, 4), o, "tensor");
  CooTensor changed = clone(x);
  std::get<Buffer<double>>(changed.values)[17] += 1e-9;
  refused(changed, o, "tensor");
  refused(copy_as(x, Precision::f32), o, "precision");
}

TEST(Checkpoint, ADamagedOneFallsBackToTheOneBefore) {
  const CooTensor x = random_tensor({20, 15, 12}, 600, 3);
  const test::Scratch scratch;
  CpAlsOptions o = with_checkpoint(scratch.path("c"), 8);
  const CpAlsResult whole = cp_als(x, o);
  ASSERT_TRUE(std::filesystem::exists(scratch.path("c.previous")));
  const std::string good = scratch.content("c");
  o.resume = true;
  std::vector<std::string> damages = {"", "polyadST", good.substr(0, good.size() / 2), "x" + good.substr(1),
                                      good.substr(0, good.size() - 1)};
  for (std::size_t at = 8; at < good.size(); at += good.size() / 40) {
    damages.push_back(good);
    damages.back()[at] = static_cast<char>(damages.back()[at] ^ 0x10);
  }
  int fell_back = 0;
  for (const std::string& damage : damages) {
    (void)scratch.file("c", damage);
    const CpAlsResult r = cp_als(x, o);
    expect_same(whole, r, "from the one before");
    const bool padding = r.notes.empty();  // bytes between arrays mean nothing
    if (!padding) {
      EXPECT_NE(r.notes[0].find("continued from the one before"), std::string::npos) << r.notes[0];
      ++fell_back;
    }
    // The run wrote new checkpoints: the state of before for the next damage.
    (void)scratch.file("c.previous", good);
  }
  EXPECT_GT(fell_back, 35);
  (void)scratch.file("c", "rubbish");
  (void)scratch.file("c.previous", "rubbish");
  EXPECT_THROW((void)cp_als(x, o), Error);
}

TEST(Checkpoint, FingerprintIgnoresTheOrderAlone) {
  CooTensor x = random_tensor({20, 15, 12}, 600, 3);
  const std::uint64_t print = fingerprint(x);
  EXPECT_EQ(fingerprint(x, with_threads(7)), print);
  const int order[] = {2, 0, 1};
  sort_nonzeros(x, order);
  EXPECT_EQ(fingerprint(x), print);
  x.dims[1] = 16;
  EXPECT_NE(fingerprint(x), print);
}

TEST(Checkpoint, TwoRunsCannotHaveTheSameFile) {
  const test::Scratch scratch;
  const CooTensor x = random_tensor({8, 7, 6}, 60, 3);
  const CpAlsOptions o = with_checkpoint(scratch.path("c"), 4);
  {
    const io::FileLock other(o.checkpoint);
    try {
      static_cast<void>(cp_als(x, o));
      FAIL() << "a file that another run uses";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::input);
      EXPECT_EQ(e.what(), o.checkpoint + ": another run is using it now; expected a file of its own for each run");
    }
    EXPECT_FALSE(std::filesystem::exists(o.checkpoint));
  }
  std::ofstream(o.checkpoint + ".lock") << "left by a run that was killed";
  EXPECT_EQ(cp_als(x, o).iterations(), 4U);
  EXPECT_TRUE(std::filesystem::exists(o.checkpoint));
  EXPECT_FALSE(std::filesystem::exists(o.checkpoint + ".lock"));
}

}  // namespace
}  // namespace polyad
