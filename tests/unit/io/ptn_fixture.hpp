// SPDX-License-Identifier: MIT
/// \file What the tests of `.ptn` share: a folder per test, tensors, comparison.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "io/dialect.hpp"
#include "io/ptn.hpp"
#include "polyad/error.hpp"

namespace polyad::io::ptn_tests {

inline std::string bytes_of_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

/// A folder of its own for each test.
class Ptn : public testing::Test {
 protected:
  Ptn() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(testing::TempDir()) /
              (std::string("polyad-ptn-") + test->name() + "-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  ~Ptn() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  std::string save(const CooTensor& x, const std::string& name, const WriteOptions& options = {}) const {
    OutputFile out(path(name), compression_of(name));
    ptn_dialect.write(x, out, options, context_);
    out.commit();
    return path(name);
  }

  std::string save_bytes(std::string_view bytes, const std::string& name) const {
    write_file(path(name), bytes);
    return path(name);
  }

  CooTensor open(const std::string& file, const ReadOptions& options = {}) const {
    ReadReport report;
    return open(file, options, report);
  }

  CooTensor open(const std::string& file, const ReadOptions& options, ReadReport& report) const {
    InputStream in(file);
    return ptn_dialect.read(in, options, context_, report);
  }

  /// The sentence with which a file is refused; it must begin with the name of the file.
  std::string refusal(const std::string& file, const ReadOptions& options = {}) const {
    try {
      (void)open(file, options);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::input) << e.what();
      const std::string text = e.what();
      EXPECT_TRUE(text.starts_with(file + ": ")) << text;
      return text.substr(std::min(text.size(), file.size() + 2));
    }
    return "";
  }

  /// The same for bytes.
  std::string refusal_of(std::string_view bytes) const { return refusal(save_bytes(bytes, "bad.ptn")); }

  std::filesystem::path folder_;
  Context context_ = [] {
    Context c;
    c.threads = 2;
    return c;
  }();
};

/// Nonzeros that follow from their number: easy to compare with, in no order, with duplicates where dims are short.
inline CooTensor tensor(std::vector<std::uint64_t> dims, std::uint64_t nnz, Precision precision = Precision::f64) {
  CooTensor x = make_coo(std::move(dims), nnz, precision, {});
  visit(x, [&]<class Index, class Value>(const CooView<Index, Value>& v) {
    for (std::uint64_t k = 0; k < nnz; ++k) {
      for (int m = 0; m < v.order; ++m) {
        const auto mode = static_cast<std::size_t>(m);
        v.indices[mode][k] = static_cast<Index>((k * 2654435761U + 97U * mode) * 1000003U % v.dims[mode]);
      }
      v.values[k] = static_cast<Value>(k % 1000) - Value{499.5};
    }
  });
  return x;
}

inline void expect_equal(const CooTensor& a, const CooTensor& b) {
  ASSERT_EQ(a.dims, b.dims);
  ASSERT_EQ(a.nnz(), b.nnz());
  EXPECT_EQ(a.index_width(), b.index_width());
  EXPECT_EQ(a.precision(), b.precision());
  EXPECT_EQ(a.sorted_by, b.sorted_by);
  EXPECT_EQ(a.duplicates_merged, b.duplicates_merged);
  std::uint64_t different = 0;
  for (std::uint64_t k = 0; k < a.nnz(); ++k) {
    for (int m = 0; m < a.order(); ++m) different += a.index(m, k) != b.index(m, k) ? 1U : 0U;
    different += std::signbit(a.value(k)) != std::signbit(b.value(k)) || a.value(k) != b.value(k) ? 1U : 0U;
  }
  EXPECT_EQ(different, 0U);
  for (std::size_t m = 0; m < a.dims.size(); ++m)
    EXPECT_EQ(a.labels.empty() ? ModeLabels() : a.labels[m], b.labels.empty() ? ModeLabels() : b.labels[m]);
}

inline bool all_views(const CooTensor& x) {
  const auto is_view = [](const auto& b) { return b.is_view(); };
  return std::visit(is_view, x.values) &&
         std::ranges::all_of(x.indices, [&](const IndexBuffer& b) { return std::visit(is_view, b); });
}

/// Order 2, sorted, with names and labels: every kind of section.
inline CooTensor small() {
  CooTensor x = make_coo({3, 2}, 4, Precision::f64, {});
  visit(x, []<class Index, class Value>(const CooView<Index, Value>& v) {
    constexpr std::array<int, 4> rows = {0, 0, 1, 2};
    constexpr std::array<int, 4> cols = {0, 1, 1, 0};
    for (std::size_t k = 0; k < 4; ++k) {
      v.indices[0][k] = static_cast<Index>(rows[k]);
      v.indices[1][k] = static_cast<Index>(cols[k]);
      v.values[k] = static_cast<Value>(1.5 * static_cast<double>(k));
    }
  });
  x.sorted_by = {0, 1};
  x.duplicates_merged = true;
  x.labels = {ModeLabels("city"), ModeLabels("day")};
  for (const char* label : {"Genf", "", "Z\xc3\xbcrich"}) x.labels[0].push_back(label);
  return x;
}

}  // namespace polyad::io::ptn_tests
