// SPDX-License-Identifier: MIT
#include "io/mapped_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "polyad/error.hpp"

namespace polyad::io {

namespace {

/// A listed mapping. `state` counts up by one in every change: its low bits say free, being filled or listed, the rest
/// tells one use of the slot from the next, so that a reader sees when the slot changed under it.
struct Slot {
  std::atomic<std::uint64_t> state{0};
  std::atomic<std::uintptr_t> begin{0};
  std::atomic<std::uintptr_t> end{0};
  std::atomic<const char*> path{nullptr};
};

constexpr std::uint64_t step_mask = 3;
constexpr std::uint64_t step_free = 0;
constexpr std::uint64_t step_filling = 1;
constexpr std::uint64_t step_listed = 2;

// A signal handler must not meet a lock.
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::uintptr_t>::is_always_lock_free &&
              std::atomic<const char*>::is_always_lock_free);

constinit std::array<Slot, 256> slots;

int list(const std::byte* data, std::size_t size, const char* path) {
  for (std::size_t i = 0; i < slots.size(); ++i) {
    Slot& s = slots[i];
    std::uint64_t state = s.state.load(std::memory_order_relaxed);
    if ((state & step_mask) != step_free) continue;
    if (!s.state.compare_exchange_strong(state, state + step_filling)) continue;
    s.begin.store(reinterpret_cast<std::uintptr_t>(data));
    s.end.store(reinterpret_cast<std::uintptr_t>(data) + size);
    s.path.store(path);
    s.state.store(state + step_listed);
    return static_cast<int>(i);
  }
  return -1;
}

void unlist(int slot) {
  if (slot < 0) return;
  Slot& s = slots[static_cast<std::size_t>(slot)];
  s.state.store((s.state.load() | step_mask) + 1);  // free, next use
}

}  // namespace

MappedFile::MappedFile(const std::string& path) : path_(path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw file_error(path, 0, fmt::format("cannot be opened: {}", std::strerror(errno)));
  struct stat info = {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(fd);
    throw file_error(path, 0, "is not a regular file and cannot be mapped");
  }
  size_ = static_cast<std::size_t>(info.st_size);
  if (size_ == 0) {
    close(fd);
    return;
  }
  // NORESERVE: the kernel would else refuse to map a file larger than memory and swap, as if all of it would be
  // changed.
  void* p = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
  const int code = errno;
  close(fd);
  if (p == MAP_FAILED) {
    throw Error(code == ENOMEM ? ErrorKind::limit : ErrorKind::input,
                fmt::format("{}: its {} bytes cannot be mapped: {}", path, size_, std::strerror(code)));
  }
  data_ = static_cast<std::byte*>(p);
  slot_ = list(data_, size_, path_.c_str());
}

MappedFile::~MappedFile() {
  unlist(slot_);  // before the addresses can belong to someone else
  if (data_ != nullptr) munmap(data_, size_);
}

const char* mapped_path_at(const void* address) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  for (const Slot& s : slots) {
    const std::uint64_t state = s.state.load();
    if ((state & step_mask) != step_listed) continue;
    const bool inside = s.begin.load() <= at && at < s.end.load();
    const char* path = s.path.load();
    if (inside && s.state.load() == state) return path;
  }
  return nullptr;
}

}  // namespace polyad::io
