// SPDX-License-Identifier: MIT
/// \file What any kernel falls back to when several threads would add to the same rows and private outputs are too
/// large.
#pragma once

#include "kernels/mttkrp/request.hpp"

namespace polyad {

/// Every thread reads all nonzeros and adds those of its own rows, in the order of the format: no shared rows, no
/// memory, and the same bits for any number of threads. Works on any format.
template <class T>
void add_by_owner(const MttkrpRequest<T>& r);

}  // namespace polyad
