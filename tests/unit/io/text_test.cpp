// SPDX-License-Identifier: MIT
// Text dialects: what is read, what is refused with which line, and that the number of threads changes nothing.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <random>

#include "io/line_parser.hpp"
#include "io/line_window.hpp"
#include "io/text_numbers.hpp"
#include "polyad/polyad.hpp"
#include "scratch.hpp"

namespace polyad {
namespace {

using test::Scratch;

Context threads(int n) {
  Context c;
  c.threads = n;
  return c;
}

/// The sentence of the Error that reading gives, or "" when it reads.
std::string refusal(const std::string& path, const ReadOptions& options = {}, int n = 1) {
  try {
    (void)read(path, options, threads(n));
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

TEST(TextNumbers, EightDigitsCountsAndConverts) {
  char text[32] = {};
  for (const std::uint64_t x : {0UL, 7UL, 42UL, 999UL, 1234UL, 98765UL, 123456UL, 7654321UL, 12345678UL}) {
    const std::string digits = std::to_string(x) + " x";
    std::memcpy(text, digits.c_str(), digits.size());
    std::uint64_t y = 99;
    EXPECT_EQ(io::eight_digits(text, y), digits.size() - 2);
    EXPECT_EQ(y, x);
  }
  for (const char c : {' ', '/', ':', '-', '.', '\0', '\n', '\x80', '\xff', 'a'}) {
    std::memset(text, c, 16);
    std::uint64_t y = 99;
    EXPECT_EQ(io::eight_digits(text, y), 0U) << static_cast<int>(c);
  }
}

TEST(TextNumbers, ValuesAreCorrectlyRounded) {
  // Each must equal strtod, which glibc rounds correctly.
  std::mt19937_64 random(1);
  std::vector<std::string> texts = {"0",
                                    "-0",
                                    "1",
                                    "0.1",
                                    "0.3",
                                    "123456.789",
                                    "9007199254740993",
                                    "1e22",
                                    "1e23",
                                    "4.35",
                                    "2.2250738585072014e-308",
                                    "4.9e-324",
                                    "1.7976931348623157e308",
                                    "16777217",
                                    "0.00000001",
                                    "1234567.1234567",
                                    "99999999.9999999",
                                    "-3.25e-7",
                                    ".5",
                                    "5.",
                                    "1e-5",
                                    "8388608.5"};
  for (int i = 0; i < 20000; ++i) {
    const auto a = static_cast<double>(random() % 10000000);
    texts.push_back(fmt::format("{:.{}f}", a / std::pow(10, static_cast<double>(random() % 7)), random() % 8));
    texts.push_back(
        fmt::format("{}", std::bit_cast<double>((random() & 0x000FFFFFFFFFFFFFU) | ((random() % 2046 + 1) << 52U))));
  }
  for (const std::string& t : texts) {
    const std::string line = t + "\n" + std::string(io::text_padding, '\0');
    double value = 0;
    const char* end = io::parse_value(line.data(), line.data() + t.size() + 1, value);
    ASSERT_EQ(end, line.data() + t.size()) << t;
    ASSERT_EQ(std::bit_cast<std::uint64_t>(value), std::bit_cast<std::uint64_t>(std::strtod(t.c_str(), nullptr))) << t;
    float narrow = 0;
    const float wanted = std::strtof(t.c_str(), nullptr);
    if (std::isfinite(wanted) && (wanted != 0 || value == 0)) {
      ASSERT_NE(io::parse_value(line.data(), line.data() + t.size() + 1, narrow), nullptr) << t;
      ASSERT_EQ(std::bit_cast<std::uint32_t>(narrow), std::bit_cast<std::uint32_t>(std::strtof(t.c_str(), nullptr)))
          << t;
    }
  }
}

TEST(TextNumbers, WhatIsWrittenReadsBackToTheSameBits) {
  std::mt19937_64 random(2);
  const auto check = [&]<class T>(T value) {
    char text[64] = {};
    char* end = io::format_value(text, value);
    ASSERT_LE(end - text, 32);
    *end = '\n';
    T back = 0;
    ASSERT_EQ(io::parse_value(text, end + 1, back), end) << std::string(text, end);
    ASSERT_TRUE(back == value && std::signbit(back) == std::signbit(value)) << std::string(text, end);
  };
  for (int i = 0; i < 100000; ++i) {
    const auto bits = random();
    const auto d = std::bit_cast<double>(bits);
    if (std::isfinite(d)) check(d);
    const auto f = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (std::isfinite(f)) check(f);
    check(static_cast<double>(static_cast<std::int64_t>(bits >> 20U) % 1000000) / 1e4);
    check(static_cast<float>(static_cast<double>(bits % 100000) / 1e3));
  }
  check(0.0);
  check(-0.0);
  check(1e15);
  check(99999999999.9999);
}

TEST(TextNumbers, WhatTheTypeCannotHoldIsRefused) {
  const auto refused = [](const char* text, auto value) {
    const std::string line = std::string(text) + "\n" + std::string(io::text_padding, '\0');
    return io::parse_value(line.data(), line.data() + std::strlen(text) + 1, value) == nullptr;
  };
  EXPECT_TRUE(refused("1e-60", 0.0F));
  EXPECT_FALSE(refused("1e-60", 0.0));
  EXPECT_TRUE(refused("1e-400", 0.0));
  EXPECT_TRUE(refused("1e39", 0.0F));
  EXPECT_FALSE(refused("0e-400", 0.0));
  EXPECT_FALSE(refused("0.000", 0.0));
  EXPECT_TRUE(refused("+-5", 0.0));
  EXPECT_TRUE(refused("++5", 0.0));
}

/// Parses one line by each way and compares.
template <class Value>
void compare_ways(int order, const std::string& text) {
  io::TextLayout layout;
  layout.order = order;
  const std::string padded = text + "\n9 9 9 9 9 9 9 9\n" + std::string(io::text_padding, '\0');
  std::array<std::uint64_t, max_order> careful = {};
  Value value = 0;
  const bool good =
      io::careful_line(layout, {padded.data(), text.size()}, careful.data(), value).kind == io::LineKind::nonzero;
  for (const bool portable : {false, true}) {
    std::array<std::array<std::uint32_t, 4>, 8> out = {};
    std::array<std::uint32_t*, 8> pointers = {};
    for (std::size_t m = 0; m < 8; ++m) pointers[m] = out[m].data();
    std::array<Value, 4> values = {};
    std::array<std::uint64_t, 8> low;
    std::array<std::uint64_t, 8> high = {};
    low.fill(std::numeric_limits<std::uint64_t>::max());
    io::WindowRun<std::uint32_t, Value> run = {.line = padded.data(),
                                               .end = padded.data() + text.size() + 1,
                                               .separator = ' ',
                                               .offset = 1,
                                               .indices = pointers.data(),
                                               .values = values.data(),
                                               .count = 0,
                                               .low = low.data(),
                                               .high = high.data()};
    if (portable) {
      io::parse_plain_lines_portably(order, run);
    } else {
      io::parse_plain_lines(order, run);
    }
    if (run.count == 0) {
      ASSERT_EQ(run.line, padded.data()) << text;
      ASSERT_EQ(high[0], 0U) << "a line that was left counts for nothing: " << text;
      continue;
    }
    ASSERT_TRUE(good) << text;
    ASSERT_EQ(run.line, run.end) << text;
    for (int m = 0; m < order; ++m) {
      const auto i = static_cast<std::size_t>(m);
      ASSERT_EQ(out[i][0] + 1, static_cast<std::uint32_t>(careful[i])) << text;
      ASSERT_EQ(low[i], careful[i]) << text;
      ASSERT_EQ(high[i], careful[i]) << text;
    }
    ASSERT_TRUE(values[0] == value && std::signbit(values[0]) == std::signbit(value)) << text;
  }
}

TEST(LineWindow, BothInstructionSetsAgreeWithTheCarefulWay) {
  std::mt19937_64 random(5);
  const std::string odd = "0123456789 .-+eE\t\r#x,";
  int taken = 0;
  for (int i = 0; i < 60000; ++i) {
    const int order = static_cast<int>(random() % 6) + 1;
    std::string text;
    for (int m = 0; m < order; ++m) {
      std::uint64_t ten = 1;
      for (std::uint64_t d = random() % 9 + 1; d > 0; --d) ten *= 10;
      text += std::to_string(random() % ten) + ' ';
    }
    if (random() % 3 == 0) text += '-';
    text += std::to_string(random() % (random() % 2 == 0 ? 100 : 1000000000));
    if (random() % 2 == 0) text += '.' + std::to_string(random() % (random() % 2 == 0 ? 1000 : 100000000));
    if (random() % 4 == 0) text += '\r';
    if (random() % 3 == 0) text[random() % text.size()] = odd[random() % odd.size()];
    compare_ways<double>(order, text);
    compare_ways<float>(order, text);
    ++taken;
  }
  EXPECT_EQ(taken, 60000);
}

TEST(Text, PlainFrosttIsOneBased) {
  const Scratch s;
  const ReadResult r = read_with_report(s.file("a.tns", "1 1 1 1.5\n2 3 4 2\n3 2 1 -1e-3\n"));
  EXPECT_EQ(r.report.dialect, "frostt");
  EXPECT_EQ(r.report.index_base, 1);
  EXPECT_EQ(r.tensor.dims, (std::vector<std::uint64_t>{3, 3, 4}));
  EXPECT_EQ(r.tensor.nnz(), 3U);
  EXPECT_EQ(r.tensor.index(2, 1), 3U);
  EXPECT_EQ(r.tensor.value(2), -1e-3);
}

TEST(Text, AnIndexZeroAnywhereMeansBaseZero) {
  const Scratch s;
  std::string text;
  for (int i = 1; i < 60000; ++i) text += "5 6 7 1\n";  // the zero is blocks away from the beginning
  const ReadResult r = read_with_report(s.file("a.tns", text + "0 6 7 2\n"), {}, threads(3));
  EXPECT_EQ(r.report.index_base, 0);
  EXPECT_EQ(r.tensor.dims, (std::vector<std::uint64_t>{6, 7, 8}));
  EXPECT_EQ(r.tensor.index(0, 0), 5U);
  EXPECT_EQ(r.tensor.index(0, 59999), 0U);
}

TEST(Text, HeadersAreRecognised) {
  const Scratch s;
  const std::string good = "1 1 1 1.5\n2 3 4 2\n3 2 1 -1e-3\n";
  const auto dialect = [&](const std::string& text) { return read_with_report(s.file("a.tns", text)).report.dialect; };
  EXPECT_EQ(dialect(good), "frostt");
  EXPECT_EQ(dialect("3\n5 6 7\n" + good), "order-dims");
  EXPECT_EQ(dialect("# extended FROSTT format\n3 3\n5 6 7\n" + good), "extended-frostt");
  EXPECT_EQ(dialect("3 3\n5 6 7\n" + good), "extended-frostt");
  EXPECT_EQ(dialect("sptensor\n3 \n5 6 7 \n3 \n" + good), "tensor-toolbox");
  EXPECT_EQ(dialect("sptensor indices-start-at-one\n3\n5 6 7\n3\n" + good), "genten-text");
  EXPECT_EQ(dialect("%%MatrixMarket matrix coordinate real general\n% c\n5 6 1\n2 3 1.5\n"), "matrix-market");
}

TEST(Text, TensorToolboxBaseIsDecidedByTheData) {
  const Scratch s;
  const auto base = [&](const std::string& text) { return read_with_report(s.file("a.tns", text)).report; };
  EXPECT_EQ(base("sptensor\n2\n5 6\n1\n0 3 1\n").index_base, 0);
  EXPECT_EQ(base("sptensor\n2\n5 6\n1\n5 3 1\n").index_base, 1);
  EXPECT_EQ(base("sptensor\n2\n5 6\n1\n5 3 1\n").notes.size(), 0U);
  EXPECT_EQ(base("sptensor\n2\n5 6\n1\n4 3 1\n").index_base, 1);
  EXPECT_EQ(base("sptensor\n2\n5 6\n1\n4 3 1\n").notes.size(), 1U);  // says what was assumed
  EXPECT_NE(refusal(s.file("b.tns", "sptensor\n2\n5 6\n2\n5 3 1\n0 1 1\n")).find("b.tns:6:"), std::string::npos);
}

TEST(Text, SymmetricMatricesAreExpanded) {
  const Scratch s;
  const CooTensor x = read(s.file("a.mtx", "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n1 1\n3 1\n"));
  EXPECT_EQ(x.nnz(), 3U);
  EXPECT_NE(refusal(s.file("c.mtx", "%%MatrixMarket matrix coordinate real symmetric\n3 4 1\n1 4 5\n")), "");
  const CooTensor y = read(s.file("b.mtx", "%%MatrixMarket matrix coordinate integer skew-symmetric\n3 3 1\n3 1 4\n"));
  EXPECT_EQ(y.value(0), 4);
  EXPECT_EQ(y.value(1), -4);
}

TEST(Text, TheFirstProblemOfTheFileIsReportedWhateverTheThreads) {
  const Scratch s;
  std::string text;
  for (int i = 0; i < 200000; ++i)
    text += i == 70000 ? "1 1 x 1\n" : i == 150000 ? "1 1\n" : i % 1000 == 0 ? "# note\n" : "3 4 5 1\n";
  const std::string path = s.file("a.tns", text);
  for (const int n : {1, 2, 3, 7})
    EXPECT_NE(refusal(path, {}, n).find("a.tns:70001: found 'x'"), std::string::npos) << refusal(path, {}, n);
}

TEST(Text, TheNumberOfThreadsChangesNothing) {
  const Scratch s;
  std::mt19937_64 random(3);
  std::string text = "# a comment\n";
  for (int i = 0; i < 120000; ++i) {
    text += fmt::format("{} {}\t{}  {}{}\n", random() % 1000 + 1, random() % 50 + 1, random() % 100000 + 1,
                        static_cast<double>(random() % 100000) / 1e3, i % 7 == 0 ? " # note\r" : "");
    if (i % 97 == 0) text += "   \n";
  }
  const std::string path = s.file("a.tns", text);
  const CooTensor one = read(path, {}, threads(1));
  EXPECT_EQ(one.nnz(), 120000U);
  for (const int n : {2, 3, 7, 16}) EXPECT_TRUE(same_nonzeros(one, read(path, {}, threads(n)))) << n;
}

TEST(Text, IndicesAbove32BitsAreReadWide) {
  const Scratch s;
  std::string text;
  for (int i = 0; i < 100000; ++i) text += "1 2 3\n";  // narrow blocks first
  const CooTensor x = read(s.file("a.tns", text + "5000000000 7 1\n"), {}, threads(2));
  EXPECT_EQ(x.index_width(), IndexWidth::u64);
  EXPECT_EQ(x.dims, (std::vector<std::uint64_t>{5000000000, 7}));
  EXPECT_EQ(x.index(0, 100000), 4999999999U);
  EXPECT_EQ(x.index(0, 0), 0U);
  // 2^32-1 as a length still is 32 bits; 0-based it is one more, so 64 bits.
  const CooTensor edge = read(s.file("b.tns", "4294967295 1 1\n"));
  EXPECT_EQ(edge.index_width(), IndexWidth::u32);
  EXPECT_EQ(edge.index(0, 0), 4294967294U);
  const CooTensor zero = read(s.file("c.tns", "4294967295 1 1\n0 1 1\n"));
  EXPECT_EQ(zero.dims[0], 4294967296U);
  EXPECT_EQ(zero.index(0, 1), 0U);
  EXPECT_EQ(zero.index(0, 0), 4294967295U);
  EXPECT_NE(refusal(s.file("d.tns", "99999999999999999999999 1 1\n")), "");
}

TEST(Text, OptionsOverride) {
  const Scratch s;
  const std::string path = s.file("a.tns", "1 1 2\n2 2 3\n");
  ReadOptions o;
  o.index_base = 0;
  EXPECT_EQ(read(path, o).dims, (std::vector<std::uint64_t>{3, 3}));
  o = {};
  o.dims = {10, 20};
  EXPECT_EQ(read(path, o).dims, (std::vector<std::uint64_t>{10, 20}));
  o.dims = {1, 20};
  EXPECT_NE(refusal(path, o).find("a.tns:2:"), std::string::npos);
  o = {};
  o.dims = {10};
  EXPECT_NE(refusal(path, o), "");
  o = {};
  o.precision = Precision::f32;
  EXPECT_EQ(read(path, o).precision(), Precision::f32);
  EXPECT_NE(refusal(s.file("b.tns", "1 1 1e39\n"), o).find("f32"), std::string::npos);
  o = {};
  o.dialect = "nonsense";
  EXPECT_NE(refusal(path, o), "");
}

TEST(Text, CheckFindsEveryProblemWithItsLine) {
  const Scratch s;
  const CheckReport r = check_file(s.file("a.tns", "1 1 1\n2 x 1\n1 1 4\n# c\n3 1\n4 4 0\n5 5 nan\n"), {}, 100);
  EXPECT_EQ(r.errors, 3U);
  EXPECT_EQ(r.duplicates, 1U);
  EXPECT_EQ(r.zeros, 1U);
  std::vector<std::uint64_t> lines;
  for (const Problem& p : r.problems) lines.push_back(p.line);
  EXPECT_EQ(lines, (std::vector<std::uint64_t>{2, 3, 5, 6, 7}));
  EXPECT_FALSE(r.tensor.has_value());
  EXPECT_EQ(r.empty_slices, (std::vector<std::uint64_t>{2, 2}));
}

TEST(Text, TheMemoryLimitIsKept) {
  const Scratch s;
  std::string text;
  for (int i = 0; i < 300000; ++i) text += "1 2 3 4\n";
  const std::string path = s.file("a.tns", text);
  Context c = threads(2);
  c.memory = std::make_shared<MemoryBudget>(2000000);
  try {
    (void)read(path, {}, c);
    FAIL() << "6 MB do not fit 2 MB";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::limit);
  }
  EXPECT_EQ(c.memory->used(), 0U);
  c.memory = std::make_shared<MemoryBudget>(6100000);  // 20 bytes each, and nothing to spare
  EXPECT_EQ(read(path, {}, c).nnz(), 300000U);
}

TEST(Text, EveryDialectThatWritesReadsItselfBack) {
  const Scratch s;
  std::mt19937_64 random(4);
  for (const int order : {1, 2, 3, 5, 9}) {
    CooTensor x = make_coo(std::vector<std::uint64_t>(static_cast<std::size_t>(order), 40), 500, Precision::f64, {});
    for (int m = 0; m < order; ++m)
      for (std::uint64_t k = 0; k < 500; ++k)
        std::get<0>(x.indices[static_cast<std::size_t>(m)])[k] =
            k == 0 ? 39 : static_cast<std::uint32_t>(random() % 40);
    for (std::uint64_t k = 0; k < 500; ++k)
      std::get<1>(x.values)[k] = std::ldexp(static_cast<double>(random()), static_cast<int>(random() % 100) - 80);
    for (const DialectEntry& d : dialects()) {
      if (!d.can_write || d.name == "csv" || (d.name == "matrix-market" && order != 2)) continue;
      for (const std::string ending : {"", ".gz", ".zst"}) {
        const std::string path = s.path("x" + std::string(d.extensions[0]) + ending);
        WriteOptions w;
        w.dialect = d.name;
        write(x, path, w);
        ReadOptions r;
        if (ending.empty()) r.dialect = d.name;  // once told, else detected
        const ReadResult back = read_with_report(path, r);
        EXPECT_EQ(back.report.dialect, d.name) << order;
        EXPECT_TRUE(same_nonzeros(x, back.tensor)) << d.name << ending << " order " << order;
      }
    }
  }
}

}  // namespace
}  // namespace polyad
