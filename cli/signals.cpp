// SPDX-License-Identifier: MIT
#include "signals.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <polyad/io.hpp>

namespace polyad::cli {

namespace {

std::atomic<int> caught = 0;
static_assert(std::atomic<int>::is_always_lock_free);
std::atomic<bool> closed_pipe = false;
static_assert(std::atomic<bool>::is_always_lock_free);

void on_stop(int signal) {
  if (caught.exchange(signal) != 0) _exit(128 + signal);
}

void say(const char* text) {
  if (::write(STDERR_FILENO, text, std::strlen(text)) < 0) return;
}

// Outputs without a name vanish with the process, so leaving at once leaves nothing half-written behind.
void on_bus_error(int signal, siginfo_t* info, void*) {
  const char* path = mapped_file_at(info->si_addr);
  if (path == nullptr) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
    return;
  }
  say("polyad: ");
  say(path);
  say(": became shorter while it was read\n");
  _exit(1);
}

}  // namespace

void install_signal_handlers() {
  struct sigaction stop = {};
  stop.sa_handler = on_stop;
  sigaction(SIGINT, &stop, nullptr);
  sigaction(SIGTERM, &stop, nullptr);
  struct sigaction bus = {};
  bus.sa_sigaction = on_bus_error;
  bus.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &bus, nullptr);
  // A closed pipe and a file over its limit are errors of write().
  struct sigaction pipe = {};
  pipe.sa_handler = [](int) { closed_pipe = true; };
  pipe.sa_flags = SA_RESTART;
  sigaction(SIGPIPE, &pipe, nullptr);
  std::signal(SIGXFSZ, SIG_IGN);
}

void fill_standard_descriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) continue;
    // In the wrong direction, so that using it is still the error it was.
    if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) return;
  }
}

int caught_signal() noexcept { return caught.load(); }

bool pipe_was_closed() noexcept { return closed_pipe.load(); }

}  // namespace polyad::cli
