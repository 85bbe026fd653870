// SPDX-License-Identifier: MIT
// Loading and writing against a plain loader (strtoull and strtod on one thread, as most programs of the field load),
// in one run: only the ratios mean something on a machine that others use too.
//   io_bench [NNZ] [FOLDER]     default 20,000,000 nonzeros like nell-2, in the folder for temporary files
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <polyad/polyad.hpp>
#include <string>
#include <vector>

#include "io/input_stream.hpp"

namespace {

using namespace polyad;
using Clock = std::chrono::steady_clock;

double seconds(const std::function<void()>& f) {
  const auto begin = Clock::now();
  f();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

struct Measured {
  double seconds = 0;
  double peak_bytes = 0;  // of the process, less what it had before
};

/// Runs f in a process of its own, so that its peak memory is its own too. f returns its seconds.
Measured in_child(const std::function<double()>& f) {
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) std::abort();
  const pid_t child = fork();
  if (child == 0) {
    rusage before = {};
    getrusage(RUSAGE_SELF, &before);
    Measured m;
    m.seconds = f();
    rusage after = {};
    getrusage(RUSAGE_SELF, &after);
    m.peak_bytes = static_cast<double>(after.ru_maxrss - before.ru_maxrss) * 1024;
    const bool sent = write(pipe_ends[1], &m, sizeof m) == sizeof m;
    _exit(sent ? 0 : 1);
  }
  close(pipe_ends[1]);
  Measured m;
  const bool got = read(pipe_ends[0], &m, sizeof m) == sizeof m;
  close(pipe_ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!got || status != 0) throw Error(ErrorKind::input, "a measurement failed");
  return m;
}

Measured median(std::vector<Measured> runs) {
  std::ranges::sort(runs, {}, &Measured::seconds);
  return runs[runs.size() / 2];
}

/// What a plain program does: one thread, library functions, growing vectors.
double plain_load(const std::string& path) {
  return seconds([&] {
    const int fd = open(path.c_str(), O_RDONLY);
    struct stat info = {};
    fstat(fd, &info);
    const auto size = static_cast<std::size_t>(info.st_size);
    const char* text = static_cast<const char*>(mmap(nullptr, size + 1, PROT_READ, MAP_PRIVATE, fd, 0));
    auto& index = *new std::array<std::vector<std::uint32_t>, 3>;
    auto& values = *new std::vector<double>;
    for (const char* p = text; p < text + size;) {
      char* end = nullptr;
      for (auto& mode : index) {
        mode.push_back(static_cast<std::uint32_t>(std::strtoull(p, &end, 10) - 1));
        p = end;
      }
      values.push_back(std::strtod(p, &end));
      p = end + 1;
    }
    munmap(const_cast<char*>(text), size + 1);
    close(fd);
    if (values.empty()) std::abort();
  });
}

Context threads(int n) {
  Context c;
  c.threads = n;
  return c;
}

double decompress_only(const std::string& path) {
  return seconds([&] {
    io::InputStream in(path);
    std::vector<char> block(std::size_t{1} << 18U);
    while (in.read(block.data(), block.size()) > 0) {
    }
  });
}

void run(std::uint64_t nnz, const std::filesystem::path& folder) {
  const std::string tns = (folder / "polyad-bench.tns").string();
  const std::string gz = tns + ".gz";
  const std::string copy = (folder / "polyad-bench-copy.tns").string();
  const std::string ptn = (folder / "polyad-bench.ptn").string();
  const double bytes = static_cast<double>(nnz) * (3 * 4 + 8);
  // In a child as everything else: a process that has run OpenMP teams cannot fork ones that do.
  in_child([&] {
    GenerateOptions options;
    for (const Preset& p : presets())
      if (p.name == "nell2") options = p.options;
    options.nnz = nnz;
    return seconds([&] {
      const CooTensor x = generate(options);
      for (const std::string& f : {tns, gz, ptn}) write(x, f);
    });
  });
  const int repeat = 5;
  // Interleaved, so that a slow minute of the machine meets all of them.
  std::vector<Measured> plain;
  std::vector<Measured> text[3];
  std::vector<Measured> written[3];
  std::vector<Measured> opened;
  std::vector<Measured> verified;
  std::vector<Measured> inflated;
  std::vector<Measured> gz_read;
  // What was read stays until the process ends: giving memory back is not loading.
  const auto read_text = [&](const std::string& path, int n) {
    auto* x = new CooTensor;
    return seconds([&] { *x = read(path, {}, threads(n)); });
  };
  for (int i = 0; i < repeat; ++i) {
    plain.push_back(in_child([&] { return plain_load(tns); }));
    for (const int n : {1, 2}) {
      text[n].push_back(in_child([&] { return read_text(tns, n); }));
      written[n].push_back(in_child([&] {
        const CooTensor x = read(ptn, {}, threads(n));
        std::filesystem::remove(copy);  // replacing an old file would count its removal
        return seconds([&] { write(x, copy, {}, threads(n)); });
      }));
    }
    opened.push_back(in_child([&] {
      ReadOptions o;
      o.verify = false;
      return seconds([&] { (void)read(ptn, o, threads(2)); });
    }));
    verified.push_back(in_child([&] { return seconds([&] { (void)read(ptn, {}, threads(2)); }); }));
    inflated.push_back(in_child([&] { return decompress_only(gz); }));
    gz_read.push_back(in_child([&] { return read_text(gz, 2); }));
  }

  const Measured base = median(plain);
  fmt::print("{} nonzeros of order 3, {} of text, median of {} runs\n\n", nnz,
             readable_bytes(std::filesystem::file_size(tns)), repeat);
  fmt::print("| what | seconds | ratio |\n|---|---|---|\n");
  const auto row = [](const char* what, double s, double ratio, const char* of) {
    fmt::print("| {} | {:.4f} | {:.2f}x {} |\n", what, s, ratio, of);
  };
  row("plain loader, 1 thread", base.seconds, 1, "");
  for (const int n : {1, 2}) {
    const Measured m = median(text[n]);
    row(fmt::format("polyad reads the text, {} thread{}", n, n == 1 ? "" : "s").c_str(), m.seconds,
        base.seconds / m.seconds, "faster than the plain loader");
    fmt::print("| its peak memory | | {:.2f}x the tensor |\n", m.peak_bytes / bytes);
  }
  for (const int n : {1, 2}) {
    const double s = median(written[n]).seconds;
    row(fmt::format("polyad writes the text, {} thread{}", n, n == 1 ? "" : "s").c_str(), s,
        median(text[n]).seconds / s, "as fast as reading it");
  }
  const double text2 = median(text[2]).seconds;
  row(".ptn opened", median(opened).seconds, text2 / median(opened).seconds, "faster than reading the text");
  row(".ptn opened and verified", median(verified).seconds, text2 / median(verified).seconds,
      "faster than reading the text");
  const double gz_seconds = median(gz_read).seconds;
  row(".gz decompressed alone", median(inflated).seconds, 1, "");
  row(".gz read, 2 threads", gz_seconds, gz_seconds / median(inflated).seconds, "the time of decompressing alone");
  for (const std::string& f : {tns, gz, ptn, copy}) std::filesystem::remove(f);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const auto nnz = parse_size(argc > 1 ? argv[1] : "20M");
    if (!nnz) {
      fmt::print(stderr, "usage: io_bench [NNZ] [FOLDER]\n");
      return 2;
    }
    run(*nnz, argc > 2 ? std::filesystem::path(argv[2]) : std::filesystem::temp_directory_path());
    return 0;
  } catch (const std::exception& e) {
    fmt::print(stderr, "io_bench: {}\n", e.what());
    return 1;
  }
}
