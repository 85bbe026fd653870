// SPDX-License-Identifier: MIT
#include "core/cache_file.hpp"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "polyad/machine.hpp"

namespace polyad {

namespace fs = std::filesystem;

nlohmann::json read_cache(const Context& context, std::string_view file) {
  nlohmann::json empty = nlohmann::json::object();
  if (context.cache.empty()) return empty;
  std::ifstream in(fs::path(context.cache) / file);
  std::ostringstream text;
  if (!(text << in.rdbuf())) return empty;  // there is none, or it cannot be read
  nlohmann::json found = nlohmann::json::parse(text.str(), nullptr, false);
  return found.is_object() ? found : empty;
}

void remember(const Context& context, std::string_view file, const std::string& key, const nlohmann::json& value) {
  if (context.cache.empty()) return;
  nlohmann::json all = read_cache(context, file);
  all[key] = value;
  std::error_code failed;
  fs::create_directories(context.cache, failed);
  const fs::path target = fs::path(context.cache) / file;
  std::string whole = target.string() + ".XXXXXX";
  const int created = mkstemp(whole.data());
  if (created < 0) return;
  (void)close(created);
  {
    std::ofstream out(whole);
    out << all.dump(1) << '\n';
    if (!out.flush()) failed = std::make_error_code(std::errc::io_error);
  }
  if (!failed) fs::rename(whole, target, failed);
  if (failed) fs::remove(whole, failed);
}

std::string machine_name(const Context& context) {
  std::string name = "unknown processor";
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("model name") && line.find(": ") != std::string::npos) {
      name = line.substr(line.find(": ") + 2);
      break;
    }
  return fmt::format("{}, {} KiB of cache, {} threads", name, last_cache_bytes() >> 10U, context.thread_count());
}

}  // namespace polyad
