// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include "polyad/polyad.hpp"
#include "scratch.hpp"

namespace polyad {
namespace {

using test::Scratch;

ReadOptions columns(std::vector<std::string> names, std::string value = "") {
  ReadOptions o;
  o.columns = std::move(names);
  o.value_column = std::move(value);
  return o;
}

std::string sentence(const std::string& path, const ReadOptions& o) {
  try {
    (void)read(path, o);
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

TEST(Csv, RowsAreCountedAndLabelsSorted) {
  const Scratch s;
  const CooTensor x = read(s.file("log.csv", "user,day,item\r\nbob,10,tea\r\nann,9,\"milk, fresh\"\r\nbob,10,tea\r\n"),
                           columns({"user", "item", "day"}));
  EXPECT_EQ(x.dims, (std::vector<std::uint64_t>{2, 2, 2}));
  EXPECT_EQ(x.labels[0].name(), "user");
  EXPECT_EQ(x.labels[0][0], "ann");
  EXPECT_EQ(x.labels[1][0], "milk, fresh");
  EXPECT_EQ(x.labels[2][0], "9");  // as numbers, not as text
  EXPECT_EQ(x.nnz(), 2U);
  EXPECT_EQ(x.value(1), 2);
}

TEST(Csv, ValuesQuotesAndOtherDelimiters) {
  const Scratch s;
  const CooTensor x =
      read(s.file("a.csv", "\xef\xbb\xbfu;v;w\n\"a\"\"b\nc\";x;1.5\nd;y;2\n"), columns({"u", "v"}, "w"));
  EXPECT_EQ(x.labels[0][0], "a\"b\nc");
  EXPECT_EQ(x.value(0), 1.5);
  const CooTensor y = read(s.file("b.tsv", "7\t8\t2.5\n7\t9\t1\n"), columns({"1", "2"}, "3"));  // no header
  EXPECT_EQ(y.nnz(), 2U);
  EXPECT_EQ(y.labels[1][1], "9");
}

TEST(Csv, MistakesNameTheLine) {
  const Scratch s;
  const std::string path = s.file("a.csv", "u,v,w\n1,2,3\n1,2\n");
  EXPECT_NE(sentence(path, columns({"u", "v"}, "w")).find("a.csv:3: found 2 fields, expected 3"), std::string::npos);
  EXPECT_NE(sentence(path, columns({"u", "z"})).find("there are u, v, w"), std::string::npos);
  EXPECT_NE(sentence(path, {}).find("--columns"), std::string::npos);
  EXPECT_NE(sentence(s.file("b.csv", "u,v\n1,x\n"), columns({"u"}, "v")).find("b.csv:2:"), std::string::npos);
  EXPECT_NE(sentence(s.file("c.csv", "u,v\n\"1,x\n"), columns({"u"})).find("c.csv:2:"), std::string::npos);
  EXPECT_NE(sentence(s.file("d.csv", ""), columns({"u"})), "");
  EXPECT_NE(sentence(s.file("e.csv", "u,v\n"), columns({"u"})), "");
}

TEST(Csv, WritesWhatItReads) {
  const Scratch s;
  const std::string text = "user,item,value\nann,\"milk, fresh\",2.5\nbob,tea,1\n";
  write(read(s.file("a.csv", text), columns({"user", "item"}, "value")), s.path("b.csv"));
  EXPECT_EQ(s.content("b.csv"), text);
}

TEST(Labels, AreFoundTravelAndDoNotOverwrite) {
  const Scratch s;
  const std::string tns = s.file("a.tns", "1 1 1\n2 3 1\n");
  (void)s.file("mode-1-user.map", "ann\nbob\n");
  (void)s.file("mode-2-item.map", "tea\nmilk\nbeer\nwine\n");  // one more than the data show
  const ReadResult r = read_with_report(tns);
  EXPECT_EQ(r.tensor.labels[0].name(), "user");
  EXPECT_EQ(r.tensor.labels[1].size(), 3U);
  EXPECT_EQ(r.report.notes.size(), 1U);

  write(r.tensor, s.path("a.ptn"));
  const Scratch t;
  EXPECT_EQ(write(read(s.path("a.ptn")), t.path("b.tns")).size(), 3U);
  EXPECT_EQ(t.content("b.mode-1-user.map"), "ann\nbob\n");
  (void)t.file("mode-1-user.map", "somebody\nelse\n");
  write(read(s.path("a.ptn")), t.path("b.tns"));
  EXPECT_EQ(t.content("mode-1-user.map"), "somebody\nelse\n");
  EXPECT_EQ(read(t.path("b.tns")).labels[0][0], "ann");  // the one named after the tensor wins
}

TEST(Labels, WrongCounts) {
  const Scratch s;
  const std::string tns = s.file("a.tns", "1 1 1\n2 3 1\n");
  (void)s.file("mode-2-item.map", "tea\n");
  EXPECT_TRUE(read(tns).labels.empty());  // found by chance: noted, not used
  ReadOptions o;
  o.label_files = {"", s.path("mode-2-item.map")};
  EXPECT_NE(sentence(tns, o).find("has 1 labels, but mode 2 has 3"), std::string::npos);
}

}  // namespace
}  // namespace polyad
