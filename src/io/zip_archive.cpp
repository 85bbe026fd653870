// SPDX-License-Identifier: MIT
// Names and numbers of sections are those of PKWARE's APPNOTE.TXT 6.3.
#include "io/zip_archive.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "polyad/error.hpp"

namespace polyad::io {

namespace {

constexpr std::uint32_t local_signature = 0x04034b50;      // 4.3.7
constexpr std::uint32_t central_signature = 0x02014b50;    // 4.3.12
constexpr std::uint32_t end64_signature = 0x06064b50;      // 4.3.14
constexpr std::uint32_t locator64_signature = 0x07064b50;  // 4.3.15
constexpr std::uint32_t end_signature = 0x06054b50;        // 4.3.16
constexpr std::uint16_t zip64_extra = 0x0001;              // 4.5.3
constexpr std::uint64_t local_bytes = 30;
constexpr std::uint64_t central_bytes = 46;
constexpr std::uint64_t end_bytes = 22;
constexpr std::uint64_t end64_bytes = 56;
constexpr std::uint64_t locator64_bytes = 20;
constexpr std::uint64_t largest_directory = std::uint64_t{1} << 20U;  // four entries need 250 bytes
constexpr std::uint32_t elsewhere32 = 0xFFFFFFFFU;                    // the number is in the zip64 record
constexpr std::uint16_t elsewhere16 = 0xFFFFU;
constexpr std::uint16_t date_1980_01_01 = 0x21;  // the same tensor gives the same file
constexpr std::size_t block_bytes = std::size_t{1} << 18U;

template <class T>
T at(std::string_view bytes, std::size_t offset) {
  T value = {};
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::uint32_t add_to_crc(std::uint32_t crc, const void* from, std::size_t n) {
  if (n == 0) return crc;  // zlib takes a null pointer for a wish to begin anew
  return static_cast<std::uint32_t>(crc32_z(crc, static_cast<const Bytef*>(from), n));
}

/// Replaces the numbers that the fixed part could not hold (4.5.3: only those, in this order).
void apply_zip64(ZipEntry& entry, std::string_view extra) {
  while (extra.size() >= 4) {
    const auto id = at<std::uint16_t>(extra, 0);
    const std::size_t length = std::min<std::size_t>(at<std::uint16_t>(extra, 2), extra.size() - 4);
    std::string_view body = extra.substr(4, length);
    if (id == zip64_extra) {
      for (std::uint64_t* number : {&entry.bytes, &entry.packed, &entry.offset}) {
        if (*number != elsewhere32 || body.size() < 8) continue;
        *number = at<std::uint64_t>(body, 0);
        body.remove_prefix(8);
      }
    }
    extra.remove_prefix(4 + length);
  }
}

std::uint32_t narrow(std::uint64_t number) {
  return number >= elsewhere32 ? elsewhere32 : static_cast<std::uint32_t>(number);
}

}  // namespace

ZipReader::ZipReader(InputStream& input, const Context& context) : file_(input.name()) {
  if (input.total_bytes() && input.path() != "-") {
    fd_ = ::open(input.path().c_str(), O_RDONLY | O_CLOEXEC);
    if (fd_ < 0) throw file_error(file_, 0, fmt::format("cannot be read: {}", std::strerror(errno)));
    size_ = *input.total_bytes();
  } else {
    constexpr std::string_view purpose = "the zip archive in memory (its directory is at its end)";
    memory_ = Buffer<char>(context, 0, purpose);
    while (!input.peek(1).empty()) {
      if (size_ == memory_.size()) memory_.resize(std::max<std::size_t>(2 * memory_.size(), block_bytes), purpose);
      size_ += input.read(memory_.data() + size_, std::min<std::size_t>(memory_.size() - size_, block_bytes));
      context.report({"reading", input.consumed(), input.file_bytes().value_or(0), "bytes"});
    }
  }
  try {
    read_directory();
  } catch (...) {
    if (fd_ >= 0) ::close(fd_);
    throw;
  }
}

ZipReader::~ZipReader() {
  if (inflating_) inflateEnd(&z_);
  if (fd_ >= 0) ::close(fd_);
}

std::size_t ZipReader::read_at(std::uint64_t offset, void* to, std::size_t n) const {
  if (offset >= size_) return 0;
  n = std::min<std::uint64_t>(n, size_ - offset);
  if (fd_ < 0) {
    std::memcpy(to, memory_.data() + offset, n);
    return n;
  }
  std::size_t got = 0;
  while (got < n) {
    const ssize_t k = pread(fd_, static_cast<char*>(to) + got, n - got, static_cast<off_t>(offset + got));
    if (k < 0 && errno == EINTR) continue;
    if (k < 0) throw file_error(file_, 0, fmt::format("cannot be read: {}", std::strerror(errno)));
    if (k == 0) break;
    got += static_cast<std::size_t>(k);
  }
  return got;
}

Error ZipReader::damaged(std::string_view what) const {
  return file_error(file_, 0, fmt::format("found {} in a zip archive of {} bytes, expected a whole one", what, size_));
}

void ZipReader::read_directory() {
  // The end record is the last thing but a comment of at most 64 KiB.
  std::string tail(std::min<std::uint64_t>(size_, end_bytes + elsewhere16 + locator64_bytes), '\0');
  const std::uint64_t tail_offset = size_ - tail.size();
  if (read_at(tail_offset, tail.data(), tail.size()) < tail.size()) throw damaged("an early end");
  std::size_t end = tail.size() < end_bytes ? std::string::npos : tail.size() - end_bytes;
  while (end != std::string::npos && !(at<std::uint32_t>(tail, end) == end_signature &&
                                       end + end_bytes + at<std::uint16_t>(tail, end + 20) == tail.size())) {
    end = end == 0 ? std::string::npos : end - 1;
  }
  if (end == std::string::npos) throw damaged("no directory");
  std::uint64_t bytes = at<std::uint32_t>(tail, end + 12);
  std::uint64_t offset = at<std::uint32_t>(tail, end + 16);
  if (end >= locator64_bytes && at<std::uint32_t>(tail, end - locator64_bytes) == locator64_signature) {
    std::string end64(end64_bytes, '\0');
    const auto where = at<std::uint64_t>(tail, end - locator64_bytes + 8);
    if (read_at(where, end64.data(), end64.size()) < end64.size() || at<std::uint32_t>(end64, 0) != end64_signature) {
      throw damaged("no zip64 directory");
    }
    bytes = at<std::uint64_t>(end64, 40);
    offset = at<std::uint64_t>(end64, 48);
  }
  if (bytes > largest_directory) {
    throw damaged(fmt::format("a directory of {} bytes (a tensor has {} at most)", bytes, largest_directory));
  }
  std::string directory(bytes, '\0');
  if (read_at(offset, directory.data(), bytes) < bytes) throw damaged("half a directory");
  parse_directory(directory);
}

void ZipReader::parse_directory(std::string_view directory) {
  while (!directory.empty()) {
    if (directory.size() < central_bytes || at<std::uint32_t>(directory, 0) != central_signature) {
      throw damaged("a damaged directory");
    }
    const std::size_t name = at<std::uint16_t>(directory, 28);
    const std::size_t extra = at<std::uint16_t>(directory, 30);
    const std::size_t comment = at<std::uint16_t>(directory, 32);
    if (directory.size() < central_bytes + name + extra + comment) throw damaged("a damaged directory");
    ZipEntry& entry = entries_.emplace_back();
    entry.name = directory.substr(central_bytes, name);
    entry.flags = at<std::uint16_t>(directory, 8);
    entry.method = at<std::uint16_t>(directory, 10);
    entry.crc = at<std::uint32_t>(directory, 16);
    entry.packed = at<std::uint32_t>(directory, 20);
    entry.bytes = at<std::uint32_t>(directory, 24);
    entry.offset = at<std::uint32_t>(directory, 42);
    apply_zip64(entry, directory.substr(central_bytes + name, extra));
    directory.remove_prefix(central_bytes + name + extra + comment);
  }
}

std::optional<std::uint64_t> ZipReader::find(std::string_view name) const {
  const auto found = std::ranges::find(entries_, name, &ZipEntry::name);
  return found == entries_.end() ? std::nullopt : std::optional(found->bytes);
}

void ZipReader::open(std::string_view name) {
  const auto found = std::ranges::find(entries_, name, &ZipEntry::name);
  if (found == entries_.end())
    throw file_error(file_, 0, fmt::format("found no {} in the archive, expected one", name));
  entry_ = *found;
  if ((entry_.flags & 1U) != 0) throw file_error(file_, 0, fmt::format("found {} encrypted, expected it plain", name));
  if (entry_.method != 0 && entry_.method != 8) {
    throw file_error(
        file_, 0,
        fmt::format("found {} compressed by method {}, expected 0 (stored) or 8 (deflated)", name, entry_.method));
  }
  std::string local(local_bytes, '\0');
  if (read_at(entry_.offset, local.data(), local_bytes) < local_bytes ||
      at<std::uint32_t>(local, 0) != local_signature) {
    throw damaged(fmt::format("no {} where the directory says", name));
  }
  at_ = entry_.offset + local_bytes + at<std::uint16_t>(local, 26) + at<std::uint16_t>(local, 28);
  if (at_ > size_ || entry_.packed > size_ - at_ || (is_stored() && entry_.packed != entry_.bytes)) {
    throw damaged(fmt::format("{} of {} packed and {} plain bytes", name, entry_.packed, entry_.bytes));
  }
  left_ = entry_.packed;
  given_ = 0;
  crc_ = 0;
  stream_ended_ = false;
  if (inflating_) inflateEnd(&z_);
  inflating_ = false;
  if (!is_stored()) {
    z_ = {};
    if (inflateInit2(&z_, -MAX_WBITS) != Z_OK) throw Error(ErrorKind::limit, "zlib gives no decompressor");
    inflating_ = true;
    packed_.resize(block_bytes);
  }
}

std::size_t ZipReader::inflate_some(char* to, std::size_t n) {
  n = std::min<std::size_t>(n, std::numeric_limits<uInt>::max());
  z_.next_out = reinterpret_cast<Bytef*>(to);
  z_.avail_out = static_cast<uInt>(n);
  while (z_.avail_out > 0 && !stream_ended_) {
    if (z_.avail_in == 0 && left_ > 0) {
      const std::size_t k = read_at(at_, packed_.data(), std::min<std::uint64_t>(left_, packed_.size()));
      if (k == 0) break;
      at_ += k;
      left_ -= k;
      z_.next_in = reinterpret_cast<Bytef*>(packed_.data());
      z_.avail_in = static_cast<uInt>(k);
    }
    const int code = inflate(&z_, Z_NO_FLUSH);
    if (code == Z_BUF_ERROR) break;  // the packed bytes ended before the stream did
    if (code != Z_OK && code != Z_STREAM_END) throw damaged(fmt::format("{} that does not inflate", entry_.name));
    stream_ended_ = code == Z_STREAM_END;
  }
  return n - z_.avail_out;
}

std::size_t ZipReader::read(void* to, std::size_t n) {
  auto* bytes = static_cast<char*>(to);
  std::size_t got = 0;
  if (is_stored()) {
    got = read_at(at_, bytes, std::min<std::uint64_t>(n, left_));
    at_ += got;
    left_ -= got;
  } else {
    while (got < n) {
      const std::size_t k = inflate_some(bytes + got, n - got);
      if (k == 0) break;
      got += k;
    }
  }
  crc_ = add_to_crc(crc_, to, got);
  given_ += got;
  progress_.done += got;
  return got;
}

void ZipReader::close() {
  char more = 0;
  if (given_ != entry_.bytes || read(&more, 1) != 0) {
    throw damaged(fmt::format("{} longer or shorter than its {} bytes", entry_.name, entry_.bytes));
  }
  if (!is_stored() && !stream_ended_) throw damaged(fmt::format("{} that does not inflate", entry_.name));
  if (crc_ != entry_.crc) {
    throw damaged(fmt::format("{} with checksum {:08x} instead of {:08x}", entry_.name, crc_, entry_.crc));
  }
}

Progress ZipReader::progress() const {
  Progress p = progress_;
  p.done = std::min(p.done, p.total);
  return p;
}

void ZipWriter::add(std::string_view name, const std::function<void(const ByteSink&)>& produce) {
  ZipEntry& entry = entries_.emplace_back();
  entry.name = name;
  entry.offset = output_->position() - start_;
  produce([&](const void* from, std::size_t n) {
    entry.crc = add_to_crc(entry.crc, from, n);
    entry.bytes += n;
  });
  entry.packed = entry.bytes;
  const bool wide = entry.bytes >= elsewhere32;
  std::string local;
  append(local, local_signature);
  append(local, std::uint16_t(wide ? 45 : 20));  // version needed: 4.5 has zip64
  append(local, std::uint16_t{0});               // flags
  append(local, std::uint16_t{0});               // stored
  append(local, std::uint16_t{0});               // 00:00
  append(local, date_1980_01_01);
  append(local, entry.crc);
  append(local, narrow(entry.packed));
  append(local, narrow(entry.bytes));
  append(local, static_cast<std::uint16_t>(entry.name.size()));
  append(local, std::uint16_t(wide ? 20 : 0));
  local += entry.name;
  if (wide) {
    append(local, zip64_extra);
    append(local, std::uint16_t{16});
    append(local, entry.bytes);
    append(local, entry.packed);
  }
  output_->write(local);
  produce([&](const void* from, std::size_t n) { output_->write(from, n); });
}

void ZipWriter::finish() {
  std::string directory;
  for (const ZipEntry& entry : entries_) {
    std::string extra;
    for (const std::uint64_t number : {entry.bytes, entry.packed, entry.offset}) {
      if (number >= elsewhere32) append(extra, number);
    }
    const std::uint16_t version = extra.empty() ? 20 : 45;
    append(directory, central_signature);
    append(directory, version);  // made by
    append(directory, version);  // needed
    append(directory, std::uint16_t{0});
    append(directory, std::uint16_t{0});
    append(directory, std::uint16_t{0});
    append(directory, date_1980_01_01);
    append(directory, entry.crc);
    append(directory, narrow(entry.packed));
    append(directory, narrow(entry.bytes));
    append(directory, static_cast<std::uint16_t>(entry.name.size()));
    append(directory, static_cast<std::uint16_t>(extra.empty() ? 0 : extra.size() + 4));
    directory.append(10, '\0');  // no comment, disk 0, no attributes
    append(directory, narrow(entry.offset));
    directory += entry.name;
    if (!extra.empty()) {
      append(directory, zip64_extra);
      append(directory, static_cast<std::uint16_t>(extra.size()));
      directory += extra;
    }
  }
  const std::uint64_t offset = output_->position() - start_;
  const std::uint64_t bytes = directory.size();
  const std::uint64_t count = entries_.size();
  if (offset >= elsewhere32) {
    append(directory, end64_signature);
    append(directory, end64_bytes - 12);  // what follows
    append(directory, std::uint16_t{45});
    append(directory, std::uint16_t{45});
    append(directory, std::uint64_t{0});  // disks
    append(directory, count);
    append(directory, count);
    append(directory, bytes);
    append(directory, offset);
    append(directory, locator64_signature);
    append(directory, std::uint32_t{0});
    append(directory, offset + bytes);
    append(directory, std::uint32_t{1});
  }
  append(directory, end_signature);
  append(directory, std::uint32_t{0});  // disks
  append(directory, static_cast<std::uint16_t>(count));
  append(directory, static_cast<std::uint16_t>(count));
  append(directory, static_cast<std::uint32_t>(bytes));
  append(directory, narrow(offset));
  append(directory, std::uint16_t{0});
  output_->write(directory);
}

}  // namespace polyad::io
