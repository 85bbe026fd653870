// SPDX-License-Identifier: MIT
/// \file Small JSON files in the cache folder (Context::cache). A cache never stands in the way: what cannot be read is
/// empty, what cannot be written is not kept.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "polyad/context.hpp"

namespace polyad {

/// The object in a file of the cache; empty when there is none or it is damaged.
[[nodiscard]] nlohmann::json read_cache(const Context& context, std::string_view file);

/// Sets one key of the object in a file of the cache. The file is replaced whole, so readers never see half of it.
void remember(const Context& context, std::string_view file, const std::string& key, const nlohmann::json& value);

/// What tells this machine and number of threads from others: the processor's name, its caches, the threads.
[[nodiscard]] std::string machine_name(const Context& context);

}  // namespace polyad
