// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "polyad/error.hpp"
#include "polyad/io.hpp"
#include "polyad/version.hpp"

namespace polyad {
namespace {

namespace fs = std::filesystem;

/// A folder that goes away with the test.
class ModelFiles : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() /
              (std::string("polyad_model_") + testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string text_of(const std::string& name) const {
    std::ifstream in(folder_ / name);
    EXPECT_TRUE(in.is_open()) << name;
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }

  fs::path folder_;
};

CpModel small_model() {
  CpModel model;
  model.weights = {2.5, 1};
  model.factors = {Matrix(2, 2), Matrix(1, 2)};
  model.factors[0].values = {1, 0, -0.1, 1e-300};
  model.factors[1].values = {0.5, 0.25};
  return model;
}

TEST_F(ModelFiles, Text) {
  CpModel model = small_model();
  model.labels = {ModeLabels("book"), ModeLabels("word")};
  write(model, folder_.string());
  const std::string rows1 =
      "1.0000000000000000e+00 0.0000000000000000e+00\n-1.0000000000000001e-01 1.0000000000000000e-300\n";
  const std::string rows2 = "5.0000000000000000e-01 2.5000000000000000e-01\n";
  EXPECT_EQ(text_of("mode1.mat"), rows1);
  EXPECT_EQ(text_of("mode2.mat"), rows2);
  EXPECT_EQ(text_of("lambda.mat"), "2.5000000000000000e+00\n1.0000000000000000e+00\n");
  EXPECT_EQ(text_of("model.ktensor"),
            "ktensor\n2\n2 1\n2\n2.5000000000000000e+00 1.0000000000000000e+00\nmatrix\n2\n2 2\n" + rows1 +
                "matrix\n2\n1 2\n" + rows2);
  const nlohmann::json json = nlohmann::json::parse(text_of("summary.json"));
  EXPECT_EQ(json["rank"], 2);
  EXPECT_EQ(json["order"], 2);
  EXPECT_EQ(json["dims"], (std::vector<int>{2, 1}));
  EXPECT_EQ(json["weights"], (std::vector<double>{2.5, 1}));
  EXPECT_EQ(json["labels"], (std::vector<std::string>{"book", "word"}));
  EXPECT_EQ(json["version"], version);
  int files = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder_)) ++files;
  EXPECT_EQ(files, 5);  // nothing left over
}

TEST_F(ModelFiles, ManyRowsReadBackToTheSameBits) {
  CpModel model;
  model.weights = {1, 2, 3};
  model.factors = {Matrix(30000, 3), Matrix(7, 3)};
  double v = 1;
  for (Matrix& a : model.factors)
    for (double& x : a.values) x = v = v * 1.37 > 1e200 ? 1e-200 : v * 1.37;
  Context one;
  one.threads = 1;
  Context many;
  many.threads = 7;
  write(model, (folder_ / "deep" / "one").string(), one);
  write(model, (folder_ / "deep" / "many/").string(), many);
  for (const char* name : {"model.ktensor", "mode1.mat", "mode2.mat"})
    EXPECT_EQ(text_of(std::string("deep/one/") + name), text_of(std::string("deep/many/") + name));
  std::ifstream in(folder_ / "deep" / "one" / "mode1.mat");
  for (const double want : model.factors[0].values) {
    std::string token;
    ASSERT_TRUE(in >> token);
    ASSERT_EQ(std::stod(token), want);
  }
}

TEST_F(ModelFiles, WritesOverAnOlderModel) {
  write(small_model(), folder_.string());
  CpModel model = small_model();
  model.weights[0] = 7;
  write(model, folder_.string());
  EXPECT_EQ(text_of("lambda.mat").substr(0, 3), "7.0");
}

TEST_F(ModelFiles, RefusesAFile) {
  std::ofstream(folder_) << "precious";
  try {
    write(small_model(), folder_.string());
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("is a file; a model is written as a directory"), std::string::npos);
  }
  std::ifstream in(folder_);
  std::string word;
  in >> word;
  EXPECT_EQ(word, "precious");
}

TEST_F(ModelFiles, RefusesAModelThatDoesNotFitTogether) {
  CpModel model = small_model();
  model.weights.push_back(1);
  EXPECT_THROW(write(model, folder_.string()), Error);
  EXPECT_THROW(write(CpModel{}, folder_.string()), Error);
  EXPECT_FALSE(fs::exists(folder_));
}

}  // namespace
}  // namespace polyad
