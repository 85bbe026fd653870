// SPDX-License-Identifier: MIT
#include "backends/gpu/program.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "polyad/error.hpp"

namespace polyad::gpu {

namespace fs = std::filesystem;

namespace {

std::string hash(std::string_view bytes) {
  const XXH128_hash_t h = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", h.high64, h.low64);
}

// A file: this, the hash of the key and the program, a line feed, the program.
constexpr std::string_view magic = "polyad kernel 2 ";

std::string signature(const std::string& key, std::string_view bytes) {
  return hash(fmt::format("{}\n{}", key, bytes));
}

/// Removes what processes left behind that were ended while they wrote.
void remove_remains(const fs::path& folder) {
  const auto hour_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);  // others may be writing
  std::error_code failed;
  for (fs::directory_iterator file(folder, failed), end; !failed && file != end; file.increment(failed)) {
    std::error_code gone;
    const bool aside = file->path().stem().extension() == ".bin";
    if (aside && fs::last_write_time(file->path(), gone) < hour_ago && !gone) fs::remove(file->path(), gone);
  }
}

}  // namespace

std::string text_named(std::string_view name) {
  if (const char* folder = std::getenv("POLYAD_DEVICE_TEXTS"); folder != nullptr && *folder != '\0') {
    std::ifstream in(fs::path(folder) / fmt::format("{}.h", name), std::ios::binary);
    std::ostringstream text;
    if (in && text << in.rdbuf()) return std::move(text).str();
  }
  for (const Text& t : texts())
    if (t.name == name) return std::string(*t.text);
  throw usage_error(fmt::format("there is no kernel text '{}'", name));
}

namespace {

/// A text with the texts that it includes put in their places.
std::string whole_text(std::string_view name) {
  constexpr std::string_view include = "#include \"";
  std::istringstream lines(text_named(name));
  std::string all = fmt::format("#line 1 \"{}.h\"\n", name);
  std::string line;
  for (int number = 2; std::getline(lines, line); ++number) {
    if (line.starts_with(include) && line.ends_with(".h\"")) {
      const std::string other = line.substr(include.size(), line.size() - include.size() - 3);
      all += fmt::format("{}#line {} \"{}.h\"\n", whole_text(other), number, name);
    } else {
      all += line + "\n";
    }
  }
  return all;
}

}  // namespace

std::string assemble(std::string_view door, std::string_view unit, std::span<const Define> defines) {
  std::string source;
  for (const Define& d : defines) source += fmt::format("#define {} {}\n", d.first, d.second);
  const std::string prelude = fmt::format("prelude_{}", door);
  for (const std::string_view name : {std::string_view(prelude), unit}) source += whole_text(name);
  return source;
}

std::string program_key(std::string_view source, std::string_view options, std::string_view device,
                        std::string_view driver) {
  std::string all;
  // The lengths keep "ab" + "c" apart from "a" + "bc".
  for (const std::string_view part : {source, options, device, driver})
    all += fmt::format("{}:{}\n", part.size(), part);
  return hash(all);
}

std::string ProgramCache::path(const std::string& key) const {
  return (fs::path(folder_) / "kernels" / (key + ".bin")).string();
}

std::string ProgramCache::load(const std::string& key) const {
  if (folder_.empty()) return {};
  std::ifstream in(path(key), std::ios::binary);
  std::ostringstream text;
  if (!(text << in.rdbuf())) return {};  // there is none, or it cannot be read
  const std::string all = std::move(text).str();
  const std::size_t head = magic.size() + 32 + 1;
  if (all.size() <= head || !all.starts_with(magic)) return {};
  std::string bytes = all.substr(head);
  return all.substr(magic.size(), 32) == signature(key, bytes) ? bytes : std::string();
}

void ProgramCache::store(const std::string& key, std::string_view bytes) const {
  if (folder_.empty() || bytes.empty()) return;
  std::error_code failed;
  const std::string target = path(key);
  const fs::path folder = fs::path(target).parent_path();
  fs::create_directories(folder, failed);
  remove_remains(folder);
  std::string aside = target + ".XXXXXX";
  const int created = mkstemp(aside.data());
  if (created < 0) return;
  (void)close(created);
  {
    std::ofstream out(aside, std::ios::binary);
    out << magic << signature(key, bytes) << '\n' << bytes;
    if (!out.flush()) failed = std::make_error_code(std::errc::io_error);
  }
  if (!failed) fs::rename(aside, target, failed);
  if (failed) fs::remove(aside, failed);
}

}  // namespace polyad::gpu
