// SPDX-License-Identifier: MIT
#include "io/ptn.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "io/dialect.hpp"
#include "polyad/error.hpp"
#include "unit/io/ptn_fixture.hpp"

namespace polyad::io {
namespace {

using namespace ptn_tests;
using ptn::Kind;

/// The tensor of the golden files; docs/ptn.md lists it.
CooTensor golden() {
  CooTensor x = make_coo({3, 300, 2}, 5, Precision::f64, {});
  visit(x, []<class Index, class Value>(const CooView<Index, Value>& v) {
    constexpr std::array<std::array<int, 5>, 3> indices = {{{0, 0, 1, 2, 2}, {0, 299, 7, 0, 256}, {1, 0, 1, 0, 1}}};
    constexpr std::array<double, 5> values = {1.5, -2, 0.1, 1e300, 4};
    for (std::size_t m = 0; m < 3; ++m)
      for (std::size_t k = 0; k < 5; ++k) v.indices[m][k] = static_cast<Index>(indices[m][k]);
    for (std::size_t k = 0; k < 5; ++k) v.values[k] = static_cast<Value>(values[k]);
  });
  x.sorted_by = {0, 1, 2};
  x.duplicates_merged = true;
  x.labels = {ModeLabels("city"), ModeLabels(), ModeLabels("day")};
  for (const char* label : {"Genf", "", "Z\xc3\xbcrich"}) x.labels[0].push_back(label);
  return x;
}

TEST_F(Ptn, RoundTripsOfEveryKind) {
  int ran = 0;
  for (const std::uint64_t order : {1U, 2U, 3U, 5U, 8U, 32U}) {
    for (const bool wide : {false, true}) {
      for (const Precision precision : {Precision::f32, Precision::f64}) {
        for (const bool compact : {false, true}) {
          for (const std::uint64_t nnz : {0U, 1U, 777U}) {
            std::vector<std::uint64_t> dims;
            for (std::uint64_t m = 0; m < order; ++m)
              dims.push_back(std::array<std::uint64_t, 4>{7, 300, 70000, 1}[m % 4]);
            if (wide) dims.back() = std::uint64_t{1} << 40U;
            const CooTensor x = tensor(dims, nnz, precision);
            const std::string file = save(x, "x.ptn", {.dialect = {}, .index_base = {}, .compact = compact});
            ReadOptions options;
            options.precision = precision;
            const CooTensor y = open(file, options);
            expect_equal(x, y);
            EXPECT_EQ(all_views(y), !compact || (order == 1 && wide));  // 2^40 needs eight bytes
            ++ran;
          }
        }
      }
    }
  }
  EXPECT_EQ(ran, 144);
}

TEST_F(Ptn, ManyChunksAndThreadsGiveTheSameFile) {
  const CooTensor x = tensor({500, 70000, 12}, 700001);  // values: six chunks
  const std::string bytes = bytes_of_file(save(x, "two.ptn", {.dialect = {}, .index_base = {}, .compact = true}));
  context_.threads = 7;
  EXPECT_EQ(bytes_of_file(save(x, "seven.ptn", {.dialect = {}, .index_base = {}, .compact = true})), bytes);
  expect_equal(x, open(path("seven.ptn")));
  context_.threads = 1;
  EXPECT_EQ(bytes_of_file(save(x, "one.ptn", {.dialect = {}, .index_base = {}, .compact = true})), bytes);
  expect_equal(x, open(path("one.ptn")));
}

TEST_F(Ptn, CompactTakesTheNarrowestWidths) {
  for (const auto& [dim, width] : std::vector<std::pair<std::uint64_t, int>>{{1, 1},
                                                                             {256, 1},
                                                                             {257, 2},
                                                                             {65536, 2},
                                                                             {65537, 4},
                                                                             {std::uint64_t{1} << 32U, 4},
                                                                             {(std::uint64_t{1} << 32U) + 1, 8}}) {
    CooTensor x = tensor({dim}, 3);
    std::visit([last = dim - 1](auto& b) { b[2] = static_cast<std::remove_cvref_t<decltype(b[2])>>(last); },
               x.indices[0]);
    const std::string file = save(x, "x.ptn", {.dialect = {}, .index_base = {}, .compact = true});
    InputStream in(file);
    EXPECT_EQ(PtnFile(in, context_).head().find(Kind::indices, 0)->width, static_cast<std::uint32_t>(width)) << dim;
    expect_equal(x, open(file));
  }
}

TEST_F(Ptn, LabelsSurvive) {
  CooTensor x = tensor({4, 2, 300}, 20);
  x.labels.resize(3);
  x.labels[0] = ModeLabels(
      "st\xc3\xa4"
      "dte\n\t");
  for (const std::string& label :
       {std::string(), std::string("\xe6\x9d\xb1\xe4\xba\xac"), std::string("a\0b", 3), std::string()})
    x.labels[0].push_back(label);
  for (int i = 0; i < 300; ++i) x.labels[2].push_back("label number " + std::to_string(i));
  for (const bool compact : {false, true})
    expect_equal(x, open(save(x, "x.ptn", {.dialect = {}, .index_base = {}, .compact = compact})));
  x.labels[0] = ModeLabels();
  for (int i = 0; i < 4; ++i) x.labels[0].push_back("");
  expect_equal(x, open(save(x, "x.ptn")));
}

TEST_F(Ptn, WhatIsKnownSurvives) {
  CooTensor x = small();
  expect_equal(x, open(save(x, "x.ptn")));
  x.sorted_by = {0};
  expect_equal(x, open(save(x, "x.ptn")));
  x.sorted_by.clear();
  expect_equal(x, open(save(x, "x.ptn")));
  x.duplicates_merged = false;
  expect_equal(x, open(save(x, "x.ptn")));
}

TEST_F(Ptn, GoldenFilesOpen) {
  const std::string folder = std::string(POLYAD_SOURCE_DIR) + "/tests/corpus/";
  const CooTensor plain = open(folder + "golden-v1.ptn");
  expect_equal(golden(), plain);
  EXPECT_TRUE(all_views(plain));
  expect_equal(golden(), open(folder + "golden-v1-compact.ptn"));
  EXPECT_EQ(verify_ptn(folder + "golden-v1.ptn", context_), std::filesystem::file_size(folder + "golden-v1.ptn"));
}

TEST_F(Ptn, MutationStaysInMemory) {
  const std::string file = save(small(), "x.ptn");
  const std::string before = bytes_of_file(file);
  CooTensor x = open(file);
  ASSERT_TRUE(all_views(x));
  std::get<Buffer<double>>(x.values)[1] = 42;
  std::get<Buffer<std::uint32_t>>(x.indices[0])[3] = 1;
  EXPECT_EQ(bytes_of_file(file), before);
  expect_equal(small(), open(file));
  save(x = open(file), "x.ptn");  // onto the file that is mapped
  expect_equal(small(), x);
  expect_equal(small(), open(file));
}

TEST_F(Ptn, ViewsCostNoMemoryAndConversionsAreCounted) {
  const CooTensor x = tensor({500, 70000, 12}, 100000);
  const std::string file = save(x, "x.ptn");
  const std::string narrow = save(x, "narrow.ptn", {.dialect = {}, .index_base = {}, .compact = true});
  context_.memory = std::make_shared<MemoryBudget>(1000);
  EXPECT_TRUE(all_views(open(file)));
  EXPECT_EQ(context_.memory->peak(), 0U);
  EXPECT_THROW(open(narrow), Error);
  context_.memory = std::make_shared<MemoryBudget>(std::uint64_t{1} << 20U);
  const CooTensor y = open(narrow);
  const auto is_view = [](const auto& b) { return b.is_view(); };
  EXPECT_FALSE(std::visit(is_view, y.indices[0]));
  EXPECT_TRUE(std::visit(is_view, y.indices[1]));  // 70000 needs four bytes
  EXPECT_FALSE(std::visit(is_view, y.indices[2]));
  EXPECT_TRUE(std::visit(is_view, y.values));
  EXPECT_EQ(context_.memory->used(), 2U * 400000U);
  expect_equal(x, y);
}

TEST_F(Ptn, PrecisionIsConverted) {
  const CooTensor x = tensor({50, 7}, 300000);
  const std::string file = save(x, "x.ptn");
  ReadOptions options;
  options.precision = Precision::f32;
  const CooTensor y = open(file, options);
  EXPECT_EQ(y.precision(), Precision::f32);
  const std::string single = save(y, "y.ptn");
  expect_equal(y, open(single, options));
  expect_equal(x, open(single));  // halves survive f32

  EXPECT_NE(refusal(save(golden(), "big.ptn"), options).find("the value 1e+300 of nonzero 4 does not fit f32"),
            std::string::npos);
}

TEST_F(Ptn, DimsCanBeAskedFor) {
  const std::string file = save(small(), "x.ptn");
  ReadOptions options;
  options.dims = {5, 2};
  CooTensor x = open(file, options);
  EXPECT_EQ(x.dims, options.dims);
  ASSERT_EQ(x.labels[0].size(), 5U);
  EXPECT_EQ(x.labels[0][2], "Z\xc3\xbcrich");
  EXPECT_EQ(x.labels[0][4], "");
  options.dims = {std::uint64_t{1} << 50U, 2};
  ReadReport report;
  x = open(file, options, report);
  EXPECT_EQ(x.index_width(), IndexWidth::u64);
  EXPECT_EQ(x.index(0, 3), 2U);
  EXPECT_EQ(x.labels[0].name(), "city");
  EXPECT_TRUE(x.labels[0].empty());
  EXPECT_EQ(report.notes.size(), 1U);
  options.verify = false;
  options.dims = {2, 2};
  EXPECT_EQ(refusal(file, options), "nonzero 4 has index 2 (from 0) in mode 1, which has length 2");
  options.dims = {3, 2, 1};
  EXPECT_THROW(open(file, options), Error);

  // Stored wider and longer than needed: asked for short, the indices become narrow.
  const std::string wide = save(tensor({std::uint64_t{1} << 40U}, 1), "wide.ptn");
  options.dims = {98};
  x = open(wide, options);
  EXPECT_EQ(x.index_width(), IndexWidth::u32);
  EXPECT_EQ(x.index(0, 0), 0U);
}

TEST_F(Ptn, IndexBaseIsZero) {
  const std::string file = save(small(), "x.ptn");
  ReadOptions options;
  options.index_base = 0;
  EXPECT_NO_THROW(open(file, options));
  options.index_base = 1;
  EXPECT_THROW(open(file, options), Error);
  EXPECT_NO_THROW(save(small(), "x.ptn", {.dialect = {}, .index_base = 0}));
  EXPECT_THROW(save(small(), "x.ptn", {.dialect = {}, .index_base = 1}), Error);
}

TEST_F(Ptn, CompressedFilesAndPipes) {
  CooTensor x = tensor({500, 70000, 12}, 700001);
  x.labels.resize(3);
  x.labels[1].set_name("word");
  for (const char* name : {"x.ptn.gz", "x.ptn.zst"}) {
    const std::string file = save(x, name);
    expect_equal(x, open(file));
    EXPECT_GT(verify_ptn(file, context_), x.bytes());
    Context limited = context_;
    limited.memory = std::make_shared<MemoryBudget>(std::uint64_t{1} << 20U);
    EXPECT_THROW(verify_ptn(file, limited), Error);
  }
  const std::string bytes = bytes_of_file(save(x, "x.ptn"));
  const std::string pipe = path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const auto through_pipe = [&](std::string_view sent) {
    std::signal(SIGPIPE, SIG_IGN);
    std::thread sender([&] {
      const int fd = ::open(pipe.c_str(), O_WRONLY | O_CLOEXEC);
      while (!sent.empty()) {
        const ssize_t n = ::write(fd, sent.data(), sent.size());
        if (n <= 0) break;
        sent.remove_prefix(static_cast<std::size_t>(n));
      }
      close(fd);
    });
    std::unique_ptr<CooTensor> y;
    std::string said;
    try {
      y = std::make_unique<CooTensor>(open(pipe));
    } catch (const Error& e) {
      said = e.what();
    }
    sender.join();
    if (y) expect_equal(x, *y);
    return said;
  };
  EXPECT_EQ(through_pipe(bytes), "");
  EXPECT_NE(through_pipe(bytes + "more").find("continues after its end"), std::string::npos);
  EXPECT_NE(through_pipe(bytes.substr(0, bytes.size() / 2)).find("is cut off"), std::string::npos);
  EXPECT_NE(through_pipe(bytes.substr(0, 50)).find("is cut off"), std::string::npos);
  EXPECT_NE(through_pipe("").find("is empty"), std::string::npos);
  EXPECT_NE(through_pipe(std::string(1000, 'a')).find("is not a .ptn file"), std::string::npos);
}

TEST_F(Ptn, ProgressAndCancelling) {
  const std::string file = save(tensor({500, 70000, 12}, 700001), "x.ptn");
  std::uint64_t calls = 0;
  context_.observer = [&](const Progress& p) {
    EXPECT_EQ(p.unit, "bytes");
    EXPECT_LE(p.done, p.total);
    ++calls;
  };
  (void)open(file);
  EXPECT_GT(calls, 2U);
  calls = 0;
  const CooTensor x = open(file);
  save(x, "y.ptn");
  EXPECT_GT(calls, 6U);
  context_.cancelled = [] { return true; };
  EXPECT_THROW(open(file), Error);
  EXPECT_THROW(save(x, "z.ptn"), Error);
  EXPECT_FALSE(std::filesystem::exists(path("z.ptn")));
}

}  // namespace
}  // namespace polyad::io
