// SPDX-License-Identifier: MIT
// Input streams that decompress, output files that appear whole or not at all.
#include <gtest/gtest.h>
#include <unistd.h>

#include <random>

#include "io/input_stream.hpp"
#include "io/output_file.hpp"
#include "polyad/error.hpp"
#include "scratch.hpp"

namespace polyad::io {
namespace {

using test::Scratch;

std::string some_text(std::size_t bytes) {
  std::mt19937 random(1);
  std::string text;
  while (text.size() < bytes) text += std::to_string(random() % 1000) + (random() % 5 == 0 ? "\n" : " ");
  return text;
}

std::string read_all(const std::string& path) {
  InputStream in(path);
  std::string all;
  std::string part(10007, '\0');
  while (const std::size_t n = in.read(part.data(), part.size())) all.append(part, 0, n);
  return all;
}

void write_all(const std::string& path, const std::string& text) {
  OutputFile out(path, compression_of(path));
  out.write(text);
  out.commit();
}

TEST(Streams, RoundTripThroughEveryCompression) {
  const Scratch s;
  for (const std::size_t bytes : {0UL, 1UL, 1000UL, 3500000UL}) {
    const std::string text = bytes == 0 ? "" : some_text(bytes);
    for (const char* name : {"a.txt", "a.txt.gz", "a.txt.zst"}) {
      write_all(s.path(name), text);
      EXPECT_EQ(read_all(s.path(name)), text) << name << bytes;
    }
  }
}

TEST(Streams, TruncatedCompressedDataIsRefusedAtEveryLength) {
  const Scratch s;
  for (const char* name : {"a.gz", "a.zst"}) {
    write_all(s.path(name), some_text(2000));
    const std::string whole = s.content(name);
    for (std::size_t n = 4; n < whole.size(); n += 7)
      EXPECT_THROW(read_all(s.file(name, whole.substr(0, n))), Error) << name << n;
  }
}

TEST(Streams, MembersFramesAndGarbage) {
  const Scratch s;
  for (const char* name : {"a.gz", "a.zst"}) {
    write_all(s.path(name), "first\n");
    const std::string one = s.content(name);
    EXPECT_EQ(read_all(s.file(name, one + one)), "first\nfirst\n");
    EXPECT_THROW(read_all(s.file(name, one + "garbage")), Error);
  }
}

TEST(Streams, PeekTakesNothing) {
  const Scratch s;
  InputStream in(s.file("a", "hello world"));
  EXPECT_EQ(in.peek(5).substr(0, 5), "hello");
  EXPECT_EQ(in.peek(100), "hello world");
  char c = 0;
  in.read_exactly(&c, 1, "a letter");
  EXPECT_EQ(c, 'h');
  EXPECT_EQ(in.peek(3).substr(0, 3), "ell");
  std::string rest(20, '\0');
  EXPECT_EQ(in.read(rest.data(), 20), 10U);
  EXPECT_THROW(in.read_exactly(&c, 1, "a letter"), Error);
}

TEST(Streams, AFileThatShrinksIsNoticed) {
  const Scratch s;
  const std::string path = s.file("a", std::string(1000000, 'x'));
  InputStream in(path);
  std::string part(1000, '\0');
  in.read(part.data(), part.size());
  ASSERT_EQ(truncate(path.c_str(), 5000), 0);
  std::string rest(1000000, '\0');
  EXPECT_THROW(in.read(rest.data(), rest.size()), Error);
}

TEST(Outputs, NothingIsThereBeforeCommitNorAfterGivingUp) {
  const Scratch s;
  {
    OutputFile out(s.path("a"), Compression::none);
    out.write(std::string(3000000, 'x'));
    EXPECT_EQ(s.count(), 0U);
  }
  EXPECT_EQ(s.count(), 0U);
  (void)s.file("a", "old");
  {
    OutputFile out(s.path("a"), Compression::none);
    out.write("new");
    EXPECT_EQ(s.content("a"), "old");
    out.commit();
  }
  EXPECT_EQ(s.content("a"), "new");
  EXPECT_EQ(s.count(), 1U);
}

TEST(Outputs, BadPlaces) {
  const Scratch s;
  EXPECT_THROW(OutputFile(s.path("none/a"), Compression::none), Error);
  EXPECT_THROW(OutputFile(s.path(""), Compression::none), Error);
  OutputFile full("/dev/full", Compression::none);
  try {
    full.write(std::string(3000000, 'x'));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::limit);
  }
}

TEST(Outputs, LinksStayLinks) {
  const Scratch s;
  (void)s.file("target", "old");
  std::filesystem::create_symlink("target", s.path("link"));
  write_all(s.path("link"), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(s.path("link")));
  EXPECT_EQ(s.content("target"), "new");
}

}  // namespace
}  // namespace polyad::io
