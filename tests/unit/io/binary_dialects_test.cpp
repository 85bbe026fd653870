// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "io/dialect.hpp"
#include "polyad/error.hpp"

namespace polyad::io {
namespace {

using Numbers = std::vector<std::uint64_t>;

constexpr double huge = 1e300;
const double nan = std::numeric_limits<double>::quiet_NaN();
const double inf = std::numeric_limits<double>::infinity();

/// Files of a test; gone with it.
class BinaryDialects : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / fmt::format("polyad_binary_{}", getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }

  /// Puts bytes into a file; `name` may ask for compression.
  [[nodiscard]] std::string file(const std::string& bytes, const std::string& name = "x.bin") const {
    OutputFile out(path(name), compression_of(name));
    out.write(bytes);
    out.commit();
    return path(name);
  }

  static CooTensor read(const Dialect& dialect, const std::string& path, const ReadOptions& options = {},
                        const Context& context = {}) {
    InputStream in(path);
    report_ = {};
    return dialect.read(in, options, context, report_);
  }

  [[nodiscard]] CooTensor read_bytes(const Dialect& dialect, const std::string& bytes,
                                     const ReadOptions& options = {}) const {
    return read(dialect, file(bytes), options);
  }

  [[nodiscard]] std::string written(const Dialect& dialect, const CooTensor& x, const std::string& name = "y") const {
    OutputFile out(path(name), compression_of(name));
    dialect.write(x, out, {}, {});
    const std::uint64_t bytes = out.position();
    out.commit();
    InputStream in(path(name));
    return std::string(in.peek(bytes));
  }

  /// The message of the Error that a reader throws, plain and (where nothing tells the size) compressed.
  [[nodiscard]] std::string refusal(const Dialect& dialect, const std::string& bytes, const ReadOptions& options = {},
                                    const std::string& name = "x.bin") const {
    const std::string p = file(bytes, name);
    Context context;
    context.memory = std::make_shared<MemoryBudget>(std::uint64_t{1} << 26U);
    try {
      (void)read(dialect, p, options, context);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::input) << e.what();
      EXPECT_LT(context.memory->peak(), std::uint64_t{1} << 22U) << e.what();
      return e.what();
    }
    return "(no Error)";
  }

  std::filesystem::path folder_;
  static inline ReadReport report_;
};

/// The bytes of numbers of one type.
template <class T>
std::string raw(std::initializer_list<T> numbers) {
  std::string s;
  for (const T n : numbers) s.append(reinterpret_cast<const char*>(&n), sizeof n);
  return s;
}

CooTensor tensor(std::vector<std::uint64_t> dims, const std::vector<Numbers>& indices,
                 const std::vector<double>& values, Precision precision = Precision::f64) {
  CooTensor x = make_coo(std::move(dims), values.size(), precision, {});
  visit(x, [&]<class Index, class Value>(const CooView<Index, Value>& v) {
    for (std::size_t k = 0; k < values.size(); ++k) {
      for (std::size_t m = 0; m < indices.size(); ++m) v.indices[m][k] = static_cast<Index>(indices[m][k]);
      v.values[k] = static_cast<Value>(values[k]);
    }
  });
  return x;
}

void expect_same(const CooTensor& a, const CooTensor& b) {
  ASSERT_EQ(a.dims, b.dims);
  ASSERT_EQ(a.nnz(), b.nnz());
  ASSERT_EQ(a.precision(), b.precision());
  ASSERT_EQ(a.index_width(), b.index_width());
  const auto same = [](const auto& p, const auto& q) {
    return std::visit(
        [](const auto& l, const auto& r) { return l.empty() || std::memcmp(l.data(), r.data(), l.bytes()) == 0; }, p,
        q);
  };
  for (std::size_t m = 0; m < a.dims.size(); ++m) EXPECT_TRUE(same(a.indices[m], b.indices[m])) << "mode " << m;
  EXPECT_TRUE(same(a.values, b.values));
}

// 2 x 3 x 4 with three nonzeros: (0,2,3) = 1.5, (1,0,0) = -2, (1,2,1) = 0.25.
CooTensor small(Precision precision = Precision::f64) {
  return tensor({2, 3, 4}, {{0, 1, 1}, {2, 0, 2}, {3, 0, 1}}, {1.5, -2, 0.25}, precision);
}

template <class Index, class Value>
std::string splatt_bytes(std::initializer_list<Index> header_and_indices, std::initializer_list<Value> values,
                         std::int32_t magic = 0) {
  return raw({magic}) + raw<std::uint64_t>({sizeof(Index), sizeof(Value)}) + raw(header_and_indices) + raw(values);
}

std::string splatt_small() {
  return splatt_bytes<std::uint32_t, double>({3, 2, 3, 4, 3, 0, 1, 1, 2, 0, 2, 3, 0, 1}, {1.5, -2, 0.25});
}

std::string genten_header(std::uint32_t order, std::uint32_t value_bits, std::initializer_list<std::uint64_t> rest) {
  return "sptn" + raw({order, value_bits}) + raw(rest);
}

std::string genten_small() {
  std::string s = genten_header(3, 64, {2, 3, 4, 16, 16, 16, 3});
  s += raw<std::uint16_t>({0, 2, 3}) + raw({1.5});
  s += raw<std::uint16_t>({1, 0, 0}) + raw({-2.0});
  s += raw<std::uint16_t>({1, 2, 1}) + raw({0.25});
  return s;
}

std::string alto_small() {
  return raw<std::uint64_t>({3, 2, 3, 4, 3, 0, 1, 1, 2, 0, 2, 3, 0, 1}) + raw({1.5, -2.0, 0.25});
}

const std::array<const Dialect*, 3> dialects_here = {&splatt_binary_dialect, &genten_binary_dialect,
                                                     &alto_binary_dialect};

TEST_F(BinaryDialects, ReadAndWriteTheBytesOfTheirPrograms) {
  const std::array<std::string, 3> bytes = {splatt_small(), genten_small(), alto_small()};
  for (std::size_t d = 0; d < 3; ++d) {
    SCOPED_TRACE(dialects_here[d]->name);
    expect_same(read_bytes(*dialects_here[d], bytes[d]), small());
    EXPECT_EQ(report_.index_base, 0);
    EXPECT_TRUE(report_.notes.empty());
    EXPECT_EQ(written(*dialects_here[d], small()), bytes[d]);
  }
}

TEST_F(BinaryDialects, ReadEveryWidth) {
  expect_same(read_bytes(splatt_binary_dialect, splatt_bytes<std::uint64_t, double>(
                                                    {3, 2, 3, 4, 3, 0, 1, 1, 2, 0, 2, 3, 0, 1}, {1.5, -2, 0.25})),
              small());
  expect_same(read_bytes(splatt_binary_dialect, splatt_bytes<std::uint32_t, float>(
                                                    {3, 2, 3, 4, 3, 0, 1, 1, 2, 0, 2, 3, 0, 1}, {1.5F, -2, 0.25F})),
              small());
  std::string genten = genten_header(3, 32, {2, 3, 4, 16, 32, 64, 2});
  genten += raw<std::uint16_t>({0}) + raw<std::uint32_t>({2}) + raw<std::uint64_t>({3}) + raw({1.5F});
  genten += raw<std::uint16_t>({1}) + raw<std::uint32_t>({0}) + raw<std::uint64_t>({1}) + raw({-2.0F});
  expect_same(read_bytes(genten_binary_dialect, genten), tensor({2, 3, 4}, {{0, 1}, {2, 0}, {3, 1}}, {1.5, -2}));
}

TEST_F(BinaryDialects, AltoOrderWithPaddingIsRead) {
  std::string bytes = alto_small();
  bytes[4] = '\x7f';  // what the writer's struct had behind an int
  expect_same(read_bytes(alto_binary_dialect, bytes), small());
}

TEST_F(BinaryDialects, RoundTripIsExact) {
  const double tiny = std::numeric_limits<double>::denorm_min();
  const double most = std::numeric_limits<double>::max();
  std::vector<CooTensor> cases;
  cases.push_back(tensor({6}, {{0, 5, 2, 2, 1}}, {1.0 / 3, -0.0, tiny, -most, 0}));
  cases.push_back(tensor({7, 9}, {{}, {}}, {}));
  cases.push_back(tensor({1, 65535, 65536, 4294967295U, 3}, {{0, 0}, {65534, 0}, {65535, 1}, {4294967294U, 2}, {2, 2}},
                         {0.1, 1e-300}));
  cases.push_back(tensor({5'000'000'000U, 2}, {{4'999'999'999U, 0}, {0, 1}}, {2, 3}));
  cases.push_back(tensor(Numbers(32, 3), std::vector<Numbers>(32, {2, 0}), {1, 2}));
  const std::uint64_t many = 300'000;  // several blocks
  std::vector<Numbers> indices(2, Numbers(many));
  std::vector<double> values(many);
  for (std::uint64_t k = 0; k < many; ++k) {
    indices[0][k] = k * 7919 % 100'003;
    indices[1][k] = k % 17;
    values[k] = 1.0 / static_cast<double>(k + 1);
  }
  cases.push_back(tensor({100'003, 17}, indices, values));
  for (const Dialect* dialect : dialects_here) {
    for (const CooTensor& x : cases) {
      for (const std::string name : {"a.bin", "a.bin.gz", "a.bin.zst"}) {
        if (x.nnz() > 1000 && name == "a.bin.gz") continue;  // slow, and the same code as zstd
        SCOPED_TRACE(fmt::format("{} {} order {} nnz {}", dialect->name, name, x.order(), x.nnz()));
        (void)written(*dialect, x, name);
        expect_same(read(*dialect, path(name)), x);
      }
    }
    const float third = 1.0F / 3;
    const CooTensor f = tensor({2, 2}, {{0, 1}, {1, 1}}, {third, 3.4e38F}, Precision::f32);
    (void)written(*dialect, f, "f.bin");
    ReadOptions options;
    options.precision = Precision::f32;
    expect_same(read(*dialect, path("f.bin"), options), f);
  }
}

TEST_F(BinaryDialects, Detect) {
  const auto splatt = splatt_small();
  const auto genten = genten_small();
  const auto alto = alto_small();
  EXPECT_TRUE(splatt_binary_dialect.detect(splatt, ""));
  EXPECT_FALSE(splatt_binary_dialect.detect(genten, ".bin"));
  EXPECT_FALSE(splatt_binary_dialect.detect(alto, ".bin"));
  EXPECT_FALSE(splatt_binary_dialect.detect(splatt.substr(0, 19), ".bin"));
  EXPECT_TRUE(genten_binary_dialect.detect(genten, ""));
  EXPECT_FALSE(genten_binary_dialect.detect("sptnsor\n3\n", ".tns"));
  EXPECT_FALSE(genten_binary_dialect.detect("sptensor\n3\n", ".tns"));
  EXPECT_FALSE(genten_binary_dialect.detect(splatt, ".bin"));
  EXPECT_TRUE(alto_binary_dialect.detect(alto, ".bin"));
  EXPECT_TRUE(alto_binary_dialect.detect(alto, ".alto"));
  EXPECT_FALSE(alto_binary_dialect.detect(alto, ".tns"));
}

TEST_F(BinaryDialects, GivenDimsAndBase) {
  for (const auto& [dialect, bytes] :
       {std::pair{&splatt_binary_dialect, splatt_small()}, std::pair{&genten_binary_dialect, genten_small()},
        std::pair{&alto_binary_dialect, alto_small()}}) {
    SCOPED_TRACE(dialect->name);
    ReadOptions options;
    options.dims = {2, 30, 6'000'000'000U};
    const CooTensor x = read_bytes(*dialect, bytes, options);
    EXPECT_EQ(x.dims, options.dims);
    EXPECT_EQ(x.index_width(), IndexWidth::u64);
    EXPECT_EQ(x.index(2, 0), 3U);

    options.dims = {2, 2, 4};
    EXPECT_NE(refusal(*dialect, bytes, options).find("found index 2 in mode 2 of nonzero 1, expected 0 to 1"),
              std::string::npos);
    options.dims = {2, 3};
    EXPECT_NE(refusal(*dialect, bytes, options).find("found order 3, expected 2 as in the given dims"),
              std::string::npos);
    options.dims = {};
    options.index_base = 1;
    EXPECT_NE(refusal(*dialect, bytes, options).find("found index 0 in mode 1 of nonzero 1, expected 1 to 2"),
              std::string::npos);
  }
  ReadOptions options;
  options.index_base = 1;
  const CooTensor x =
      read_bytes(splatt_binary_dialect, splatt_bytes<std::uint32_t, double>({2, 3, 5, 2, 1, 3, 5, 1}, {1, 2}), options);
  expect_same(x, tensor({3, 5}, {{0, 2}, {4, 0}}, {1, 2}));
  EXPECT_EQ(report_.index_base, 1);
}

TEST_F(BinaryDialects, ValuesMustBeFinite) {
  for (const auto& [value, word] : {std::pair{nan, "nan"}, {inf, "inf"}, {-inf, "-inf"}}) {
    const auto splatt = splatt_bytes<std::uint32_t, double>({1, 9, 2, 0, 8}, {1, value});
    const auto genten = genten_header(1, 64, {9, 16, 1}) + raw<std::uint16_t>({8}) + raw({value});
    const auto alto = raw<std::uint64_t>({1, 9, 1, 8}) + raw({value});
    EXPECT_NE(refusal(splatt_binary_dialect, splatt)
                  .find(fmt::format("found value {} in nonzero 2, expected a finite number", word)),
              std::string::npos);
    EXPECT_NE(refusal(genten_binary_dialect, genten).find(word), std::string::npos);
    EXPECT_NE(refusal(alto_binary_dialect, alto).find(word), std::string::npos);
  }
  ReadOptions options;
  options.precision = Precision::f32;
  EXPECT_NE(refusal(alto_binary_dialect, raw<std::uint64_t>({1, 9, 1, 8}) + raw({huge}), options)
                .find("found value 1e+300 in nonzero 1, expected at most 3.4028235e+38"),
            std::string::npos);
}

TEST_F(BinaryDialects, BadFilesAreRefusedInOneSentence) {
  struct Case {
    const Dialect* dialect;
    std::string bytes;
    std::string sentence;
  };
  using U32 = std::uint32_t;
  using U64 = std::uint64_t;
  const U64 absurd = 1'000'000'000'000'000'000U;
  const U64 wraps = ~U64{0} / 32 + 2;  // times a record of 32 bytes is little again
  const auto* splatt = &splatt_binary_dialect;
  const auto* genten = &genten_binary_dialect;
  const auto* alto = &alto_binary_dialect;
  const std::vector<Case> cases = {
      {splatt, splatt_bytes<U32, double>({33, 1}, {}), "found order 33, expected 1 to 32"},
      {splatt, splatt_bytes<U32, double>({0, 0}, {}), "found order 0, expected 1 to 32"},
      {splatt, splatt_bytes<U32, double>({2, 3, 0, 0}, {}), "found dim 0 for mode 2, expected at least 1"},
      {splatt, splatt_bytes<U32, double>({1, 3, 1, 3}, {1}), "found index 3 in mode 1 of nonzero 1, expected 0 to 2"},
      {splatt, splatt_bytes<U32, double>({1, 3, 1, 2}, {1}, 1), "found a SPLATT CSF file (magic 1)"},
      {splatt, splatt_bytes<U32, double>({1, 3, 1, 2}, {1}, 7), "found magic 7, expected 0"},
      {splatt, raw<std::int32_t>({0}) + raw<U64>({2, 8, 1}), "found indices of 2 bytes, expected 4 or 8"},
      {splatt, raw<std::int32_t>({0}) + raw<U64>({8, 16, 1}), "found values of 16 bytes, expected 4 or 8"},
      {splatt, splatt_small().substr(0, 30), "in the middle of its header"},
      {genten, "nope" + genten_small().substr(4), "expected sptn"},
      {genten, "dntn" + genten_small().substr(4), "found a dense GenTen tensor"},
      {genten, genten_header(33, 64, {1}), "found order 33, expected 1 to 32"},
      {genten, genten_header(4'000'000'000U, 64, {1}), "found order 4000000000, expected 1 to 32"},
      {genten, genten_header(1, 16, {1, 16, 0}), "found values of 16 bits, expected 32 or 64"},
      {genten, genten_header(1, 64, {1, 8, 0}), "found indices of 8 bits in mode 1, expected 16, 32 or 64"},
      {genten, genten_header(1, 64, {0, 16, 0}), "found dim 0 for mode 1, expected at least 1"},
      {genten, genten_header(1, 64, {5, 16, 1}) + raw<std::uint16_t>({5}) + raw({1.0}),
       "found index 5 in mode 1 of nonzero 1, expected 0 to 4"},
      {alto, raw<U64>({1, 3, 1, 7}) + raw({1.0}), "found index 7 in mode 1 of nonzero 1, expected 0 to 2"},
      {alto, raw<U64>({1, 0, 0}), "found dim 0 for mode 1, expected at least 1"},
      {alto, raw<U64>({33, 1, 1, 7}), "is not a SPLATT, GenTen or ALTO binary: found order 33, expected 1 to 32"},
      {alto, "", "is not a SPLATT, GenTen or ALTO binary: found 0 bytes"},
      {alto, "1 1 1 1.0\n2 2 2 5.0\n3 3 3 7.0\n", "is not a SPLATT, GenTen or ALTO binary: found order"},
  };
  for (const Case& c : cases) {
    for (const std::string name : {"x.bin", "x.bin.gz"}) {
      const std::string text = refusal(*c.dialect, c.bytes, {}, name);
      EXPECT_NE(text.find(c.sentence), std::string::npos) << text << "\n  expected: " << c.sentence;
      EXPECT_TRUE(text.starts_with(path(name))) << text;
    }
  }
  // A wrong number of nonzeros: told by the size, or by the end of the data.
  for (const U64 nnz : {absurd, wraps, ~U64{0}, U64{9}}) {
    const std::string header = raw<std::int32_t>({0}) + raw<U64>({8, 8, 3, 2, 3, 4, nnz});
    const std::string body = raw<U64>({1, 1, 1}) + raw({1.0});
    EXPECT_NE(refusal(*splatt, header + body)
                  .find(fmt::format("found 32 bytes after the header, expected 32 for each of {} nonzeros", nnz)),
              std::string::npos);
    EXPECT_NE(refusal(*splatt, header + body, {}, "x.bin.gz").find("found the end of the data after"),
              std::string::npos);
    const std::string g = genten_header(3, 64, {2, 3, 4, 64, 64, 64, nnz}) + body;
    EXPECT_NE(refusal(*genten, g).find("found 32 bytes after the header"), std::string::npos);
    EXPECT_NE(refusal(*genten, g, {}, "x.bin.gz").find(fmt::format("after 1 nonzeros, expected {}", nnz)),
              std::string::npos);
    const std::string a = raw<U64>({3, 2, 3, 4, nnz}) + body;
    EXPECT_NE(refusal(*alto, a).find(fmt::format("expected 40 and 32 for each of {} nonzeros of order 3", nnz)),
              std::string::npos);
    EXPECT_NE(refusal(*alto, a, {}, "x.bin.gz").find("found the end of the data after"), std::string::npos);
  }
}

TEST_F(BinaryDialects, EveryTruncationAndEveryExtensionIsRefused) {
  for (const auto& [dialect, bytes] :
       {std::pair{&splatt_binary_dialect, splatt_small()}, std::pair{&genten_binary_dialect, genten_small()},
        std::pair{&alto_binary_dialect, alto_small()}}) {
    for (std::size_t n = 0; n < bytes.size(); ++n) {
      SCOPED_TRACE(fmt::format("{} {}", dialect->name, n));
      EXPECT_NE(refusal(*dialect, bytes.substr(0, n)), "(no Error)");
      EXPECT_NE(refusal(*dialect, bytes.substr(0, n), {}, "x.bin.zst"), "(no Error)");
    }
    EXPECT_NE(refusal(*dialect, bytes + '\0'), "(no Error)");
    EXPECT_NE(
        refusal(*dialect, bytes + '\0', {}, "x.bin.gz")
            .find(fmt::format("found more data after the last nonzero, expected the end at byte {}", bytes.size())),
        std::string::npos);
  }
}

TEST_F(BinaryDialects, ReportProgressAndStopWhenAsked) {
  (void)written(splatt_binary_dialect, small(), "p.bin");
  Context context;
  std::uint64_t last = 0;
  context.observer = [&](const Progress& p) {
    EXPECT_EQ(p.phase, "reading");
    EXPECT_GE(p.done, last);
    EXPECT_LE(p.done, p.total);
    last = p.done;
  };
  (void)read(splatt_binary_dialect, path("p.bin"), {}, context);
  EXPECT_GT(last, 0U);
  context.cancelled = [] { return true; };
  try {
    (void)read(splatt_binary_dialect, path("p.bin"), {}, context);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::cancelled);
  }
}

}  // namespace
}  // namespace polyad::io
