// SPDX-License-Identifier: MIT
#include "core/tuned.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "backends/gpu/device.hpp"
#include "core/cache_file.hpp"
#include "polyad/cp_als.hpp"
#include "polyad/version.hpp"

namespace polyad {

namespace {

constexpr std::string_view tuned_file = "tuned.json";

/// All of a key but the tensor's fingerprint, which takes a pass over the nonzeros.
std::string circumstances(const CooTensor& x, std::uint64_t rank, double most_size, const Context& context) {
  std::string devices;
  for (const auto& d : context.devices) devices += fmt::format(", {}", d->facts().description);
  return fmt::format(", {}, {} nonzeros, rank {}, {}, size {:g}, {}{}, polyad {}", fmt::join(x.dims, "x"), x.nnz(),
                     rank, name_of(x.precision()), most_size, machine_name(context), devices, version);
}

std::string key_of(const CooTensor& x, const std::string& rest, const Context& context) {
  return fmt::format("{:016x}{}", fingerprint(x, context), rest);
}

}  // namespace

std::optional<Choice> tuned_format(const CooTensor& x, std::uint64_t rank, double most_size, const Context& context) {
  if (context.deterministic) return std::nullopt;
  const nlohmann::json all = read_cache(context, tuned_file);
  if (all.empty()) return std::nullopt;
  const std::string rest = circumstances(x, rank, most_size, context);
  const auto items = all.items();
  if (std::none_of(items.begin(), items.end(), [&](const auto& item) { return item.key().ends_with(rest); }))
    return std::nullopt;
  const auto found = all.find(key_of(x, rest, context));
  if (found == all.end() || !found->is_object() || !found->contains("format") || !(*found)["format"].is_string())
    return std::nullopt;
  const auto name = (*found)["format"].get<std::string>();
  const auto known = formats();
  const auto entry = std::ranges::find(known, name, &FormatEntry::name);
  if (entry == known.end()) return std::nullopt;
  const auto why = found->find("why");
  return Choice{entry->name,
                why != found->end() && why->is_string() ? why->get<std::string>() : "measured before on this machine"};
}

Choice remember_tuned(const CooTensor& x, std::uint64_t rank, double most_size, const std::vector<TunedFormat>& found,
                      const Context& context) {
  std::string why =
      fmt::format("measured on {}:", context.devices.empty() ? "this machine" : context.devices[0]->facts().name);
  for (const TunedFormat& f : found)
    why += fmt::format("{} {} {:.3g} s", &f == &found.front() ? "" : ",", f.format, f.seconds);
  remember(context, tuned_file, key_of(x, circumstances(x, rank, most_size, context), context),
           {{"format", found.front().format}, {"why", why}});
  return {found.front().format, std::move(why), found.front().leaf_modes};
}

}  // namespace polyad
