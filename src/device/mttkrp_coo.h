// SPDX-License-Identifier: MIT
// MTTKRP on coordinates (Phipps and Kolda, "Software for sparse tensor decomposition on emerging computing
// architectures", sections 4 and 6).
//
//   out(i_0, :) += value * product over levels l > 0 of factor_l(i_l, :)
//
// Level 0 is the output mode. PD_ORDER, PD_INDEX; PD_INTERLEAVED 1: the indices of a nonzero lie side by side, in the
// order of the modes; 0: an array per mode. Arrays are the same whatever the output mode is.
// head: nonzeros, nonzeros of a group, stride, chunks, mode of every level;
//       indices (an array per mode, or one), values, permutation of every mode (mttkrp_coo_permuted only)
#define PD_HEAD_MODES 4
#define PD_HEAD_ARRAYS (PD_HEAD_MODES + PD_ORDER)
#include "rows.h"

#define PD_ARRAYS (PD_INTERLEAVED ? 1 : PD_ORDER)
#define PD_COORDINATE(l, z) (PD_INTERLEAVED ? ids[0][(z)*PD_ORDER + modes[l]] : ids[PD_INTERLEAVED ? 0 : (l)][z])

// What every kernel here begins with. `columns`: how many a lane has from `column` on, PD_ITEMS_0 apart.
#define PD_COO_BEGIN(arrays)                                                                                       \
  PD_ARRAY(PD_GLOBAL const PD_INDEX*, ids, PD_ARRAYS);                                                             \
  PD_ARRAY(PD_GLOBAL const real*, factor, PD_ORDER);                                                               \
  PD_ARRAY(u32, modes, PD_ORDER);                                                                                  \
  PD_GLOBAL const real* values = PD_SLOT(real, PD_ARRAYS);                                                         \
  PD_UNROLL for (int l = 0; l < PD_ORDER; ++l) {                                                                   \
    modes[l] = (u32)head[PD_HEAD_MODES + l];                                                                       \
    if (l < PD_ARRAYS) ids[l] = PD_SLOT(PD_INDEX, PD_INTERLEAVED ? 0 : modes[l]);                                  \
    factor[l] = PD_FACTOR(l, arrays);                                                                              \
  }                                                                                                                \
  const u64 run_begin = pd_least(pd_group_id(0) * head[1], head[0]);                                               \
  const u64 run_end = pd_least(run_begin + head[1], head[0])

// MTTKRP-A: a worker per nonzero, all columns in one pass, every product added atomically.
PD_KERNEL void mttkrp_coo_atomic(PD_PARAMETERS) {
  const u64 stride = head[2];
  const u64 column = 0;
  PD_COO_BEGIN(PD_ARRAYS + 1);
  for (u64 z = run_begin + pd_local_id(1); z < run_end; z += PD_ITEMS_1) {
    const real value = values[z];
    const u64 row = PD_COORDINATE(0, z);
    for (u64 c = pd_local_id(0); c < stride; c += PD_ITEMS_0) {
      real x = value;
      PD_UNROLL for (int l = 1; l < PD_ORDER; ++l) x *= factor[l][PD_COORDINATE(l, z) * stride + c];
      pd_add_shared(out + row * stride + c, x);
    }
  }
  (void)seams;
}

// MTTKRP-B: a block of columns in registers, PD_COLUMNS a lane. Neighbouring nonzeros of one row are added up before they
// are added to the output.
PD_KERNEL void mttkrp_coo_blocked(PD_PARAMETERS) {
  const u64 stride = head[2];
  const u64 column = pd_group_id(1) * PD_ITEMS_0 * PD_COLUMNS + pd_local_id(0);
  PD_COO_BEGIN(PD_ARRAYS + 1);
  PD_ARRAY(real, sum, PD_COLUMNS);
  PD_ARRAY(u64, at, PD_COLUMNS);  // of the columns, from the first
  u64 z;
  u64 end;
  u64 row = PD_NO_ROW;
  PD_UNROLL for (int j = 0; j < PD_COLUMNS; ++j) {
    sum[j] = (real)0;
    at[j] = column + j * PD_ITEMS_0 < stride ? (u64)j * PD_ITEMS_0 : (u64)0;
  }
  pd_share(run_begin, run_end, &z, &end);
  if (column < stride) {
    for (; z < end; ++z) {
      const u64 next = PD_COORDINATE(0, z);
      if (next != row) {
        PD_UNROLL for (int j = 0; j < PD_COLUMNS; ++j) {
          if (row != PD_NO_ROW && (j == 0 || at[j] > 0)) pd_add_shared(out + row * stride + column + at[j], sum[j]);
          sum[j] = (real)0;
        }
        row = next;
      }
      PD_UNROLL for (int j = 0; j < PD_COLUMNS; ++j) {
        real x = values[z];
        PD_UNROLL for (int l = 1; l < PD_ORDER; ++l) x *= factor[l][PD_COORDINATE(l, z) * stride + at[j]];
        sum[j] += x;
      }
    }
    if (row != PD_NO_ROW) {
      PD_UNROLL for (int j = 0; j < PD_COLUMNS; ++j) {
        if (j == 0 || at[j] > 0) pd_add_shared(out + row * stride + column + at[j], sum[j]);
      }
    }
  }
  (void)seams;
}

// Slices of one nonzero (HB-CSF's first group): every product is an output row.
PD_KERNEL void mttkrp_coo_single(PD_PARAMETERS) {
  const u64 stride = head[2];
  const u64 lane_column = pd_column();
  const u64 column = pd_least(lane_column, stride - 1);
  PD_COO_BEGIN(PD_ARRAYS + 1);
  if (lane_column == column) {
    for (u64 z = run_begin + pd_local_id(1); z < run_end; z += PD_ITEMS_1) {
      real x = values[z];
      PD_UNROLL for (int l = 1; l < PD_ORDER; ++l) x *= factor[l][PD_COORDINATE(l, z) * stride];
      out[PD_COORDINATE(0, z) * stride + column] = x;
    }
  }
  (void)seams;
}

// MTTKRP-C: nonzeros in the order of the output mode, through a permutation (PD_OFFSET); rows are summed in registers.
PD_KERNEL void mttkrp_coo_permuted(PD_PARAMETERS) {
  PD_ROWS_BEGIN(head[2]);
  PD_COO_BEGIN(PD_ARRAYS + 1 + PD_ORDER);
  PD_GLOBAL const PD_OFFSET* permutation = PD_SLOT(PD_OFFSET, PD_ARRAYS + 1 + modes[0]);
  u64 k;
  u64 end;
  pd_share(run_begin, run_end, &k, &end);
  for (; k < end; ++k) {
    const u64 z = permutation[k];
    real x = values[z];
    PD_UNROLL for (int l = 1; l < PD_ORDER; ++l) x *= factor[l][PD_COORDINATE(l, z) * stride];
    pd_add_to_row(&rows, PD_COORDINATE(0, z), x, out + column, stride, writes);
  }
  PD_ROWS_END(head[3]);
}
