// SPDX-License-Identifier: MIT
/// \file Arrays of indices with some elements behind the last one, which loops look at ahead of what they do.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "polyad/buffer.hpp"
#include "polyad/context.hpp"

namespace polyad {

/// Room for `count` elements, all of which will be written, and `padding` that are 0.
template <class T>
[[nodiscard]] Buffer<T> padded_buffer(std::size_t count, std::size_t padding, std::string_view purpose,
                                      const Context& context) {
  Buffer<T> b(context, count + padding, purpose, Paging::plain, Content::any);
  std::fill_n(b.data() + count, padding, T(0));
  return b;
}

}  // namespace polyad
