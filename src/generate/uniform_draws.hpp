// SPDX-License-Identifier: MIT
/// \file Many draws of a stream at once, with vectors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "generate/random.hpp"

namespace polyad::portable {

/// out[i] = Random::uniform() of draw first + i of the key's stream 0, for i < count.
void uniform_draws(Key key, std::uint64_t first, std::size_t count, double* out);

}  // namespace polyad::portable
