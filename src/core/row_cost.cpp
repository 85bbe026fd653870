// SPDX-License-Identifier: MIT
#include "core/row_cost.hpp"

#include <algorithm>

#include "core/cache_file.hpp"
#include "polyad/error.hpp"

namespace polyad {

namespace {

constexpr std::string_view machine_file = "machine.json";

/// Numbers that somebody else may have written: believed only where they can be.
bool take_number(const nlohmann::json& from, std::string_view key, double least, double most, double& to) {
  const auto found = from.find(key);
  if (found == from.end() || !found->is_number()) return false;
  to = found->get<double>();
  return to >= least && to <= most;
}
bool take_costs(const nlohmann::json& from, std::string_view key, std::array<double, RowCost::sizes>& to) {
  const auto found = from.find(key);
  if (found == from.end() || !found->is_array() || found->size() != to.size()) return false;
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (!(*found)[i].is_number()) return false;
    to[i] = (*found)[i].get<double>();
    if (!(to[i] > 0.01 && to[i] < 1e4)) return false;
  }
  return true;
}

}  // namespace

RowCost RowCost::of_machine(const Context& context, bool may_measure) {
  if (context.cache.empty()) return {};
  const std::string machine = machine_name(context);
  const nlohmann::json all = read_cache(context, machine_file);
  RowCost known;
  if (const auto found = all.find(machine); found != all.end() && found->is_object()) {
    if (take_costs(*found, "read", known.read) && take_costs(*found, "next", known.next) &&
        take_costs(*found, "add", known.add) && take_costs(*found, "pair", known.pair) &&
        take_number(*found, "among_streams", 1, 3, known.among_streams) &&
        take_number(*found, "streaming", 0.01, 1e4, known.stream))
      return known;
  }
  if (!may_measure) return {};
  try {
    known = measured(context);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::limit) throw;
    return {};
  }
  remember(context, machine_file, machine,
           {{"read", known.read},
            {"next", known.next},
            {"pair", known.pair},
            {"add", known.add},
            {"among_streams", known.among_streams},
            {"streaming", known.stream}});
  return known;
}

}  // namespace polyad
