// SPDX-License-Identifier: MIT
#include "io/output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <random>

#include "polyad/error.hpp"

namespace polyad::io {

namespace {

constexpr std::size_t block_bytes = std::size_t{1} << 20U;

std::string folder_of(const std::string& path) {
  const auto folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

/// A name beside `path` that nobody else uses: hidden, with the process and a random number in it.
std::string hidden_name(const std::string& path) {
  return (std::filesystem::path(path).parent_path() /
          fmt::format(".polyad.{}.{:08x}.part", getpid(), std::random_device{}()))
      .string();
}

/// A link is written through, so that it stays a link, even one whose target is not there yet.
Error failure(const std::string& name, std::string_view what, int code) {
  return {code == ENOSPC || code == EDQUOT || code == EFBIG ? ErrorKind::limit : ErrorKind::input,
          fmt::format("{}: {}: {}", name, what, std::strerror(code))};
}

std::string gzip(std::string_view block) {
  z_stream z = {};
  if (deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw Error(ErrorKind::limit, "zlib gives no compressor");
  std::string out(deflateBound(&z, block.size()), '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(block.data()));
  z.avail_in = static_cast<uInt>(block.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  const int code = deflate(&z, Z_FINISH);
  out.resize(out.size() - z.avail_out);
  deflateEnd(&z);
  if (code != Z_STREAM_END) throw Error(ErrorKind::limit, "zlib could not compress a block");
  return out;
}

std::string zstd(std::string_view block) {
  std::string out(ZSTD_compressBound(block.size()), '\0');
  const std::size_t n = ZSTD_compress(out.data(), out.size(), block.data(), block.size(), 3);
  if (ZSTD_isError(n) != 0) throw Error(ErrorKind::limit, "zstd could not compress a block");
  out.resize(n);
  return out;
}

}  // namespace

Compression compression_of(std::string_view path) {
  if (path.ends_with(".gz")) return Compression::gzip;
  if (path.ends_with(".zst")) return Compression::zstd;
  return Compression::none;
}

std::string_view without_compression(std::string_view path) {
  switch (compression_of(path)) {
    case Compression::gzip:
      return path.substr(0, path.size() - 3);
    case Compression::zstd:
      return path.substr(0, path.size() - 4);
    case Compression::none:
      break;
  }
  return path;
}

OutputFile::OutputFile(std::string path, Compression compression, std::function<bool()> cancelled)
    : cancelled_(std::move(cancelled)),
      path_(std::move(path)),
      name_(path_ == "-" ? "standard output" : path_),
      compression_(compression) {
  if (path_ == "-" || path_ == "/dev/stdout") {
    fd_ = dup(STDOUT_FILENO);
    direct_ = true;
    if (fd_ < 0) throw failure(name_, "cannot be written", errno);
    return;
  }
  struct stat info = {};
  const bool exists = stat(path_.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) throw failure(name_, "cannot be written", EISDIR);
  if (exists && access(path_.c_str(), W_OK) != 0) throw failure(name_, "cannot be written", errno);
  const std::string target = behind_links(path_);
  // Pipes and devices are written in place, and so is what has no name of its own (/proc/self/fd/N of a deleted file).
  struct stat named = {};
  const bool has_name = stat(target.c_str(), &named) == 0 && named.st_dev == info.st_dev && named.st_ino == info.st_ino;
  direct_ = exists && (!S_ISREG(info.st_mode) || !has_name);
  if (direct_) {
    while ((fd_ = open(path_.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC)) < 0 && errno == EINTR) stop_if_cancelled();
  } else {
    path_ = target;
    fd_ = open(folder_of(path_).c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
    if (fd_ < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
      hidden_ = hidden_name(path_);
      fd_ = open(hidden_.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0666);
      if (fd_ < 0) hidden_.clear();
    }
  }
  if (fd_ < 0) throw failure(name_, "cannot be written", errno);
}

OutputFile::~OutputFile() {
  if (fd_ >= 0) close(fd_);
  if (!hidden_.empty()) unlink(hidden_.c_str());
}

bool OutputFile::is_seekable() const noexcept { return !direct_ && compression_ == Compression::none; }

void OutputFile::write(const void* from, std::size_t n) {
  const auto* bytes = static_cast<const char*>(from);
  position_ += n;
  if (compression_ == Compression::none) {
    if (buffer_.size() + n < block_bytes) {
      buffer_.append(bytes, n);
      return;
    }
    flush();
    write_all(bytes, n);
    return;
  }
  while (n > 0) {
    const std::size_t k = std::min(n, block_bytes - buffer_.size());
    buffer_.append(bytes, k);
    bytes += k;
    n -= k;
    if (buffer_.size() == block_bytes) flush();
  }
}

std::string OutputFile::encode(std::string_view block) const {
  switch (compression_) {
    case Compression::gzip:
      return gzip(block);
    case Compression::zstd:
      return zstd(block);
    case Compression::none:
      break;
  }
  return std::string(block);
}

void OutputFile::write_encoded(std::string_view block) {
  flush();
  position_ += block.size();
  write_all(block.data(), block.size());
}

void OutputFile::overwrite(std::uint64_t offset, const void* from, std::size_t n) {
  flush();
  const auto* bytes = static_cast<const char*>(from);
  while (n > 0) {
    const ssize_t k = pwrite(fd_, bytes, n, static_cast<off_t>(offset));
    if (k < 0) {
      if (errno == EINTR) continue;
      throw failure(name_, "cannot be written", errno);
    }
    bytes += k;
    offset += static_cast<std::uint64_t>(k);
    n -= static_cast<std::size_t>(k);
  }
}

void OutputFile::stop_if_cancelled() const {
  if (cancelled_ && cancelled_())
    throw Error(ErrorKind::cancelled, fmt::format("{}: stopped while it was written", name_));
}

std::size_t OutputFile::room_for(std::size_t n) const {
  if (!direct_ || !cancelled_) return n;
  // A full pipe may never be read, and a signal may go to another thread: wait in small steps and write what surely
  // fits.
  constexpr int milliseconds = 200;
  pollfd ready = {fd_, POLLOUT, 0};
  while (poll(&ready, 1, 0) == 0) {
    if (poll(&ready, 1, milliseconds) != 0) return std::min<std::size_t>(n, PIPE_BUF);
    stop_if_cancelled();
  }
  return std::min<std::size_t>(n, PIPE_BUF);
}

void OutputFile::write_all(const char* from, std::size_t n) {
  while (n > 0) {
    const ssize_t k = ::write(fd_, from, room_for(n));
    if (k < 0) {
      if (errno == EINTR) {
        stop_if_cancelled();
        continue;
      }
      throw failure(name_, "cannot be written", errno);
    }
    from += k;
    n -= static_cast<std::size_t>(k);
  }
}

void OutputFile::flush() {
  if (buffer_.empty()) return;
  if (compression_ == Compression::none) {
    write_all(buffer_.data(), buffer_.size());
  } else {
    const std::string block = encode(buffer_);
    write_all(block.data(), block.size());
  }
  buffer_.clear();
}

void OutputFile::sync() {
  flush();
  // Pipes and devices cannot be synced, and need not.
  if (fsync(fd_) != 0 && errno != EINVAL && errno != EROFS) throw failure(name_, "cannot be written", errno);
}

void OutputFile::commit() {
  // An empty compressed file still needs one (empty) member to be valid.
  if (position_ == 0 && compression_ != Compression::none) {
    const std::string block = encode({});
    write_all(block.data(), block.size());
  }
  flush();
  if (!direct_) {
    if (hidden_.empty()) link_to_name();
    if (!hidden_.empty()) {
      if (rename(hidden_.c_str(), path_.c_str()) != 0) throw failure(name_, "cannot be given its name", errno);
      hidden_.clear();
    }
  }
  const int code = close(fd_);
  fd_ = -1;
  if (code != 0 && errno != EINTR) throw failure(name_, "cannot be written", errno);
}

void OutputFile::link_to_name() {
  const std::string self = fmt::format("/proc/self/fd/{}", fd_);
  const auto link_as = [&](const std::string& path) {
    return linkat(AT_FDCWD, self.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0;
  };
  if (link_as(path_)) return;
  // An old file of that name can only be replaced in one step by rename(), from another name.
  const std::string other = hidden_name(path_);
  if (errno != EEXIST || !link_as(other)) throw failure(name_, "cannot be given its name", errno);
  hidden_ = other;
}

std::string behind_links(std::string path) {
  constexpr int most = 40;  // as the kernel
  std::error_code code;
  for (int i = 0; i < most && std::filesystem::is_symlink(path, code); ++i) {
    const auto target = std::filesystem::read_symlink(path, code);
    if (code) break;
    path = (target.is_absolute() ? target : std::filesystem::path(path).parent_path() / target).string();
  }
  return path;
}

void write_file(const std::string& path, std::string_view text) {
  OutputFile out(path, Compression::none);
  out.write(text);
  out.commit();
}

}  // namespace polyad::io
