// SPDX-License-Identifier: MIT
/// \file Everything.
#pragma once

#include "polyad/buffer.hpp"
#include "polyad/context.hpp"
#include "polyad/coo_tensor.hpp"
#include "polyad/cp_model.hpp"
#include "polyad/error.hpp"
#include "polyad/factors.hpp"
#include "polyad/generate.hpp"
#include "polyad/io.hpp"
#include "polyad/kernels.hpp"
#include "polyad/labels.hpp"
#include "polyad/machine.hpp"
#include "polyad/matrix.hpp"
#include "polyad/operations.hpp"
#include "polyad/planner.hpp"
#include "polyad/registry.hpp"
#include "polyad/sizes.hpp"
#include "polyad/statistics.hpp"
#include "polyad/tensor.hpp"
#include "polyad/types.hpp"
#include "polyad/version.hpp"
