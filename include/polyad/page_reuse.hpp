// SPDX-License-Identifier: MIT
/// \file Memory that is given back serves the next who needs some.
#pragma once

#include <cstdint>

namespace polyad {

/// While one of these lives, pages of large arrays that are given back are kept for the arrays after them, in all of the
/// process; when the last one ends, the system gets what is left. Fresh pages cost time: 0.2 to 0.5 s a GB, on virtual
/// machines that take unused memory away up to 5 s. cp_als() has one for itself; a program that reads, builds and
/// decomposes wants one around it all.
class PageReuse {
 public:
  /// \param most bytes that arrays and kept pages may be together; 0: no more than the arrays alone were at their most
  explicit PageReuse(std::uint64_t most = 0);
  ~PageReuse();
  PageReuse(const PageReuse&) = delete;
  PageReuse& operator=(const PageReuse&) = delete;
};

}  // namespace polyad
