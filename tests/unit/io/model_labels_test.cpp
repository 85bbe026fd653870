// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <polyad/polyad.hpp>

#include "io/label_text.hpp"
#include "io/npy.hpp"
#include "io/output_file.hpp"
#include "io/zip_archive.hpp"
#include "unit/scratch.hpp"

namespace polyad {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;

/// What is hard to keep: separators of every form, all bytes, UTF-8 of 1 to 4 bytes, what only looks like UTF-8.
std::vector<std::string> awkward_labels() {
  std::vector<std::string> labels = {"plain",
                                     "",
                                     " blanks \t ",
                                     "back\\slash",
                                     "\\n",
                                     "line\nbreak",
                                     "carriage\r",
                                     "\r\n",
                                     "\"quoted\", 'too'",
                                     "\0inside\0"s,
                                     "\0"s,
                                     "é ‑ 北京 😀",
                                     "\xC3",
                                     "\xC3\x28",
                                     "latin-1: \xE9t\xE9",
                                     "\xED\xB2\x80",                            // a surrogate
                                     "\xC0\x80 \xE0\x80\xA9 \xF0\x80\x80\xA9",  // detours
                                     "\xF4\x90\x80\x80",                        // above the last character
                                     "\xF9\x80\x80\x80 \xFF",                   // never first bytes
                                     "\xE5\x8C",                                // cut
                                     "\\udc80",
                                     "\x7F\x01\x1F",
                                     "1e5"};
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  labels.push_back(all);
  labels.emplace_back(1000, 'x');
  labels.emplace_back("");  // the last one is empty
  return labels;
}

CpModel labelled_model(const std::vector<std::string>& labels) {
  const std::vector<std::uint64_t> dims = {labels.size(), 2, 3};
  CpModel model = random_model(dims, 2);
  model.labels = {ModeLabels("näme \"1\"\n"), ModeLabels(), ModeLabels("only a name")};
  for (const std::string& label : labels) model.labels[0].push_back(label);
  return model;
}

template <class F>
std::string message_of(const F& f, ErrorKind kind = ErrorKind::input) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    return e.what();
  }
  return "nothing was thrown";
}

void expect_message(const std::string& message, const std::string& part) {
  EXPECT_NE(message.find(part), std::string::npos) << message << "\nexpected: " << part;
}

TEST(ModelLabels, SurviveEveryForm) {
  const test::Scratch scratch;
  const CpModel model = labelled_model(awkward_labels());
  for (const char* form : {"dir", "model.npz", "model.json", "model.json.gz", "model.json.zst"}) {
    write(model, scratch.path(form));
    const CpModel back = read_model(scratch.path(form));
    ASSERT_EQ(back.labels.size(), 3U) << form;
    for (std::size_t m = 0; m < 3; ++m) EXPECT_EQ(back.labels[m].name(), model.labels[m].name()) << form;
    ASSERT_EQ(back.labels[0].size(), model.labels[0].size()) << form;
    for (std::size_t i = 0; i < model.labels[0].size(); ++i)
      EXPECT_EQ(back.labels[0][i], model.labels[0][i]) << form << " label " << i;
    EXPECT_TRUE(back.labels == model.labels) << form;
    EXPECT_EQ(back.factors[0].values, model.factors[0].values) << form;
  }
  // The other files of the directory and a text file have the same numbers; text files have no labels.
  EXPECT_TRUE(read_model(scratch.path("dir/model.ktensor")).labels.empty());
  fs::remove(scratch.path("dir/model.ktensor"));
  EXPECT_TRUE(read_model(scratch.path("dir")).labels == model.labels);
}

TEST(ModelLabels, ManyLabels) {
  const test::Scratch scratch;
  std::vector<std::string> labels;  // several blocks of every writer and reader
  for (int i = 0; i < 50000; ++i) labels.push_back("label\\" + std::to_string(i) + (i % 7 == 0 ? "\n" : "é"));
  const CpModel model = labelled_model(labels);
  for (const char* form : {"dir", "model.npz", "model.json"}) {
    write(model, scratch.path(form));
    EXPECT_TRUE(read_model(scratch.path(form)).labels == model.labels) << form;
  }
}

TEST(ModelLabels, NoneAndEmptyOnesAreTheSame) {
  const test::Scratch scratch;
  CpModel model = labelled_model({"a", "b"});
  for (const bool some : {false, true}) {
    model.labels.assign(some ? 3 : 0, ModeLabels());
    for (const char* form : {"dir", "model.npz", "model.json"}) {
      write(model, scratch.path(form));
      EXPECT_TRUE(read_model(scratch.path(form)).labels.empty()) << form;
    }
  }
  // Labels that are all empty are labels.
  model.labels.assign(3, ModeLabels());
  for (int i = 0; i < 2; ++i) model.labels[0].push_back("");
  for (const char* form : {"dir", "model.npz", "model.json"}) {
    write(model, scratch.path(form));
    EXPECT_TRUE(read_model(scratch.path(form)).labels == model.labels) << form;
  }
}

TEST(ModelLabels, LinesOfTheDirectory) {
  const test::Scratch scratch;
  write(labelled_model({"a\\b", "c\nd", "e\rf", ""}), scratch.path("m"));
  EXPECT_EQ(scratch.content("m/mode1.labels"), "a\\\\b\nc\\nd\ne\\rf\n\n");
  EXPECT_FALSE(fs::exists(scratch.path("m/mode2.labels")));
  EXPECT_FALSE(fs::exists(scratch.path("m/mode3.labels")));
  // As an editor of another system may leave it: \r\n, and no line break at the end.
  (void)scratch.file("m/mode1.labels", "one\r\ntwo\r\nthree\r\nfour");
  const CpModel back = read_model(scratch.path("m"));
  EXPECT_EQ(back.labels[0][0], "one");
  EXPECT_EQ(back.labels[0][3], "four");
}

TEST(ModelLabels, WrongLinesAreSaid) {
  const test::Scratch scratch;
  write(labelled_model({"a", "b", "c"}), scratch.path("m"));
  const auto message = [&](const std::string& text) {
    (void)scratch.file("m/mode1.labels", text);
    return message_of([&] { (void)read_model(scratch.path("m")); });
  };
  expect_message(message("a\nb\n"), "m/mode1.labels:3: found the end of the file after 2 labels, expected 3");
  expect_message(message(""), "m/mode1.labels:1: found the end of the file after 0 labels, expected 3");
  expect_message(message("a\nb\nc\nd\n"), "m/mode1.labels:4: found one more label, expected 3");
  expect_message(message("a\nb\nc\n\n"), "m/mode1.labels:4: found one more label");
  expect_message(message("a\nb\\x\nc\n"), "m/mode1.labels:2: found 'b\\x', expected \\\\, \\n or \\r");
  expect_message(message("a\nb\nc\\"), "m/mode1.labels:3: found 'c\\'");
}

TEST(ModelLabels, AnotherSummaryIsNoError) {
  const test::Scratch scratch;
  const CpModel model = labelled_model({"a", "b"});
  write(model, scratch.path("m"));
  for (const char* text : {"", "nonsense", "[1, 2]", "{\"labels\": 7}", "{\"labels\": [\"one\"]}",
                           "{\"labels\": [1, 2, 3]}", "{\"labels\": [\"a\", \"b\", \"c\"", "{}"}) {
    (void)scratch.file("m/summary.json", text);
    const CpModel back = read_model(scratch.path("m"));
    ASSERT_EQ(back.labels.size(), 3U) << text;
    EXPECT_EQ(back.labels[0].name(), "") << text;
    EXPECT_EQ(back.labels[0].size(), 2U) << text;
  }
  (void)scratch.file("m/summary.json", R"({"more": [{"a": [[], {}]}, null, true, -1e5], "labels": ["x", "", "z"]})");
  EXPECT_EQ(read_model(scratch.path("m")).labels[2].name(), "z");
  fs::remove(scratch.path("m/summary.json"));
  EXPECT_EQ(read_model(scratch.path("m")).labels[0].size(), 2U);
}

TEST(ModelLabels, NothingOfAnOlderModelStays) {
  const test::Scratch scratch;
  CpModel model = labelled_model({"a", "b"});
  model.labels[2].push_back("p");
  model.labels[2].push_back("q");
  model.labels[2].push_back("r");
  write(model, scratch.path("m"));
  ASSERT_TRUE(fs::exists(scratch.path("m/mode3.labels")));
  (void)scratch.file("m/mode30.labels", "not of this model\n");
  (void)scratch.file("m/notes.txt", "mine");
  CpModel smaller = model;
  smaller.factors.pop_back();
  smaller.labels.pop_back();
  smaller.labels[0] = ModeLabels();
  write(smaller, scratch.path("m"));
  for (const char* name : {"mode1.labels", "mode3.labels", "mode30.labels", "mode3.mat"})
    EXPECT_FALSE(fs::exists(scratch.path(std::string("m/") + name))) << name;
  EXPECT_EQ(scratch.content("m/notes.txt"), "mine");
  EXPECT_TRUE(read_model(scratch.path("m")).labels.empty());
  fs::remove(scratch.path("m/model.ktensor"));
  EXPECT_EQ(read_model(scratch.path("m")).order(), 2);
}

TEST(ModelLabels, OnesThatDoNotFitAreNotWritten) {
  const test::Scratch scratch;
  CpModel model = labelled_model({"a", "b"});
  model.labels[1].push_back("one of two");
  for (const char* form : {"m", "m.npz", "m.json"})
    expect_message(message_of([&] { write(model, scratch.path(form)); }, ErrorKind::usage),
                   "mode 2 has 1 labels for 2 indices");
  model.labels.pop_back();
  expect_message(message_of([&] { write(model, scratch.path("m")); }, ErrorKind::usage),
                 "labels for 2 modes, expected 3 or none");
  EXPECT_EQ(scratch.count(), 0U);
}

TEST(ModelLabels, CountInTheBudget) {
  const test::Scratch scratch;
  CpModel model = labelled_model(std::vector<std::string>(3000, std::string(100, 'x')));
  for (const char* form : {"dir", "model.npz", "model.json"}) {
    write(model, scratch.path(form));
    Context context;
    context.memory = std::make_shared<MemoryBudget>(200'000);  // the numbers would fit
    expect_message(message_of([&] { (void)read_model(scratch.path(form), context); }, ErrorKind::limit),
                   "the model needs");
    EXPECT_EQ(context.memory->used(), 0U);
  }
}

// ---- NumPy's text

std::string little(const std::vector<std::uint32_t>& characters) {
  return {reinterpret_cast<const char*>(characters.data()), characters.size() * 4};
}

/// A model of two rows, one column and one mode, with this as its labels.
std::string write_npz(const test::Scratch& scratch, const std::string& descr, const std::vector<std::uint64_t>& shape,
                      const std::string& bytes, const char* entry = "mode1_labels.npy") {
  io::OutputFile file(scratch.path("x.npz"), io::Compression::none);
  io::ZipWriter zip(file);
  const auto add = [&](std::string_view name, const std::string& data) {
    zip.add(name, [&](const io::ByteSink& sink) { sink(data.data(), data.size()); });
  };
  const std::vector<double> numbers = {1, 2};
  const std::string raw(reinterpret_cast<const char*>(numbers.data()), 16);
  add("lambda.npy", io::npy_header("<f8", std::vector<std::uint64_t>{1}) + raw.substr(0, 8));
  add("mode1.npy", io::npy_header("<f8", std::vector<std::uint64_t>{2, 1}) + raw);
  add(entry, io::npy_header(descr, shape) + bytes);
  zip.finish();
  file.commit();
  return scratch.path("x.npz");
}

TEST(ModelLabels, TextOfNumPy) {
  const test::Scratch scratch;
  const CpModel a = read_model(write_npz(scratch, "<U3", {2}, little({'a', 0xE9, 0, 0x1F600, 'b', 'c'})));
  EXPECT_EQ(a.labels[0][0], "aé");
  EXPECT_EQ(a.labels[0][1], "😀bc");
  const CpModel b = read_model(write_npz(scratch, ">U1", {2}, "\0\0\0a\0\0\0\xE9"s));
  EXPECT_EQ(b.labels[0][0], "a");
  EXPECT_EQ(b.labels[0][1], "é");
  const CpModel c = read_model(write_npz(scratch, "<U0", {2}, ""));
  EXPECT_EQ(c.labels[0].size(), 2U);
  EXPECT_EQ(c.labels[0][1], "");
  const CpModel d = read_model(write_npz(scratch, "<U3", {2}, little({0, 'x', 0, 0, 0, 0})));
  EXPECT_EQ(d.labels[0][0], "\0x"s);
  EXPECT_EQ(d.labels[0][1], "");
  const CpModel e = read_model(write_npz(scratch, "<U4", {1}, little({'n', 'a', 'm', 'e'}), "mode_names.npy"));
  EXPECT_EQ(e.labels[0].name(), "name");
  EXPECT_TRUE(e.labels[0].empty());
}

TEST(ModelLabels, WrongTextOfNumPyIsSaid) {
  const test::Scratch scratch;
  const auto message = [&](const std::string& descr, const std::vector<std::uint64_t>& shape, const std::string& bytes,
                           const char* entry = "mode1_labels.npy") {
    const std::string path = write_npz(scratch, descr, shape, bytes, entry);
    return message_of([&] { (void)read_model(path); });
  };
  const std::string two = little({'a', 'b'});
  expect_message(message("<U1", {3}, two + two), "found mode1_labels.npy of shape (3), expected 2 texts");
  expect_message(message("<U1", {2, 1}, two), "of shape (2, 1), expected 2 texts");
  expect_message(message("<U1", {2}, two, "mode_names.npy"), "found mode_names.npy of shape (2), expected 1 texts");
  expect_message(message("<U2", {2}, two), "found 8 bytes of text in mode1_labels.npy, expected 2 x 8");
  expect_message(message("<U4294967295", {2}, two), "expected 2 x 17179869180");
  expect_message(message("<U0", {2}, two), "found 8 bytes of text");
  expect_message(message("|S4", {2}, two), "found type '|S4', expected text such as '<U20'");
  expect_message(message("|O", {2}, two), "found type '|O'");
  expect_message(message("<U1x", {2}, two), "found type '<U1x'");
  expect_message(message("<U", {2}, two), "found type '<U'");
  expect_message(message("<U1", {2}, little({'a', 0xD800})), "found U+D800 in mode1_labels.npy");
  expect_message(message("<U1", {2}, little({'a', 0x110000})), "found U+110000");
}

TEST(LabelText, CharactersAndBack) {
  for (std::uint32_t c = 0; c <= 0x10FFFF; ++c) {
    std::string text;
    const bool is_surrogate = c >= 0xD800 && c < 0xE000;
    const bool is_byte = c >= 0xDC00 && c <= 0xDCFF;
    ASSERT_EQ(io::append_character(text, c), !is_surrogate || is_byte) << c;
    if (is_surrogate) continue;
    std::size_t at = 0;
    ASSERT_EQ(io::next_character(text, at), c);
    ASSERT_EQ(at, text.size());
  }
}

}  // namespace
}  // namespace polyad
