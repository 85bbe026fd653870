// SPDX-License-Identifier: MIT
/// \file Memory that is given back serves the next who needs some.
#pragma once

#include <cstdint>

namespace polyad {

/// While one of these lives, pages of large arrays that are given back are kept for the arrays after them, in all of
/// the process; when the last one ends, the system gets what is left. Fresh pages cost time: 0.2 to 0.5 s a GB, on
/// virtual machines that take unused memory away up to 5 s. cp_als() has one for itself; a program that reads, builds
/// and decomposes wants one around it all.
///
/// Arrays and kept pages together are no more than the arrays alone were at their most, and never more than a
/// MemoryBudget allows that counts the arrays.
class PageReuse {
 public:
  /// \param also_up_to bytes that arrays and kept pages may be together, even if the arrays never were so many
  explicit PageReuse(std::uint64_t also_up_to = 0);
  ~PageReuse();
  PageReuse(const PageReuse&) = delete;
  PageReuse& operator=(const PageReuse&) = delete;
};

}  // namespace polyad
