// SPDX-License-Identifier: MIT
#include "io/ptn_layout.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>

#include "io/dialect.hpp"
#include "io/ptn.hpp"
#include "polyad/error.hpp"
#include "unit/io/ptn_fixture.hpp"

namespace polyad::io {
namespace {

using namespace ptn_tests;
using ptn::Kind;

/// A file taken apart so that a test can lie in it and still have the right checksums.
struct Forgery {
  explicit Forgery(std::string file_bytes) : bytes(std::move(file_bytes)) {
    std::memcpy(&fixed, bytes.data(), sizeof fixed);
  }

  std::size_t table() const { return sizeof fixed + 8 * fixed.order; }
  ptn::SectionRecord section(std::size_t i) const {
    ptn::SectionRecord r;
    std::memcpy(&r, bytes.data() + table() + i * sizeof r, sizeof r);
    return r;
  }
  void set_section(std::size_t i, const ptn::SectionRecord& r) {
    std::memcpy(bytes.data() + table() + i * sizeof r, &r, sizeof r);
  }
  std::size_t find(Kind kind, int mode = 0) const {
    std::size_t i = 0;
    while (section(i).kind != static_cast<std::uint32_t>(kind) || section(i).mode != mode) ++i;
    return i;
  }
  template <class T>
  void put(std::size_t offset, T value) {
    std::memcpy(bytes.data() + offset, &value, sizeof value);
  }
  void put_dim(std::size_t mode, std::uint64_t dim) { put(sizeof fixed + 8 * mode, dim); }

  /// With the checksums of all (one-chunk) sections and of the head made right.
  std::string done() {
    const std::size_t head_bytes = fixed.head_bytes;
    std::size_t sum = table() + fixed.sections * sizeof(ptn::SectionRecord);
    for (std::size_t i = 0; i < fixed.sections && sum + 16 <= head_bytes; ++i) {
      const ptn::SectionRecord r = section(i);
      if (r.bytes == 0 || r.offset > bytes.size() || r.bytes > bytes.size() - r.offset) continue;
      put(sum, ptn::checksum(bytes.data() + r.offset, r.bytes));
      sum += 8;
    }
    return done_head();
  }
  /// With the checksum of the head made right.
  std::string done_head() {
    std::memcpy(bytes.data(), &fixed, sizeof fixed);
    if (fixed.head_bytes >= 8 && fixed.head_bytes <= bytes.size())
      put(fixed.head_bytes - 8, ptn::checksum(bytes.data(), fixed.head_bytes - 8));
    return bytes;
  }

  std::string bytes;
  ptn::FixedHead fixed;
};

class PtnDamage : public Ptn {};

TEST_F(PtnDamage, EveryTruncationIsRefused) {
  context_.threads = 1;  // tens of thousands of tiny files
  const std::string file = save(small(), "x.ptn");
  const std::size_t size = bytes_of_file(file).size();
  ASSERT_GT(size, 20000U);
  ReadOptions lazily;
  lazily.verify = false;
  for (std::size_t n = size; n-- > 0;) {
    ASSERT_EQ(truncate(file.c_str(), static_cast<off_t>(n)), 0);
    ASSERT_NE(refusal(file, lazily), "") << n;
  }
  EXPECT_EQ(refusal(file), "is empty, expected a .ptn file");
}

TEST_F(PtnDamage, EveryFlippedByteIsRefused) {
  context_.threads = 1;  // tens of thousands of tiny files
#ifdef POLYAD_SANITIZED
  constexpr std::size_t step = 3;
#else
  constexpr std::size_t step = 1;
#endif
  for (const bool compact : {false, true}) {
    const std::string file = save(small(), "x.ptn", {.dialect = {}, .index_base = {}, .compact = compact});
    const std::string good = bytes_of_file(file);
    const int fd = ::open(file.c_str(), O_WRONLY | O_CLOEXEC);
    ASSERT_GE(fd, 0);
    for (std::size_t i = 0; i < good.size(); i += step) {
      const char bad = static_cast<char>(good[i] ^ (1 << (i % 8)));
      ASSERT_EQ(pwrite(fd, &bad, 1, static_cast<off_t>(i)), 1);
      ASSERT_NE(refusal(file), "") << i;
      ASSERT_EQ(pwrite(fd, &good[i], 1, static_cast<off_t>(i)), 1);
    }
    close(fd);
    EXPECT_EQ(refusal(file), "");
  }
}

TEST_F(PtnDamage, StrangersAreRefused) {
  EXPECT_EQ(refusal_of(""), "is empty, expected a .ptn file");
  EXPECT_NE(refusal_of("1 2 3 4.5\n").find("is not a .ptn file"), std::string::npos);
  EXPECT_NE(refusal_of("\x89PTN\n\x1a\n etc").find("copied as text"), std::string::npos);
  std::string noise(5000, '\0');
  for (std::size_t i = 0; i < noise.size(); ++i) noise[i] = static_cast<char>(i * i * 31 + i * 7);
  EXPECT_NE(refusal_of(noise).find("is not a .ptn file"), std::string::npos);
  EXPECT_NE(refusal_of(std::string(ptn::magic) + noise), "");
  const std::string good = bytes_of_file(save(small(), "x.ptn"));
  EXPECT_NE(refusal_of(good + "x").find("continues after its end"), std::string::npos);

  EXPECT_TRUE(ptn_dialect.detect(good, ""));
  EXPECT_TRUE(ptn_dialect.detect("", ".ptn"));
  EXPECT_FALSE(ptn_dialect.detect("1 1 1 2.5\n", ".tns"));
}

TEST_F(PtnDamage, OtherVersions) {
  const std::string good = bytes_of_file(save(small(), "x.ptn"));
  Forgery major(good);
  major.fixed.major_version = 2;
  EXPECT_EQ(refusal_of(major.done()),
            "is a .ptn file of version 2.0; this polyad reads versions 1.x, so a later polyad is needed");
  Forgery minor(good);
  minor.fixed.minor_version = 9;
  minor.fixed.flags |= 1U << 30U;
  minor.fixed.reserved2 = 77;
  expect_equal(small(), open(save_bytes(minor.done(), "minor.ptn")));
}

TEST_F(PtnDamage, UnknownSectionsAreSkippedUnlessNeeded) {
  // The name of mode 2 becomes something that this version has never heard of.
  Forgery f(bytes_of_file(save(small(), "x.ptn")));
  const std::size_t i = f.find(Kind::mode_name, 1);
  ptn::SectionRecord r = f.section(i);
  r.kind = 4711;
  r.mode = 999;
  r.width = 0;
  f.set_section(i, r);
  const std::string file = save_bytes(f.done(), "later.ptn");
  CooTensor expected = small();
  expected.labels[1] = ModeLabels();
  for (const bool verify : {true, false}) {
    ReadOptions options;
    options.verify = verify;
    ReadReport report;
    expect_equal(expected, open(file, options, report));
    ASSERT_EQ(report.notes.size(), 1U);
    EXPECT_NE(report.notes[0].find("left out 1 section that"), std::string::npos);
  }
  EXPECT_GT(verify_ptn(file, context_), 0U);
  std::string damaged = f.bytes;
  damaged[r.offset] ^= 1;
  EXPECT_NE(refusal_of(damaged).find("the checksum of the section of kind 4711 is wrong"), std::string::npos);

  r.flags = ptn::flag_needed;
  f.set_section(i, r);
  EXPECT_NE(refusal_of(f.done()).find("cannot be understood without the section of kind 4711"), std::string::npos);
}

TEST_F(PtnDamage, LiesInTheHeadAreRefused) {
  const std::string good = bytes_of_file(save(small(), "x.ptn"));
  const auto expect = [&](const char* sentence, const std::function<void(Forgery&)>& lie) {
    Forgery f(good);
    lie(f);
    const std::string said = refusal_of(f.done_head());
    EXPECT_NE(said.find(sentence), std::string::npos) << said;
  };
  const auto expect_section = [&](const char* sentence, Kind kind, int mode,
                                  const std::function<void(ptn::SectionRecord&)>& lie) {
    expect(sentence, [&](Forgery& f) {
      const std::size_t i = f.find(kind, mode);
      ptn::SectionRecord r = f.section(i);
      lie(r);
      f.set_section(i, r);
    });
  };
  constexpr std::uint64_t huge = std::numeric_limits<std::uint64_t>::max();
  expect("has 0 modes, expected 1 to 32", [](Forgery& f) { f.fixed.order = 0; });
  expect("has 33 modes, expected 1 to 32", [](Forgery& f) { f.fixed.order = 33; });
  expect("has 4294967295 modes", [](Forgery& f) { f.fixed.order = 0xffffffff; });
  expect("mode 2 has length 0", [](Forgery& f) { f.put_dim(1, 0); });
  expect("should be 1000000000000000000 elements", [](Forgery& f) { f.fixed.nnz = 1000000000000000000; });
  // Lengths that give the right number of bytes modulo 2^64.
  expect("should be 2305843009213693956 elements", [](Forgery& f) { f.fixed.nnz = (std::uint64_t{1} << 61U) + 4; });
  expect("label ends of mode 1 should be 4 elements", [](Forgery& f) { f.put_dim(0, 4); });
  expect("it should have 18446744073709551615 bytes", [](Forgery& f) { f.fixed.file_bytes = huge; });
  expect("its header should have 18446744073709551615 bytes", [](Forgery& f) { f.fixed.head_bytes = huge; });
  expect("claims to have 7 bytes", [](Forgery& f) { f.fixed.head_bytes = 7; });
  expect("is too short for 2 modes and", [](Forgery& f) { f.fixed.head_bytes = 120; });
  expect("is too short for 2 modes and 4294967295 sections", [](Forgery& f) { f.fixed.sections = 0xffffffff; });
  expect("its sections end at", [](Forgery& f) { f.fixed.sections -= 1; });
  expect("its header has", [](Forgery& f) { f.fixed.head_bytes += 8; });
  expect("says that it is sorted by 3 modes but has 2", [](Forgery& f) { f.fixed.sorted_modes = 3; });
  expect("not a list of different modes", [](Forgery& f) { f.fixed.sorted_by[1] = 0; });
  expect("not a list of different modes", [](Forgery& f) { f.fixed.sorted_by[1] = 2; });

  using Record = ptn::SectionRecord;
  expect_section("the indices of mode 1 should begin at byte", Kind::indices, 0, [](Record& r) { r.offset += 1; });
  expect_section("should begin at byte", Kind::indices, 1, [](Record& r) { r.offset -= 4096; });
  expect_section("should begin at byte", Kind::values, 0, [](Record& r) { r.offset = huge - 4095; });
  expect_section("but the file has", Kind::values, 0, [](Record& r) { r.bytes = huge; });
  expect_section("but the file has", Kind::values, 0, [](Record& r) { r.bytes += 8; });
  expect_section("should be 4 elements of 8 bytes", Kind::values, 0, [](Record& r) { r.bytes -= 8; });
  expect_section("should be 4 elements of 4 bytes", Kind::values, 0, [](Record& r) { r.width = 4; });
  expect_section("the values cannot have elements of 2 bytes", Kind::values, 0, [](Record& r) { r.width = 2; });
  expect_section("cannot have elements of 0 bytes", Kind::indices, 0, [](Record& r) { r.width = 0; });
  expect_section("cannot have elements of 3 bytes", Kind::indices, 0, [](Record& r) { r.width = 3; });
  expect_section("cannot have elements of 2 bytes", Kind::mode_name, 0, [](Record& r) { r.width = 2; });
  expect_section("but only 2 modes", Kind::indices, 1, [](Record& r) { r.mode = 2; });
  expect_section("has the indices of mode 1 twice", Kind::indices, 1, [](Record& r) { r.mode = 0; });
  expect_section("has no indices of mode 2", Kind::indices, 1, [](Record& r) { r.kind = 4711; });
  expect_section("has no values", Kind::values, 0, [](Record& r) { r.kind = 4711; });
  expect_section("only one of the ends and the text", Kind::label_ends, 0, [](Record& r) { r.kind = 4711; });
  expect_section("only one of the ends and the text", Kind::label_text, 0, [](Record& r) { r.kind = 4711; });
}

TEST_F(PtnDamage, LiesInTheArraysAreRefused) {
  const std::string good = bytes_of_file(save(small(), "x.ptn"));
  const auto expect = [&](const char* sentence, Kind kind, int mode, std::size_t at, auto value) {
    Forgery f(good);
    f.put(f.section(f.find(kind, mode)).offset + at, value);
    const std::string file = save_bytes(f.done(), "bad.ptn");
    const std::string said = refusal(file);
    EXPECT_NE(said.find(sentence), std::string::npos) << said;
    EXPECT_THROW(verify_ptn(file, context_), Error);
  };
  expect("nonzero 3 has index 2 (from 0) in mode 2, which has length 2", Kind::indices, 1, 8, std::uint32_t{2});
  expect("has index 4294967295", Kind::indices, 0, 0, std::uint32_t{0xffffffff});
  expect("the value of nonzero 2 is not a finite number", Kind::values, 0, 8, std::numeric_limits<double>::quiet_NaN());
  expect("the value of nonzero 4 is not a finite number", Kind::values, 0, 24,
         -std::numeric_limits<double>::infinity());
  expect("label 2 of mode 1 goes from byte 4 to byte 3", Kind::label_ends, 0, 8, std::uint64_t{3});
  expect("label 1 of mode 1 goes from byte 0 to byte 18446744073709551615", Kind::label_ends, 0, 0, ~std::uint64_t{0});
  expect("the labels of mode 1 end at byte 10 of 11", Kind::label_ends, 0, 16, std::uint64_t{10});
  expect("sorted without duplicates but nonzero 2", Kind::indices, 1, 4, std::uint32_t{0});
  expect("sorted without duplicates but nonzero 4", Kind::indices, 0, 12, std::uint32_t{0});
}

TEST_F(PtnDamage, DamageSaysWhere) {
  std::string bytes = bytes_of_file(save(tensor({500, 70000, 12}, 700001), "x.ptn"));
  const Forgery f(bytes);
  const std::uint64_t values = f.section(f.find(Kind::values)).offset;
  bytes[values + (5U << 20U)] ^= 4;
  bytes[values + (2U << 20U) + 77] ^= 4;
  const std::string file = save_bytes(bytes, "bad.ptn");
  for (const int threads : {1, 2, 7}) {
    context_.threads = threads;
    const std::string said = refusal(file);
    EXPECT_NE(said.find("the checksum of the values is wrong in the 1048576 bytes from byte " +
                        std::to_string(values + (2U << 20U)) + " of the file on (chunk 3 of 6)"),
              std::string::npos)
        << said;
    EXPECT_THROW(verify_ptn(file, context_), Error);
  }
  ReadOptions lazily;
  lazily.verify = false;
  EXPECT_EQ(open(file, lazily).nnz(), 700001U);
}

TEST_F(PtnDamage, OrderIsCheckedAcrossThreadsAndBlocks) {
  CooTensor x = make_coo({100000, 3}, 100000, Precision::f64, {});
  auto& rows = std::get<Buffer<std::uint32_t>>(x.indices[0]);
  auto& cols = std::get<Buffer<std::uint32_t>>(x.indices[1]);
  for (std::uint32_t k = 0; k < 100000; ++k) {
    rows[k] = k / 3;
    cols[k] = k % 3;
  }
  x.sorted_by = {0, 1};
  x.duplicates_merged = true;
  expect_equal(x, open(save(x, "x.ptn")));
  for (const std::uint32_t k : {1U, 4096U, 4097U, 49999U, 50000U, 50001U, 99999U}) {
    const std::uint32_t before = cols[k];
    const std::uint32_t row_before = rows[k];
    rows[k] = rows[k - 1];
    cols[k] = cols[k - 1];  // a duplicate
    EXPECT_THROW(save(x, "bad.ptn"), Error) << k;
    EXPECT_FALSE(std::filesystem::exists(path("bad.ptn")));
    x.duplicates_merged = false;
    EXPECT_NO_THROW(save(x, "x.ptn")) << k;
    x.duplicates_merged = true;
    rows[k] = row_before;
    cols[k] = before;
  }
}

TEST_F(PtnDamage, WhatCannotBeReadIsNotWritten) {
  CooTensor x = small();
  x.labels[0].push_back("one too many");
  EXPECT_THROW(save(x, "bad.ptn"), Error);
  x = small();
  std::get<Buffer<double>>(x.values)[2] = std::numeric_limits<double>::infinity();
  EXPECT_THROW(save(x, "bad.ptn"), Error);
  x = small();
  std::get<Buffer<std::uint32_t>>(x.indices[1])[2] = 2;
  EXPECT_THROW(save(x, "bad.ptn"), Error);
  x = small();
  x.sorted_by = {1, 0};
  EXPECT_THROW(save(x, "bad.ptn"), Error);
  x.sorted_by = {7};
  EXPECT_THROW(save(x, "bad.ptn"), Error);
  EXPECT_THROW(save(CooTensor(), "bad.ptn"), Error);
  EXPECT_FALSE(std::filesystem::exists(path("bad.ptn")));
}

}  // namespace
}  // namespace polyad::io
