// SPDX-License-Identifier: MIT
#include "io/input_stream.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "polyad/error.hpp"

namespace polyad::io {

namespace {

constexpr std::size_t raw_block = std::size_t{1} << 18U;

bool has_ending(std::string_view text, std::string_view ending) {
  if (text.size() < ending.size()) return false;
  text.remove_prefix(text.size() - ending.size());
  return std::ranges::equal(text, ending, [](char a, char b) { return (a | 0x20) == (b | 0x20) || a == b; });
}

/// zstd files may begin with a frame of other data, marked 0x184D2A50 to 0x184D2A5F.
bool is_skippable_frame(std::string_view head) {
  return head.size() == 4 && (head[0] & 0xf0) == 0x50 && head.substr(1) == "\x2a\x4d\x18";
}

}  // namespace

/// Turns compressed bytes into plain ones.
class InputStream::Decoder {
 public:
  explicit Decoder(InputStream& in) : in_(in) {}
  virtual ~Decoder() = default;
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  /// Up to n bytes; 0 only at the end.
  virtual std::size_t read(void* to, std::size_t n) = 0;

 protected:
  /// Makes sure that there are unread raw bytes; false at the end of the file.
  bool refill() {
    if (at_ < raw_.size()) return true;
    raw_.resize(raw_block);
    raw_.resize(in_.read_file(raw_.data(), raw_block));
    at_ = 0;
    return !raw_.empty();
  }

  InputStream& in_;
  std::vector<unsigned char> raw_;
  std::size_t at_ = 0;
};

class InputStream::Gzip final : public Decoder {
 public:
  explicit Gzip(InputStream& in) : Decoder(in) {
    if (inflateInit2(&z_, 15 + 16) != Z_OK) throw Error(ErrorKind::limit, "zlib gives no decompressor");
  }
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;
  ~Gzip() override { inflateEnd(&z_); }

  std::size_t read(void* to, std::size_t n) override {
    z_.next_out = static_cast<Bytef*>(to);
    z_.avail_out = static_cast<uInt>(std::min<std::size_t>(n, 1U << 30U));
    const uInt wanted = z_.avail_out;
    while (z_.avail_out == wanted) {
      if (!refill()) {
        if (member_done_) return 0;
        throw file_error(in_.name(), 0, "the gzip data ends in the middle: the file is cut off");
      }
      if (member_done_) {  // bytes after a member: another member, or padding
        if (raw_[at_] == 0) {
          ++at_;
          continue;
        }
        if (raw_[at_] != 0x1f) throw file_error(in_.name(), 0, "found bytes that are not gzip after the gzip data");
        inflateReset(&z_);
        member_done_ = false;
      }
      z_.next_in = raw_.data() + at_;
      z_.avail_in = static_cast<uInt>(raw_.size() - at_);
      const int code = inflate(&z_, Z_NO_FLUSH);
      at_ = raw_.size() - z_.avail_in;
      if (code == Z_STREAM_END) {
        member_done_ = true;
      } else if (code != Z_OK && code != Z_BUF_ERROR) {
        throw file_error(in_.name(), 0,
                         fmt::format("the gzip data is damaged near byte {} ({})", in_.consumed() - (raw_.size() - at_),
                                     z_.msg != nullptr ? z_.msg : "unexpected end"));
      }
    }
    return wanted - z_.avail_out;
  }

 private:
  z_stream z_ = {};
  bool member_done_ = false;
};

class InputStream::Zstd final : public Decoder {
 public:
  explicit Zstd(InputStream& in) : Decoder(in), d_(ZSTD_createDCtx()) {
    if (d_ == nullptr) throw Error(ErrorKind::limit, "zstd gives no decompressor");
  }
  Zstd(const Zstd&) = delete;
  Zstd& operator=(const Zstd&) = delete;
  ~Zstd() override { ZSTD_freeDCtx(d_); }

  std::size_t read(void* to, std::size_t n) override {
    ZSTD_outBuffer out{to, n, 0};
    while (out.pos == 0) {
      // Even without new input the decoder may hold output that did not fit last time.
      const bool more = refill();
      ZSTD_inBuffer in{raw_.data(), raw_.size(), at_};
      const std::size_t code = ZSTD_decompressStream(d_, &out, &in);
      at_ = in.pos;
      if (ZSTD_isError(code) != 0)
        throw file_error(in_.name(), 0, fmt::format("the zstd data is damaged ({})", ZSTD_getErrorName(code)));
      if (out.pos > 0) {
        frame_done_ = code == 0;
        break;
      }
      if (!more) {
        if (frame_done_) return 0;
        throw file_error(in_.name(), 0, "the zstd data ends in the middle: the file is cut off");
      }
      frame_done_ = code == 0;
    }
    return out.pos;
  }

 private:
  ZSTD_DCtx* d_;
  bool frame_done_ = false;
};

InputStream::InputStream(const std::string& path, std::function<bool()> cancelled)
    : cancelled_(std::move(cancelled)), path_(path), name_(path == "-" ? "standard input" : path) {
  if (path == "-") {
    fd_ = dup(STDIN_FILENO);
    if (fd_ < 0) throw file_error(name_, 0, "is closed, expected a tensor");
  } else {
    while ((fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC)) < 0 && errno == EINTR) stop_if_cancelled();
    if (fd_ < 0)
      throw file_error(
          name_, 0,
          errno == ENOENT ? "there is no such file" : fmt::format("cannot be opened: {}", std::strerror(errno)));
  }
  try {
    struct stat info = {};
    if (fstat(fd_, &info) != 0) throw file_error(name_, 0, fmt::format("cannot be examined: {}", std::strerror(errno)));
    if (S_ISDIR(info.st_mode)) throw file_error(name_, 0, "is a directory, expected a file");
    if (S_ISREG(info.st_mode)) {
      const off_t at = lseek(fd_, 0, SEEK_CUR);
      file_bytes_ = static_cast<std::uint64_t>(std::max<off_t>(info.st_size - std::max<off_t>(at, 0), 0));
      posix_fadvise(fd_, 0, 0, POSIX_FADV_SEQUENTIAL);
    }
    std::string head(4, '\0');
    head.resize(read_file(head.data(), head.size()));
    if (head.starts_with("\x1f\x8b")) {
      compression_ = "gzip";
      decoder_ = std::make_unique<Gzip>(*this);
    } else if (head.starts_with("\x28\xb5\x2f\xfd") || is_skippable_frame(head)) {
      compression_ = "zstd";
      decoder_ = std::make_unique<Zstd>(*this);
    } else if (!head.empty()) {
      for (const std::string_view ending : {".gz", ".zst"})
        if (has_ending(path, ending))
          throw file_error(
              name_, 0,
              fmt::format("is not {} data though its name ends in {}", ending == ".gz" ? "gzip" : "zstd", ending));
    }
    consumed_ = 0;
    raw_head_ = std::move(head);
  } catch (...) {
    close(fd_);
    throw;
  }
}

InputStream::~InputStream() {
  if (fd_ >= 0) close(fd_);
}

void InputStream::stop_if_cancelled() const {
  if (cancelled_ && cancelled_())
    throw Error(ErrorKind::cancelled, fmt::format("{}: stopped while waiting for it", name_));
}

void InputStream::wait_for_bytes() const {
  // A signal may go to another thread than the one that waits here, so the question is asked now and then.
  constexpr int milliseconds = 200;
  pollfd ready = {fd_, POLLIN, 0};
  while (true) {
    const int n = poll(&ready, 1, milliseconds);
    if (n > 0 || (n < 0 && errno != EINTR)) return;  // read() will say what is wrong
    stop_if_cancelled();
  }
}

std::size_t InputStream::read_file(void* to, std::size_t n) {
  if (raw_head_used_ < raw_head_.size()) {
    const std::size_t k = std::min(n, raw_head_.size() - raw_head_used_);
    std::memcpy(to, raw_head_.data() + raw_head_used_, k);
    raw_head_used_ += k;
    consumed_ += k;
    return k;
  }
  std::size_t got = 0;
  while (got < n) {
    if (!file_bytes_) wait_for_bytes();
    const ssize_t k = ::read(fd_, static_cast<char*>(to) + got, n - got);
    if (k < 0) {
      if (errno == EINTR) {
        stop_if_cancelled();
        continue;
      }
      throw file_error(name_, 0, fmt::format("cannot be read: {}", std::strerror(errno)));
    }
    if (k == 0) {
      if (file_bytes_ && consumed_ + got < *file_bytes_)
        throw file_error(
            name_, 0,
            fmt::format("became shorter while it was read: {} of {} bytes came", consumed_ + got, *file_bytes_));
      break;
    }
    got += static_cast<std::size_t>(k);
  }
  consumed_ += got;
  return got;
}

std::size_t InputStream::read_decoded(void* to, std::size_t n) {
  std::size_t got = 0;
  while (got < n && !ended_) {
    char* at = static_cast<char*>(to) + got;
    const std::size_t k = decoder_ ? decoder_->read(at, n - got) : read_file(at, n - got);
    ended_ = k == 0;
    got += k;
  }
  return got;
}

std::string_view InputStream::peek(std::size_t n) {
  if (ahead_.size() - ahead_used_ < n) {
    ahead_.erase(0, ahead_used_);
    ahead_used_ = 0;
    const std::size_t have = ahead_.size();
    ahead_.resize(n);
    ahead_.resize(have + read_decoded(ahead_.data() + have, n - have));
  }
  return std::string_view(ahead_).substr(ahead_used_);
}

std::size_t InputStream::read(void* to, std::size_t n) {
  const std::size_t first = std::min(n, ahead_.size() - ahead_used_);
  std::memcpy(to, ahead_.data() + ahead_used_, first);
  ahead_used_ += first;
  const std::size_t got = first + (first < n ? read_decoded(static_cast<char*>(to) + first, n - first) : 0);
  position_ += got;
  return got;
}

void InputStream::read_exactly(void* to, std::size_t n, std::string_view what) {
  const std::size_t got = read(to, n);
  if (got < n) throw file_error(name_, 0, fmt::format("ends after {} bytes, in the middle of {}", position_, what));
}

}  // namespace polyad::io
