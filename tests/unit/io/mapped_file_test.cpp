// SPDX-License-Identifier: MIT
#include "io/mapped_file.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "io/ptn.hpp"
#include "polyad/error.hpp"
#include "unit/io/ptn_fixture.hpp"

namespace polyad::io {
namespace {

using namespace ptn_tests;

class MappedFileTest : public Ptn {};

TEST_F(MappedFileTest, MappedFilesAreKnownByTheirAddresses) {
  const std::string file = save_bytes("hello", "x");
  const void* gone = nullptr;
  {
    const MappedFile a(file);
    const MappedFile b(file);
    EXPECT_EQ(a.size(), 5U);
    EXPECT_EQ(std::memcmp(a.data(), "hello", 5), 0);
    EXPECT_EQ(mapped_path_at(a.data() + 4), a.path().c_str());
    EXPECT_EQ(mapped_path_at(b.data()), b.path().c_str());
    EXPECT_EQ(mapped_path_at(&file), nullptr);
    gone = a.data();
  }
  EXPECT_EQ(mapped_path_at(gone), nullptr);
  EXPECT_EQ(MappedFile(save_bytes("", "empty")).data(), nullptr);
  EXPECT_THROW(MappedFile("/dev/null"), Error);
  EXPECT_THROW(MappedFile(path("nothing")), Error);

  std::vector<std::unique_ptr<MappedFile>> many;
  for (int i = 0; i < 300; ++i) many.push_back(std::make_unique<MappedFile>(file));
  EXPECT_NE(mapped_path_at(many[0]->data()), nullptr);
  EXPECT_EQ(mapped_path_at(many[299]->data()), nullptr);  // the table is full
  many.clear();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        const MappedFile m(file);
        EXPECT_EQ(mapped_path_at(m.data()), m.path().c_str());
      }
    });
  }
  for (std::thread& t : threads) t.join();
}

TEST_F(MappedFileTest, AFileCutOffUnderTheMappingIsNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto cut = [&] {
    struct sigaction action = {};
    action.sa_flags = SA_SIGINFO;
    action.sa_sigaction = [](int, siginfo_t* info, void*) {
      const char* name = mapped_path_at(info->si_addr);
      if (name == nullptr) _exit(1);
      const ssize_t written = ::write(STDERR_FILENO, name, std::strlen(name));
      _exit(written > 0 ? 7 : 1);
    };
    sigaction(SIGBUS, &action, nullptr);
    ReadOptions lazily;
    lazily.verify = false;
    const std::string file = save(small(), "cut.ptn");
    const CooTensor x = open(file, lazily);
    if (truncate(file.c_str(), 4096) != 0) _exit(2);
    std::filesystem::remove_all(std::filesystem::path(file).parent_path());  // nobody else will; the mapping stays
    _exit(x.value(0) == 0.25 ? 3 : 4);
  };
  EXPECT_EXIT(cut(), testing::ExitedWithCode(7), "cut\\.ptn");
}

}  // namespace
}  // namespace polyad::io
