// SPDX-License-Identifier: MIT
#include <fmt/ranges.h>

#include <algorithm>

#include "session.hpp"
#include "verb.hpp"

namespace polyad::cli {

namespace {

Json describe(const Entry& e) { return {{"name", e.name}, {"summary", e.summary}}; }

Json describe(const FormatEntry& e) {
  return {{"name", e.name},
          {"summary", e.summary},
          {"paper", e.paper},
          {"mode_specific", e.mode_specific},
          {"strengths", e.strengths}};
}

Json describe(const KernelEntry& e) {
  return {{"name", e.name},
          {"summary", e.summary},
          {"operation", e.operation},
          {"formats", split(std::string(e.formats))},
          {"deterministic", e.deterministic}};
}

Json describe(const DialectEntry& e) {
  return {{"name", e.name},
          {"summary", e.summary},
          {"extensions", e.extensions},
          {"text", e.is_text},
          {"writes", e.can_write}};
}

Json describe(const DeviceEntry& e) {
  Json d = {{"name", e.name}, {"summary", e.description}, {"backend", e.backend}, {"available", e.available}};
  if (e.compute_units == 0) return d;  // the processor, or none
  d["gpu"] = e.is_gpu;
  d["f64"] = e.has_f64;
  d["memory_bytes"] = e.memory_bytes;
  d["compute_units"] = e.compute_units;
  d["largest_group"] = e.largest_group;
  d["local_bytes"] = e.local_bytes;
  d["native_atomics"] = e.native_atomics;
  return d;
}

template <class Entries>
Json describe_all(const Entries& entries) {
  Json all = Json::array();
  for (const auto& e : entries) all.push_back(describe(e));
  return all;
}

/// The second line of an entry for people; empty when it has none.
std::string details(const std::string& what, const Json& e) {
  if (what == "formats") {
    std::string text = e["mode_specific"] ? "one copy per mode" : "one copy for all modes";
    for (const char* key : {"strengths", "paper"})
      if (const auto more = e[key].get<std::string>(); !more.empty()) text += "; " + more;
    return text;
  }
  if (what == "kernels")
    return fmt::format("{} on {}; {}", e["operation"].get<std::string>(),
                       fmt::join(e["formats"].get<std::vector<std::string>>(), ", "),
                       e["deterministic"] ? "deterministic" : "not deterministic");
  if (what == "devices" && e.contains("memory_bytes"))
    return fmt::format("{}; {}; {}, {} compute units; groups of {} with {}{}", e["gpu"] ? "GPU" : "no GPU",
                       e["f64"] ? "f32 and f64" : "f32 only, no doubles",
                       readable_bytes(e["memory_bytes"].get<std::uint64_t>()), e["compute_units"].get<std::uint32_t>(),
                       e["largest_group"].get<std::uint32_t>(), readable_bytes(e["local_bytes"].get<std::uint64_t>()),
                       e["native_atomics"] ? "; native atomics" : "");
  if (what == "devices" && !e["available"]) return "not available";
  return {};
}

Json entries_of(const std::string& what) {
  if (what == "formats") return describe_all(formats());
  if (what == "kernels") return describe_all(kernels());
  if (what == "solvers") return describe_all(solvers());
  if (what == "backends") return describe_all(backends());
  if (what == "devices") return describe_all(devices());
  return describe_all(dialects());
}

std::function<void(Session&)> declare_list(CLI::App& command) {
  auto what = std::make_shared<std::string>();
  command.add_option("WHAT", *what, "formats, kernels, solvers, backends, devices or dialects")
      ->required()
      ->check(CLI::IsMember({"formats", "kernels", "solvers", "backends", "devices", "dialects"}));
  return [what](Session& session) {
    Json entries = entries_of(*what);
    std::size_t width = 0;
    for (const Json& e : entries) width = std::max(width, e["name"].get<std::string>().size());
    for (const Json& e : entries) {
      session.print("{:<{}}  {}\n", e["name"].get<std::string>(), width, e["summary"].get<std::string>());
      if (const std::string more = details(*what, e); !more.empty()) session.print("{:<{}}    {}\n", "", width, more);
    }
    if (entries.empty()) session.print("no {} in this version\n", *what);
    session.json()[*what] = std::move(entries);
  };
}

}  // namespace

const Verb list_verb = {"list", "what this build of polyad has", "polyad list formats", declare_list};

}  // namespace polyad::cli
