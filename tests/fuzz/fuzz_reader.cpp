// SPDX-License-Identifier: MIT
// Any bytes given to a reader are either a tensor or an Error. What was read can be written and reads back the same.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <polyad/polyad.hpp>
#include <string>
#include <string_view>

namespace {

/// A file in memory.
class MemoryFile {
 public:
  MemoryFile() : fd_(memfd_create("polyad-fuzz", 0)), path_("/proc/self/fd/" + std::to_string(fd_)) {}
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { close(fd_); }

  [[nodiscard]] const std::string& path() const { return path_; }
  void assign(const std::uint8_t* data, std::size_t size) const {
    if (ftruncate(fd_, 0) != 0 || pwrite(fd_, data, size, 0) != static_cast<ssize_t>(size)) std::abort();
  }

 private:
  int fd_;
  std::string path_;
};

std::string dialect;  // empty: whatever the bytes look like

}  // namespace

/// The program says by its name, fuzz_DIALECT, which reader gets the bytes.
extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** argv) {
  const std::string_view program = **argv;
  const std::size_t at = program.rfind("fuzz_");
  if (at == std::string_view::npos) std::abort();
  const std::string_view name = program.substr(at + 5);
  if (name == "any") return 0;
  dialect = name;
  std::ranges::replace(dialect, '_', '-');
  const auto known = polyad::dialects();
  if (std::ranges::none_of(known, [](const polyad::DialectEntry& d) { return d.name == dialect; })) std::abort();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const MemoryFile file;
  file.assign(data, size);
  polyad::Context context;
  context.threads = 1 + static_cast<int>(size % 2);
  context.memory = std::make_shared<polyad::MemoryBudget>(std::uint64_t{64} << 20U);
  polyad::ReadOptions options;
  options.dialect = dialect;
  options.find_labels = false;
  if (dialect == "csv") options.columns = {"1", "2"};
  polyad::ReadResult read;
  try {
    read = polyad::read_with_report(file.path(), options, context);
  } catch (const polyad::Error&) {
    return 0;
  }
  const auto s = polyad::statistics(read.tensor, context);
  if (s.modes.size() != static_cast<std::size_t>(read.tensor.order())) std::abort();
  // CSV renumbers by label; a tensor without nonzeros needs no second look.
  if (read.report.dialect == "csv" || read.tensor.nnz() == 0) return 0;

  // From here on an Error is a defect, except that a dialect may be too small for the tensor or the limit be reached.
  const MemoryFile copy;
  polyad::WriteOptions how;
  how.dialect = read.report.dialect;
  how.write_labels = false;
  how.index_base = read.report.dialect == "ptn" ? std::nullopt : std::optional<int>(1);
  try {
    polyad::write(read.tensor, copy.path(), how, context);
  } catch (const polyad::Error& e) {
    if (e.kind() != polyad::ErrorKind::input) return 0;
    throw;
  }
  polyad::ReadOptions again = options;
  again.dialect = read.report.dialect;
  again.dims = read.tensor.dims;
  if (!polyad::same_nonzeros(read.tensor, polyad::read(copy.path(), again, context))) {
    std::fprintf(stderr, "what was written reads back differently\n");
    std::abort();
  }
  return 0;
}
