// SPDX-License-Identifier: MIT
/// \file Every format and MTTKRP kernel on the real tensors of the shared data folder beside the clone: nothing is
/// lost, and the results are exact (their values are whole numbers). Skipped without the folder.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <polyad/polyad.hpp>

#include "matrix/cases.hpp"
#include "oracle/kernel_oracle.hpp"

namespace polyad {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> folders() {
  std::vector<std::string> found;
  const fs::path data = fs::path(POLYAD_SOURCE_DIR).parent_path() / "shared" / "data";
  if (fs::is_directory(data))
    for (const auto& entry : fs::recursive_directory_iterator(data))
      if (entry.path().filename() == "summary.json") found.push_back(entry.path().parent_path().string());
  std::sort(found.begin(), found.end());
  if (found.empty()) found.emplace_back();  // one case that says it was skipped
  return found;
}

class SharedData : public testing::TestWithParam<std::string> {};

/// What the summary says of a tensor, found in one that came back from a format.
void expect_summary(const CooTensor& x, const nlohmann::json& summary) {
  const TensorStatistics s = statistics(x);
  EXPECT_EQ(x.nnz(), summary["nnz"]);
  EXPECT_EQ(s.sum, summary["sum_values"].get<double>());
  EXPECT_DOUBLE_EQ(s.norm, summary["fro_norm"].get<double>());
  for (std::size_t m = 0; m < x.dims.size(); ++m) {
    EXPECT_EQ(s.modes[m].slices.count, summary["modes"][m]["nonempty_slices"]);
    EXPECT_EQ(s.modes[m].slices.max, summary["modes"][m]["max_slice_nnz"]);
    EXPECT_EQ(s.modes[m].fibres.count, summary["modes"][m]["fibres"]);
  }
}

TEST_P(SharedData, EveryFormatAndKernelIsExact) {
  if (GetParam().empty()) GTEST_SKIP() << "no shared data folder beside the clone";
#ifdef POLYAD_SANITIZED
  GTEST_SKIP() << "too slow under a sanitizer; the battery runs there";
#endif
  const fs::path folder = GetParam();
  const nlohmann::json summary = nlohmann::json::parse(std::ifstream(folder / "summary.json"));
  fs::path file;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().filename().string().find(".tns") != std::string::npos) file = entry.path();
  Context context;
  context.threads = 2;
  const CooTensor x = read(file.string(), {}, context);

  constexpr std::uint64_t rank = 3;
  cases::Dice dice(1);
  std::vector<oracle::Dense> dense;
  std::vector<FactorMatrix<double>> factors;
  for (const std::uint64_t d : x.dims) {
    oracle::Dense& f = dense.emplace_back(d, rank);
    FactorMatrix<double>& g = factors.emplace_back(context, d, rank);
    for (std::uint64_t i = 0; i < d; ++i)
      for (std::uint64_t r = 0; r < rank; ++r) g(i, r) = f(i, r) = static_cast<double>(dice.below(5)) - 2;
  }
  std::vector<oracle::Dense> expected;
  for (int mode = 0; mode < x.order(); ++mode) expected.push_back(oracle::mttkrp(x, dense, mode));

  int ran = 0;
  for (const FormatEntry& format : formats()) {
    SCOPED_TRACE(format.name);
    Tensor t;
    try {
      t = build(x, format.name, {}, context);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::limit) << e.what();
      continue;
    }
    expect_summary(t.to_coo(context), summary);
    Workspace workspace;
    for (const KernelEntry& kernel : kernels()) {
      if (kernel.operation != "mttkrp") continue;
      for (int mode = 0; mode < x.order(); ++mode) {
        const oracle::Dense& want = expected[static_cast<std::size_t>(mode)];
        FactorMatrix<double> out(context, want.rows, rank);
        try {
          mttkrp<double>(t, std::span<const FactorMatrix<double>>(factors), mode, out, workspace, context, kernel.name);
        } catch (const Error& e) {
          EXPECT_EQ(e.kind(), ErrorKind::usage) << e.what();
          continue;
        }
        std::uint64_t wrong = 0;
        for (std::uint64_t i = 0; i < want.rows; ++i)
          for (std::uint64_t r = 0; r < rank; ++r) wrong += out(i, r) != want(i, r);
        EXPECT_EQ(wrong, 0U) << kernel.name << ", mode " << mode + 1;
        ++ran;
      }
    }
  }
  fmt::print("{}: {} MTTKRPs\n", folder.filename().string(), ran);
  EXPECT_GT(ran, 0);
}

INSTANTIATE_TEST_SUITE_P(Tensors, SharedData, testing::ValuesIn(folders()), [](const auto& one) {
  std::string name = one.param.empty() ? "none" : fs::path(one.param).filename().string();
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
});

}  // namespace
}  // namespace polyad
