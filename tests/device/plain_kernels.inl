// SPDX-License-Identifier: MIT
// All kernel texts as C++ for the types PD_REAL_BITS, PD_INDEX, PD_OFFSET, in the namespace PLAIN_TYPES: a source file
// for each set of types.
#include "device/plain_item.hpp"

// The texts are C first of all.
#pragma GCC diagnostic ignored "-Wold-style-cast"
#pragma GCC diagnostic ignored "-Wcast-align"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-variable"

namespace polyad::plain::PLAIN_TYPES {
#include "device/prelude_cpp.h"

namespace coo {
#include "device/mttkrp_coo.h"
#include "device/plain_forget.inl"
}  // namespace coo
namespace tree {
#include "device/mttkrp_tree.h"
#include "device/plain_forget.inl"
}  // namespace tree
namespace csl {
#include "device/mttkrp_csl.h"
#include "device/plain_forget.inl"
}  // namespace csl
namespace f_coo {
#include "device/mttkrp_f_coo.h"
#include "device/plain_forget.inl"
}  // namespace f_coo
namespace hicoo {
#include "device/mttkrp_hicoo.h"
#include "device/plain_forget.inl"
}  // namespace hicoo
namespace dense {
#include "device/solve_rows.h"
}  // namespace dense
namespace seams {
#include "device/add_seams.h"
}  // namespace seams
namespace ttv {
#define PD_SLICE_OFFSET PD_OFFSET
#include "device/ttv_fibres.h"
#include "device/ttv_hocfs.h"
#include "device/ttv_hocoo.h"
}  // namespace ttv

template <auto kernel>
void call(const std::byte* slot, const std::byte* head, const std::byte* factors, std::byte* out, std::byte* side) {
  kernel(reinterpret_cast<const u8*>(slot), reinterpret_cast<const u64*>(head), reinterpret_cast<const real*>(factors),
         reinterpret_cast<real*>(out), reinterpret_cast<real*>(side));
}

Function find(const std::string& function);

Function find(const std::string& function) {
  if (function == "mttkrp_coo_atomic") return call<coo::mttkrp_coo_atomic>;
  if (function == "mttkrp_coo_blocked") return call<coo::mttkrp_coo_blocked>;
  if (function == "mttkrp_coo_single") return call<coo::mttkrp_coo_single>;
  if (function == "mttkrp_coo_permuted") return call<coo::mttkrp_coo_permuted>;
  if (function == "mttkrp_tree") return call<tree::mttkrp_tree>;
  if (function == "mttkrp_csl") return call<csl::mttkrp_csl>;
  if (function == "mttkrp_f_coo") return call<f_coo::mttkrp_f_coo>;
  if (function == "mttkrp_hicoo") return call<hicoo::mttkrp_hicoo>;
  if (function == "solve_rows") return call<dense::solve_rows>;
  if (function == "gram_rows") return call<dense::gram_rows>;
  if (function == "scale_columns") return call<dense::scale_columns>;
  if (function == "add_seams") return call<seams::add_seams>;
  if (function == "ttv_hocoo") return call<ttv::ttv_hocoo>;
  if (function == "ttv_hocoo_seams") return call<ttv::ttv_hocoo_seams>;
  if (function == "ttv_fibres") return call<ttv::ttv_fibres>;
  if (function == "ttv_hocfs_csr") return call<ttv::ttv_hocfs_csr>;
  if (function == "ttv_hocfs_ell") return call<ttv::ttv_hocfs_ell>;
  return nullptr;
}

}  // namespace polyad::plain::PLAIN_TYPES
