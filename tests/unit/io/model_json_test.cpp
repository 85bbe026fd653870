// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <polyad/polyad.hpp>
#include <random>
#include <span>

#include "unit/scratch.hpp"

namespace polyad {
namespace {

std::string message_of(const std::string& path, const Context& context = {}) {
  try {
    (void)read_model(path, context);
  } catch (const Error& e) {
    return e.what();
  }
  return "read";
}

/// Random bits of every exponent, and the ends of the range.
CpModel wild_model(const std::vector<std::uint64_t>& dims, std::uint64_t rank) {
  std::mt19937_64 random(3);
  CpModel model;
  const auto next = [&] {
    double value = 0;
    do value = std::bit_cast<double>(random());
    while (!std::isfinite(value));
    return value;
  };
  for (std::uint64_t r = 0; r < rank; ++r) model.weights.push_back(next());
  for (const std::uint64_t d : dims) {
    Matrix& a = model.factors.emplace_back(d, rank);
    for (double& v : a.values) v = next();
  }
  using Limits = std::numeric_limits<double>;
  const std::vector<double> ends = {0.0, -0.0, Limits::max(), Limits::lowest(), Limits::denorm_min(), Limits::min()};
  std::ranges::copy(ends, model.factors[0].values.begin());
  return model;
}

void expect_same_bits(const CpModel& a, const CpModel& b) {
  const auto bits = [](std::span<const double> values) {
    std::vector<std::uint64_t> all;
    for (const double v : values) all.push_back(std::bit_cast<std::uint64_t>(v));
    return all;
  };
  EXPECT_EQ(bits(a.weights), bits(b.weights));
  ASSERT_EQ(a.order(), b.order());
  for (std::size_t m = 0; m < a.factors.size(); ++m) {
    EXPECT_EQ(a.factors[m].rows, b.factors[m].rows);
    EXPECT_EQ(a.factors[m].cols, b.factors[m].cols);
    EXPECT_EQ(bits(a.factors[m].values), bits(b.factors[m].values));
  }
}

TEST(ModelJson, TheSameBits) {
  const test::Scratch scratch;
  const CpModel model = wild_model({30000, 1, 7}, 3);  // several blocks of rows
  Context one;
  one.threads = 1;
  Context many;
  many.threads = 5;
  write(model, scratch.path("one.json"), one);
  write(model, scratch.path("many.json"), many);
  EXPECT_TRUE(scratch.content("one.json") == scratch.content("many.json"));
  expect_same_bits(read_model(scratch.path("one.json")), model);
  const CpModel vector = wild_model({6}, 1);
  write(vector, scratch.path("vector.json"));
  expect_same_bits(read_model(scratch.path("vector.json")), vector);
}

TEST(ModelJson, OtherProgramsReadIt) {
  const test::Scratch scratch;
  CpModel model;
  model.weights = {2.5, 1};
  model.factors = {Matrix(2, 2), Matrix(1, 2)};
  model.factors[0].values = {1, 0, -0.1, 1e-300};
  model.factors[1].values = {0.5, 0.25};
  model.labels = {ModeLabels("book"), ModeLabels()};
  model.labels[0].push_back("\"Genesis\"");
  model.labels[0].push_back("Éxodus\n");
  write(model, scratch.path("m.json"));
  const nlohmann::json json = nlohmann::json::parse(scratch.content("m.json"));
  EXPECT_EQ(json["weights"], model.weights);
  EXPECT_EQ(json["factors"], nlohmann::json::parse("[[[1.0, 0.0], [-0.1, 1e-300]], [[0.5, 0.25]]]"));
  EXPECT_EQ(json["modes"][0]["name"], "book");
  EXPECT_EQ(json["modes"][0]["labels"][0], "\"Genesis\"");
  EXPECT_EQ(json["modes"][0]["labels"][1], "Éxodus\n");
  EXPECT_EQ(json["modes"][1]["name"], "");
  EXPECT_TRUE(json["modes"][1]["labels"].empty());
  EXPECT_EQ(json.size(), 3U);
  EXPECT_NE(scratch.content("m.json").find("[-1.0000000000000001e-01, 1.0000000000000000e-300]"), std::string::npos);
}

TEST(ModelJson, ReadsWhatOtherProgramsWrite) {
  const test::Scratch scratch;
  // Any order and layout, a byte order mark, other names with anything in them, integers, escaped letters.
  const std::string text =
      "\xEF\xBB\xBF{\"modes\":[{\"labels\":[\"\\u00e9\\ud83d\\ude00\\t\\/\",\"\\u0041\"],\"x\":null},{\"name\":\"n\"}],"
      "\"about\":{\"a\":[1,[],{},{\"b\":[true,false,null,\"]}\\\"\",-1.5E+3]}]},"
      "\"f\\u0061ctors\":[[[1,2e0],[3,-4]],[[5,6]]],\n\n\"weights\" : [ 1 , 0.5 ]}  \n";
  const CpModel model = read_model(scratch.file("m.json", text));
  EXPECT_EQ(model.weights, (std::vector<double>{1, 0.5}));
  EXPECT_EQ(model.factors[0].values, (LargeVector<double>{1, 2, 3, -4}));
  EXPECT_EQ(model.factors[1].values, (LargeVector<double>{5, 6}));
  EXPECT_EQ(model.labels[0][0], "é😀\t/");
  EXPECT_EQ(model.labels[0][1], "A");
  EXPECT_EQ(model.labels[0].name(), "");
  EXPECT_EQ(model.labels[1].name(), "n");
  EXPECT_TRUE(read_model(scratch.file("n.json", R"({"weights":[1],"factors":[[[1]]]})")).labels.empty());
  EXPECT_TRUE(read_model(scratch.file("o.json", R"({"weights":[1],"factors":[[[1]]],"modes":[]})")).labels.empty());
}

TEST(ModelJson, BlocksEndAnywhere) {
  const test::Scratch scratch;
  std::string escapes;  // more than a block of the reader
  std::string label;
  for (int i = 0; i < 30000; ++i) {
    escapes += "\\ud83d\\ude00";
    label += "😀";
  }
  for (std::size_t shift = 0; shift < 12; ++shift) {
    const std::string text =
        std::string(shift, ' ') + R"({"weights":[1],"factors":[[[1]]],"modes":[{"labels":[")" + escapes + R"("]}]})";
    ASSERT_TRUE(read_model(scratch.file("m.json", text)).labels[0][0] == label) << shift;
  }
}

TEST(ModelJson, SaysWhereAndWhat) {
  const test::Scratch scratch;
  const auto expect = [&](const std::string& text, const std::string& part) {
    const std::string message = message_of(scratch.file("m.json", text));
    EXPECT_NE(message.find("m.json" + part), std::string::npos) << message << "\nexpected: " << part;
  };
  const std::string head = "{\"weights\": [1, 2],\n\"factors\": [\n";
  expect("", ":1: found the end of the file, expected an object {\"weights\"");
  expect("[1]", ":1: found an array, expected an object");
  expect("ktensor\n3\n", ":1: found 'ktensor', expected an object");
  expect("{}", ": found no \"weights\", expected a model");
  expect("{\"weights\": [1]}", ": found no \"factors\", expected a model");
  expect("{\"factors\": [[[1]]]}", ": found no \"weights\"");
  expect("{\"weights\": [], \"factors\": [[[]]]}", ": found no weights, expected one per component");
  expect("{\"weights\": [1], \"factors\": []}", ": found no factors");
  expect("{\"weights\": [1], \"factors\": [[]]}", ":1: found no rows in the factor of mode 1");
  // Numbers.
  expect(head + "[[1, NaN]]]}", ":3: found 'NaN', expected a finite number");
  expect(head + "[[1,\n-Infinity]]]}", ":4: found '-Infinity', expected a finite number");
  expect(head + "[[1, -nan]]]}", ":3: found '-nan', expected a finite number");
  expect(head + "[[1, 1e999]]]}", ":3: found '1e999', expected a finite number");
  expect(head + "[[1, 1e-999]]]}", ":3: found '1e-999', expected a finite number");
  expect(head + "[[1, null]]]}", ":3: found 'null', expected a finite number");
  expect(head + "[[1, +1]]]}", ":3: found '+1', expected a finite number");
  expect(head + "[[1, .5]]]}", ":3: found '.5', expected a finite number");
  expect(head + "[[1, 0x10]]]}", ":3: found '0x10', expected a finite number");
  expect(head + "[[1, \"2\"]]]}", ":3: found a string, expected a finite number");
  expect(head + "[[1, [2]]]]}", ":3: found an array, expected a finite number");
  expect(head + "[[1, " + std::string(3000, '7') + "]]]}", ":3: found '7777");
  expect("{\"weights\": 1", ":1: found '1', expected an array of weights");
  // Shapes.
  expect(head + "[[1, 2],\n[3]]]}", ":4: found 1 numbers in row 2 of the factor of mode 1, expected 2 as in the first");
  expect(head + "[[1, 2],\n[3, 4, 5]]]}", ":4: found 3 numbers in row 2");
  expect(head + "[[1, 2]],\n[[3]]]}", ":4: found 1 columns in the factor of mode 2, expected 2 as there are weights");
  expect(head + "[1, 2]]}", ":3: found '1', expected a row of the factor of mode 1 as an array of numbers");
  expect(head + "{}]}", ":3: found an object, expected the factor of mode 1 as an array of rows");
  std::string many = head;
  for (int m = 0; m < 33; ++m) many += m == 0 ? "[[1, 2]]" : ", [[1, 2]]";
  expect(many + "]}", ":3: found more than 32 matrices");
  // Labels.
  const std::string good = head + "[[1, 2], [3, 4]]],\n";
  expect(good + "\"modes\": [{\"labels\": [\"a\"]}]}",
         ":4: found 1 labels of mode 1, expected 2 as its factor has rows");
  expect(good + "\"modes\": [{}, {}]}", ":4: found 2 modes, expected 1 as there are factors");
  expect(good + "\"modes\": [\"a\"]}", ":4: found a string, expected an object {\"name\"");
  expect(good + "\"modes\": [{\"name\": 7}]}", ":4: found '7', expected the name of a mode in quotation marks");
  expect(good + "\"modes\": [{\"labels\": [1, 2]}]}", ":4: found '1', expected a label in quotation marks");
  expect(good + "\"modes\": [{\"labels\": \"a\"}]}", ":4: found a string, expected an array of labels");
  // Grammar.
  expect(good + "\"weights\": [1]}", ":4: found \"weights\" again, expected it once");
  expect(good.substr(0, good.size() - 2), ":3: found the end of the file, expected ',' or '}'");
  expect(good + "}", ":4: found '}', expected a name in quotation marks");
  expect(good + "\"x\" 1}", ":4: found '1', expected ':'");
  expect(good + "\"x\": }", ":4: found '}', expected a value");
  expect(good + "\"x\": nul}", ":4: found 'nul', expected a value");
  expect(good + "\"x\": [1 2]}", ":4: found '2', expected ',' or ']'");
  expect(good + "\"x\": [1, 2}", ":4: found '}', expected ',' or ']'");
  expect(good + "\"x\": [1]} more", ":4: found 'more', expected the end of the file");
  expect(good + "\"x\": \"a", ":4: found the end of the file in a string");
  expect(good + "\"x\": \"a\nb\"}", ":4: found the byte 10 in a string, expected '\\u000a'");
  expect(good + "\"x\": \"\\x\"}", ":4: found '\\x\"}' in a string, expected an escaped character");
  expect(good + "\"x\": \"\\u12g4\"}", ":4: found '\\u12g4' in a string");
  expect(good + "\"x\": \"\\ud800 \"}", ":4: found '\\ud800' in a string");
  expect(good + "\"x\": \"\\u12", ":4: found '\\u12' in a string");
  expect(good + "\"x\": " + std::string(100000, '['), ":4: found more than 1000 brackets inside one another");
}

TEST(ModelJson, CutAnywhere) {
  const test::Scratch scratch;
  CpModel model = wild_model({3, 2}, 2);
  model.labels = {ModeLabels("\\é\n"), ModeLabels()};
  for (int i = 0; i < 3; ++i) model.labels[0].push_back("\xFF\"\\");
  write(model, scratch.path("m.json"));
  const std::string text = scratch.content("m.json");
  for (std::size_t length = 0; length + 2 < text.size(); ++length)
    ASSERT_NE(message_of(scratch.file("cut.json", text.substr(0, length))), "read") << length;
}

TEST(ModelJson, AppearsWholeOrNotAtAll) {
  const test::Scratch scratch;
  CpModel model = wild_model({3, 20000}, 2);
  model.factors[1].values[30000] = std::numeric_limits<double>::quiet_NaN();
  try {
    write(model, scratch.path("m.json"));
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("the factor of mode 2 has nan, which JSON cannot hold"), std::string::npos);
  }
  EXPECT_EQ(scratch.count(), 0U);
}

TEST(ModelJson, RespectsTheLimit) {
  const test::Scratch scratch;
  write(wild_model({20000}, 4), scratch.path("m.json"));
  Context context;
  context.memory = std::make_shared<MemoryBudget>(300'000);
  EXPECT_NE(message_of(scratch.path("m.json"), context).find("the model needs"), std::string::npos);
  EXPECT_EQ(context.memory->used(), 0U);
}

}  // namespace
}  // namespace polyad
