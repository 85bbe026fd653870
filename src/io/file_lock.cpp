// SPDX-License-Identifier: MIT
#include "io/file_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "io/output_file.hpp"
#include "polyad/error.hpp"

namespace polyad::io {

namespace {

/// The file that was opened is still the one with that name: who held it before may have removed it in between.
bool has_name(int fd, const std::string& path) {
  struct stat opened = {};
  struct stat named = {};
  return fstat(fd, &opened) == 0 && stat(path.c_str(), &named) == 0 && opened.st_dev == named.st_dev &&
         opened.st_ino == named.st_ino;
}

}  // namespace

FileLock::FileLock(const std::string& path) : lock_(behind_links(path) + ".lock") {
  while (true) {
    fd_ = open(lock_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd_ < 0) return;
    const bool held = flock(fd_, LOCK_EX | LOCK_NB) == 0;
    const int code = errno;
    if (held && has_name(fd_, lock_)) return;
    close(fd_);
    fd_ = -1;
    if (held) continue;
    if (code == EWOULDBLOCK)
      throw file_error(path, 0, "another run is using it now; expected a file of its own for each run");
    return;
  }
}

FileLock::~FileLock() {
  if (fd_ < 0) return;
  unlink(lock_.c_str());  // while it is held: nobody else can hold what is removed
  close(fd_);
}

}  // namespace polyad::io
