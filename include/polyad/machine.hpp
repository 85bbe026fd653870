// SPDX-License-Identifier: MIT
/// \file What this machine can do, measured.
#pragma once

#include <cstdint>

#include "polyad/context.hpp"

namespace polyad {

/// Bytes of the last level of cache; 32 MiB when the system does not say.
[[nodiscard]] std::uint64_t last_cache_bytes();

/// Bytes of the second level of cache of a core; 1 MiB when the system does not say.
[[nodiscard]] std::uint64_t second_cache_bytes();

/// Memory bandwidth in GB/s by the triad of STREAM (McCalpin 1995), a[i] = b[i] + s * c[i], with the context's threads:
/// 24 bytes per element, as STREAM counts them, over the best time of several. The arrays are counted in the context's
/// budget.
[[nodiscard]] double stream_triad_gbs(const Context& context = {});

}  // namespace polyad
