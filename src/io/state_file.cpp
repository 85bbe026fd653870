// SPDX-License-Identifier: MIT
#include "io/state_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "io/output_file.hpp"
#include "io/ptn_layout.hpp"
#include "polyad/error.hpp"

namespace polyad::io {

namespace {

constexpr std::string_view magic = "polyadST";
constexpr std::uint64_t layout_version = 1;
constexpr std::size_t fixed_bytes = 32;
constexpr std::size_t alignment = 64;

std::size_t padded(std::size_t n) { return (n + alignment - 1) / alignment * alignment; }

void append_word(std::string& text, std::uint64_t word) {
  char bytes[sizeof word];
  std::memcpy(bytes, &word, sizeof word);
  text.append(bytes, sizeof word);
}

/// The names too outlive a loss of power. A file system that cannot do it has its own rules.
void sync_folder(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const int fd = open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  (void)fsync(fd);
  close(fd);
}

std::uint64_t word_at(const std::byte* from) {
  std::uint64_t word = 0;
  std::memcpy(&word, from, sizeof word);
  return word;
}

}  // namespace

void write_state(const std::string& named, nlohmann::ordered_json head, std::span<const StateArray> arrays,
                 const Context& context) {
  const std::string path = behind_links(named);
  std::error_code failure;
  if (const auto status = std::filesystem::status(path, failure);
      std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    throw file_error(named, 0, "cannot be a checkpoint: it is not a regular file");
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  std::size_t offset = 0;
  for (const StateArray& a : arrays) {
    list.push_back({{"name", a.name},
                    {"offset", offset},
                    {"bytes", a.bytes.size()},
                    {"checksum", ptn::checksum(a.bytes.data(), a.bytes.size())}});
    offset += padded(a.bytes.size());
  }
  head["arrays"] = std::move(list);
  const std::string text = head.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);

  OutputFile file(path, Compression::none, context.cancelled);
  std::string begin(magic);
  append_word(begin, layout_version);
  append_word(begin, text.size());
  append_word(begin, ptn::checksum(text.data(), text.size()));
  begin += text;
  begin.resize(padded(begin.size()));
  file.write(begin);
  const std::string zeros(alignment, '\0');
  for (const StateArray& a : arrays) {
    file.write(a.bytes.data(), a.bytes.size());
    file.write(zeros.data(), padded(a.bytes.size()) - a.bytes.size());
  }
  file.sync();
  // The new one is complete and on the disk: now the old one may move. Whoever is killed between the two finds it as
  // .previous.
  std::filesystem::rename(path, path + ".previous", failure);
  file.commit();
  sync_folder(path);
}

void StateFile::damaged(std::string_view what) const {
  throw file_error(file_->path(), 0, fmt::format("{}: the file is damaged", what));
}

StateFile::StateFile(const std::string& path) : file_(std::make_unique<MappedFile>(path)) {
  const std::size_t size = file_->size();
  const std::byte* data = file_->data();
  if (size < fixed_bytes || std::memcmp(data, magic.data(), magic.size()) != 0)
    throw file_error(path, 0, "found something else, expected a checkpoint of polyad");
  if (const std::uint64_t found = word_at(data + 8); found != layout_version)
    throw file_error(path, 0, fmt::format("found version {} of checkpoints, expected {}", found, layout_version));
  const std::uint64_t head_bytes = word_at(data + 16);
  if (head_bytes > size - fixed_bytes) damaged("its head is cut off");
  if (ptn::checksum(data + fixed_bytes, head_bytes) != word_at(data + 24)) damaged("the checksum of its head is wrong");
  arrays_begin_ = padded(fixed_bytes + head_bytes);
  try {
    head_ = nlohmann::ordered_json::parse(reinterpret_cast<const char*>(data) + fixed_bytes,
                                          reinterpret_cast<const char*>(data) + fixed_bytes + head_bytes);
    for (const nlohmann::ordered_json& a : head_.at("arrays")) {
      const auto offset = a.at("offset").get<std::uint64_t>();
      const auto bytes = a.at("bytes").get<std::uint64_t>();
      if (arrays_begin_ > size || offset > size - arrays_begin_ || bytes > size - arrays_begin_ - offset)
        damaged("it is cut off");
      if (ptn::checksum(data + arrays_begin_ + offset, bytes) != a.at("checksum").get<std::uint64_t>())
        damaged(fmt::format("the checksum of {} is wrong", a.at("name").get<std::string>()));
    }
  } catch (const nlohmann::json::exception&) {
    damaged("its head is not what a checkpoint has");
  }
}

void StateFile::copy(std::string_view name, std::span<std::byte> to) const {
  for (const nlohmann::ordered_json& a : head_.at("arrays")) {
    if (a.at("name").get<std::string>() != name) continue;
    if (a.at("bytes").get<std::uint64_t>() != to.size())
      damaged(fmt::format("{} has {} bytes, expected {}", name, a.at("bytes").get<std::uint64_t>(), to.size()));
    if (!to.empty())
      std::memcpy(to.data(), file_->data() + arrays_begin_ + a.at("offset").get<std::uint64_t>(), to.size());
    return;
  }
  damaged(fmt::format("it has no {}", name));
}

}  // namespace polyad::io
